// SPDX-License-Identifier: BSD-2-Clause
/* The subcommands that check the network and the machine. Each function gets argv[0] = "pumice NAME" and
 * returns the exit code. It may also end the process itself: after a usage error, or for --help. */
#ifndef PUMICE_SRC_CMD_NET_NET_H
#define PUMICE_SRC_CMD_NET_NET_H

/* pumice ping (ping.c): whether small and large packets reach another host. */
int cmd_ping(int argc, char **argv);
/* pumice doctor (doctor.c): what on this machine stops Pumice, and how to fix it. */
int cmd_doctor(int argc, char **argv);

#endif
