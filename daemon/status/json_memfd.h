// SPDX-License-Identifier: BSD-2-Clause
/* Writes a JSON document to a memfd, which the daemon sends to a client. */
#ifndef PUMICE_DAEMON_STATUS_JSON_MEMFD_H
#define PUMICE_DAEMON_STATUS_JSON_MEMFD_H

#include <jansson.h>

/* Writes JSON text to a new memfd. Returns a descriptor or -errno. */
int json_memfd(const json_t *root);

#endif
