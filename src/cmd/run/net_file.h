// SPDX-License-Identifier: BSD-2-Clause
/* The file of pumice run --net. The daemons parse it. */
#ifndef PUMICE_SRC_CMD_RUN_NET_FILE_H
#define PUMICE_SRC_CMD_RUN_NET_FILE_H

/* Returns the text of the file, in memory that is valid until the next call. NULL after printing an error. */
const char *net_file_read(const char *file);

#endif
