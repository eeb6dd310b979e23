// SPDX-License-Identifier: BSD-2-Clause
/* The file of pumice run --net. The daemons parse it. */
#ifndef PUMICE_SRC_CMD_RUN_NET_FILE_H
#define PUMICE_SRC_CMD_RUN_NET_FILE_H

#include "src/cmd/lab/lab.h"

/* Returns the text of the file, in memory that is valid until the next call. NULL after printing an error. */
const char *net_file_read(const char *file);

/* Prints a hint if a link of the network in this lab marks so early that senders slow down although the link is free. */
void net_file_explain(const struct lab *lab);

#endif
