// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/connect/port.h"

#include <errno.h>
#include <string.h>

#include "src/check/base/next.h"

static port_query_fn *(*query_of)(const struct ibv_context *);

void port_set_query(port_query_fn *(*of)(const struct ibv_context *))
{
    query_of = of;
}

int port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
    port_query_fn *query = query_of ? query_of(context) : NULL;

    return query ? query(context, port, attr, sizeof(*attr)) : EOPNOTSUPP;
}

void port_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    if (NEXT(ibv_query_gid, context, port, index, gid) != 0)
        memset(gid, 0, sizeof(*gid));
}
