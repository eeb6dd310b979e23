// SPDX-License-Identifier: BSD-2-Clause
/* The subcommands about captures of packets. Each function gets argv[0] = "pumice NAME" and
 * returns the exit code. It may also end the process itself: after a usage error, or for --help. */
#ifndef PUMICE_SRC_CMD_CAPTURE_CAPTURE_H
#define PUMICE_SRC_CMD_CAPTURE_CAPTURE_H

/* pumice capture (capture.c): captures packets to a file or to standard output. */
int cmd_capture(int argc, char **argv);
/* pumice extcap (extcap.c): the capture interface that Wireshark calls. */
int cmd_extcap(int argc, char **argv);
/* pumice lint (lint.c): judges a capture by the rules of RoCEv2. */
int cmd_lint(int argc, char **argv);
/* pumice ladder (ladder.c): draws a capture as a sequence diagram. */
int cmd_ladder(int argc, char **argv);
/* pumice plot (plot.c): draws sequence numbers, throughput and round trips of a capture. */
int cmd_plot(int argc, char **argv);

#endif
