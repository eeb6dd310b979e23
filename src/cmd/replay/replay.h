// SPDX-License-Identifier: BSD-2-Clause
/* The subcommands that use recordings. Each function gets argv[0] = "pumice NAME" and returns the exit code. It may also
 * end the process itself: after a usage error, or for --help. */
#ifndef PUMICE_SRC_CMD_REPLAY_REPLAY_H
#define PUMICE_SRC_CMD_REPLAY_REPLAY_H

/* pumice replay (replay.c): runs a recorded command again. */
int cmd_replay(int argc, char **argv);
/* pumice shrink (shrink.c): finds the fewest faults with which a command fails. */
int cmd_shrink(int argc, char **argv);

#endif
