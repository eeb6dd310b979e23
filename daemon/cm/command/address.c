// SPDX-License-Identifier: BSD-2-Clause
/* Binding IDs to local addresses, and finding the way to remote ones. */
#include <errno.h>
#include <string.h>

#include "daemon/cm/command/command.h"
#include "daemon/cm/host/cm_resolve.h"
#include "daemon/core/cm/cm.h"

/* --- binding ----------------------------------------------------------------------------------- */

/* Keeps what the program's own form of the address says. */
static void note_form(struct ucma_id *id, const union ucma_sockaddr *sa, uint32_t scope)
{
    id->is_ib = sa->sa.sa_family == AF_IB;
    if (scope)
        id->scope = scope;
}

static int bind_id(struct command *c, struct ucma_id *id, const union ucma_sockaddr *sa)
{
    struct cm_route route = {.device = CM_NO_DEVICE};
    struct cm_id_info info;
    struct cm_addr addr;
    uint32_t scope;

    if (!ucma_sockaddr_size(sa))
        return -EAFNOSUPPORT;
    cm_id_query(id->cm, &info);
    if (info.state != CM_ID_IDLE)
        return -EINVAL;
    int rc = ucma_sockaddr_read(sa, &addr, &scope);
    if (rc == 0 && !cm_addr_is_wildcard(&addr))
        rc = cm_resolve_local(&c->host->devices, &addr, scope, &route);
    /* For Linux, the address of the loopback interface stands for every device. Programs such as fi_pingpong bind to it. */
    if (rc == -ENODEV && cm_addr_make_wildcard(&addr))
        rc = 0;
    if (rc == 0)
        rc = cm_bind(id->cm, &addr, &route);
    if (rc == 0)
        note_form(id, sa, scope);
    return rc;
}

int command_bind_ip(struct command *c)
{
    union ucma_sockaddr sa = {.v6 = c->in.bind_ip.addr};
    struct ucma_id *id;

    if (sa.sa.sa_family != AF_INET && sa.sa.sa_family != AF_INET6)
        return -EINVAL;
    int rc = command_id(c, c->in.bind_ip.id, &id);
    return rc ? rc : bind_id(c, id, &sa);
}

int command_bind(struct command *c)
{
    union ucma_sockaddr sa = {.storage = c->in.bind.addr};
    struct ucma_id *id;

    if (c->in.bind.reserved || !c->in.bind.addr_size || c->in.bind.addr_size != ucma_sockaddr_size(&sa))
        return -EINVAL;
    int rc = command_id(c, c->in.bind.id, &id);
    return rc ? rc : bind_id(c, id, &sa);
}

/* --- resolving --------------------------------------------------------------------------------- */

/* Binds an ID that is not bound: to the address that the program names, or to a wildcard of the destination's
 * family. */
static int bind_source(struct command *c, struct ucma_id *id, const union ucma_sockaddr *src,
                       const union ucma_sockaddr *dst)
{
    union ucma_sockaddr any = {.sa = {.sa_family = dst->sa.sa_family}};
    struct cm_id_info info;

    cm_id_query(id->cm, &info);
    if (info.state != CM_ID_IDLE)
        return info.state == CM_ID_BOUND ? 0 : -EINVAL;
    if (src->sa.sa_family)
        return bind_id(c, id, src);
    if (dst->sa.sa_family == AF_INET6)
        any.v6.sin6_scope_id = dst->v6.sin6_scope_id;
    return bind_id(c, id, &any);
}

static int resolve(struct command *c, struct ucma_id *id, const union ucma_sockaddr *src,
                   const union ucma_sockaddr *dst)
{
    struct cm_addr from, to;
    struct cm_id_info info;
    struct cm_route route;
    uint32_t scope;

    int rc = ucma_sockaddr_read(dst, &to, &scope);
    if (rc == 0)
        rc = bind_source(c, id, src, dst);
    if (rc)
        return rc;
    cm_id_query(id->cm, &info);
    from = info.src;
    if (from.v6 != to.v6 && !id->is_ib)
        return -EINVAL;
    if (scope)
        id->scope = scope;
    rc = cm_resolve_route_to(&c->host->devices, &to, scope ? scope : id->scope, &from, &route);
    if (rc)
        return cm_addr_failed(id->cm, rc);
    return cm_addr_resolved(id->cm, &from, &to, &route);
}

int command_resolve_ip(struct command *c)
{
    union ucma_sockaddr src = {.v6 = c->in.resolve_ip.src_addr}, dst = {.v6 = c->in.resolve_ip.dst_addr};
    struct ucma_id *id;

    if ((src.sa.sa_family && src.sa.sa_family != AF_INET && src.sa.sa_family != AF_INET6) ||
        (dst.sa.sa_family != AF_INET && dst.sa.sa_family != AF_INET6))
        return -EINVAL;
    int rc = command_id(c, c->in.resolve_ip.id, &id);
    return rc ? rc : resolve(c, id, &src, &dst);
}

int command_resolve_addr(struct command *c)
{
    const struct rdma_ucm_resolve_addr *in = &c->in.resolve_addr;
    union ucma_sockaddr src = {.storage = in->src_addr}, dst = {.storage = in->dst_addr};
    struct ucma_id *id;

    if (in->reserved || (in->src_size && in->src_size != ucma_sockaddr_size(&src)) || !in->dst_size ||
        in->dst_size != ucma_sockaddr_size(&dst))
        return -EINVAL;
    if (!in->src_size)
        memset(&src, 0, sizeof(src));
    int rc = command_id(c, in->id, &id);
    return rc ? rc : resolve(c, id, &src, &dst);
}

int command_resolve_route(struct command *c)
{
    struct ucma_id *id;
    int rc = command_id(c, c->in.resolve_route.id, &id);

    return rc ? rc : cm_resolve_route(id->cm);
}

/* Services have names with a subnet administrator only, which RoCE does not have. */
int command_resolve_ib_service(struct command *c)
{
    struct ucma_id *id;
    int rc = command_id(c, c->in.resolve_ib_service.id, &id);

    return rc ? rc : -EOPNOTSUPP;
}
