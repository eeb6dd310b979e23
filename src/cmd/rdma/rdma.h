// SPDX-License-Identifier: BSD-2-Clause
/* The subcommands that have the words and the JSON fields of iproute2's rdma tool. The functions get argv[0] = "pumice
 * NAME" and return the exit code. They may also end the process themselves: after a usage error, or for --help. */
#ifndef PUMICE_SRC_CMD_RDMA_RDMA_H
#define PUMICE_SRC_CMD_RDMA_RDMA_H

/* pumice dev, pumice link, pumice res (show.c): devices, their ports, and the objects of programs. */
int cmd_dev(int argc, char **argv);
int cmd_link(int argc, char **argv);
int cmd_res(int argc, char **argv);

#endif
