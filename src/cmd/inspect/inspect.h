// SPDX-License-Identifier: BSD-2-Clause
/* The subcommands that look into running daemons. Each function gets argv[0] = "pumice NAME" and
 * returns the exit code. It may also end the process itself: after a usage error, or for --help. */
#ifndef PUMICE_SRC_CMD_INSPECT_INSPECT_H
#define PUMICE_SRC_CMD_INSPECT_INSPECT_H

/* pumice status (status.c): devices, objects, QP states and counters. */
int cmd_status(int argc, char **argv);
/* pumice why (why.c): what a queue pair waits for, or why it failed. */
int cmd_why(int argc, char **argv);
/* pumice top (top.c): devices and queue pairs with their rates. */
int cmd_top(int argc, char **argv);
/* pumice tm (tm.c): matching lists, traces, and why messages were unexpected. */
int cmd_tm(int argc, char **argv);
/* pumice fault (fault.c): changes the injected faults. */
int cmd_fault(int argc, char **argv);
/* pumice layout (layout.c): where the bytes of windows over non-contiguous memory are. */
int cmd_layout(int argc, char **argv);

#endif
