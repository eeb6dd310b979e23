// SPDX-License-Identifier: BSD-2-Clause
/* Questions of the checker itself to the library, about ports and GIDs. */
#ifndef PUMICE_SRC_CHECK_CONNECT_PORT_H
#define PUMICE_SRC_CHECK_CONNECT_PORT_H

#include <infiniband/verbs.h>

/* The library's own function of a context, which the checker has replaced there. */
typedef int port_query_fn(struct ibv_context *, uint8_t, struct ibv_port_attr *, size_t);
void port_set_query(port_query_fn *(*of)(const struct ibv_context *));

/* Returns 0 or an error. */
int port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr);

/* Zeroes if there is none. */
void port_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);

#endif
