// SPDX-License-Identifier: BSD-2-Clause
/* `pumice run --check`: preloads the checker into all programs of a run, and tells what it found. */
#ifndef PUMICE_SRC_CMD_CHECK_CHECK_RUN_H
#define PUMICE_SRC_CMD_CHECK_CHECK_RUN_H

#include <stdbool.h>
#include <stddef.h>

struct check_options {
    const char *rules; /* names separated by commas, or "all"; NULL: no checks */
    const char *report; /* file; NULL: none */
    bool fail; /* with findings, the exit code is not 0 */
};

/* Are the options right? False after printing what is wrong. */
bool check_options_right(const struct check_options *o);

/* Before the daemons start: sets what they need of the environment. */
void check_daemons(const struct check_options *o);

/* Sets the environment of the programs: the checker (in the directory of the libraries) before the verbs library, its rules,
 * and a directory for its findings below the lab's. Returns 0, or -1 after printing an error. */
int check_prepare(const struct check_options *o, const char *libraries, const char *lab);

/* After the command: prints the findings, and writes the report. code: the exit code of the command. Returns that of
 * pumice. */
int check_tell(const struct check_options *o, const char *lab, int code);

#endif
