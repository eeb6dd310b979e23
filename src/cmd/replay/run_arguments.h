// SPDX-License-Identifier: BSD-2-Clause
/* The command line of the pumice run that repeats a recording. */
#ifndef PUMICE_SRC_CMD_REPLAY_RUN_ARGUMENTS_H
#define PUMICE_SRC_CMD_REPLAY_RUN_ARGUMENTS_H

#include <stddef.h>

#include "src/cmd/recording/recording.h"

#define RUN_ARGUMENTS_MAX 4096

struct run_arguments {
    size_t n;
    char *argv[RUN_ARGUMENTS_MAX + 1]; /* ends with NULL; the texts belong to others */
};

/* Appends one argument, or the words of a list that ends with NULL. Too many arguments end the process with an error. */
void run_arguments_add(struct run_arguments *a, const char *text);
void run_arguments_add_all(struct run_arguments *a, char *const *words);

/* Appends the options of the recorded run, and its files. Returns 0, or -1 after printing an error, such as an option that
 * a recording may not have. Call it once only. The texts are valid as long as r is. */
int run_arguments_add_options(struct run_arguments *a, const struct recording *r);
/* Appends -- and the recorded command. */
void run_arguments_add_command(struct run_arguments *a, const struct recording *r);

#endif
