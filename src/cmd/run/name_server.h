// SPDX-License-Identifier: BSD-2-Clause
/* Gives each lab its own name server of libfabric.
 *
 * Programs that use datagrams of libfabric's provider verbs find each other by a name server. The first of these programs
 * on a machine listens on a TCP port, and the others register with it and ask it. The default port is the same for all
 * labs, so a program would get an address of another lab. */
#ifndef PUMICE_SRC_CMD_RUN_NAME_SERVER_H
#define PUMICE_SRC_CMD_RUN_NAME_SERVER_H

/* Chooses a TCP port that no other program has, and names it in the environment, for libfabric. Does nothing if the
 * environment names a port already. The port stays reserved for this lab until the calling process ends. */
void name_server_reserve(void);

#endif
