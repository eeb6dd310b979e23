// SPDX-License-Identifier: BSD-2-Clause
/* Documents that daemons give out: JSON in a memfd. */
#ifndef PUMICE_CMD_FETCH_H
#define PUMICE_CMD_FETCH_H

#include <jansson.h>
#include <stdint.h>

/* Asks the daemon at path for the document that op gives, with len bytes of request. NULL after saying what is wrong;
 * else the caller's, for json_decref. */
json_t *fetch_document(const char *path, uint32_t op, const void *req, uint32_t len);
/* The same, but nobody is told what is wrong. */
json_t *fetch_quietly(const char *path, uint32_t op, const void *req, uint32_t len);

#endif
