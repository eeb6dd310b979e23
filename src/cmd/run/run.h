// SPDX-License-Identifier: BSD-2-Clause
/* The subcommands that run programs on Pumice devices. Each function gets argv[0] = "pumice NAME" and
 * returns the exit code. It may also end the process itself: after a usage error, or for --help. */
#ifndef PUMICE_SRC_CMD_RUN_RUN_H
#define PUMICE_SRC_CMD_RUN_RUN_H

#include <stdbool.h>

/* pumice run (run.c): runs a command with private hosts (a lab). */
int cmd_run(int argc, char **argv);
/* May this text, such as --hosts=2, be an option in a recording? pumice run writes only such options down. */
bool run_option_is_recorded(const char *text);
/* pumice on (on.c): runs a command on one host of a lab. */
int cmd_on(int argc, char **argv);
/* pumice env (env.c): prints the environment for a running daemon. */
int cmd_env(int argc, char **argv);

#endif
