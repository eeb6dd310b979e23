// SPDX-License-Identifier: BSD-2-Clause
/* The runs of pumice shrink: each is a process of its own, whose output goes to a file. */
#ifndef PUMICE_SRC_CMD_REPLAY_TRIAL_H
#define PUMICE_SRC_CMD_REPLAY_TRIAL_H

#include <limits.h>
#include <stdbool.h>

/* Recordings below the directory of the result, which trial_clean removes. */
enum trial_recording {
    TRIAL_FIRST, /* the run that failed at first */
    TRIAL_PLAN, /* what a trial shall strike */
    TRIAL_SEEN, /* what it struck */
    TRIAL_RECORDINGS,
};
void trial_dir(const char *output, enum trial_recording which, char out[PATH_MAX]);
void trial_clean(const char *output);

/* Runs this executable with these arguments, with no input, and waits for it. Returns its exit code, or 128 plus the
 * signal that ended it. -1: pumice run itself failed, which was printed, or the user wants to stop. */
int trial_run(const char *output, char **argv);
/* Keeps the output of the last run as output.txt. False: an error was printed. */
bool trial_keep_output(const char *output);

/* From now on, SIGINT and SIGTERM end the present run only, and trial_stopped becomes true. */
void trial_catch_signals(void);
bool trial_stopped(void);

#endif
