// SPDX-License-Identifier: BSD-2-Clause
/* IDs before they connect: options, addresses, routes, listening. */
#include <errno.h>
#include <string.h>

#include "daemon/core/cm/handlers.h"

#define ACK_TIMEOUT_MAX 31u

static bool qp_type_is_known(uint8_t qp_type)
{
    switch (qp_type) {
    case 0: /* listeners for all types */
    case QPT_RC:
    case QPT_UC:
    case QPT_UD:
    case QPT_XRC_SEND:
    case QPT_XRC_RECV:
        return true;
    default:
        return false;
    }
}

int cm_id_create(struct cm *cm, uint16_t port_space, uint8_t qp_type, void *owner, struct cm_id **out)
{
    if (!port_space_exists(port_space) || !qp_type_is_known(qp_type))
        return -EPROTONOSUPPORT;
    struct cm_id *id = cm_id_new(cm);
    if (!id)
        return -ENOMEM;
    id->owner = owner;
    id->qp_type = qp_type;
    id->bind.port_space = port_space;
    *out = id;
    CM_CHECK(cm);
    return 0;
}

int cm_set_option(struct cm_id *id, enum cm_option option, uint32_t value)
{
    bool bound = id->state == CM_ID_BOUND, idle = id->state == CM_ID_IDLE;
    switch (option) {
    case CM_OPTION_TOS:
        if (value > UINT8_MAX)
            return -EINVAL;
        id->tos = (uint8_t)value;
        id->tos_set = true;
        return 0;
    case CM_OPTION_REUSEADDR:
        if (!idle && (!value || id->state == CM_ID_LISTEN))
            return -EINVAL;
        id->bind.reuseaddr = value != 0;
        return 0;
    case CM_OPTION_AFONLY:
        if (!idle && !bound)
            return -EINVAL;
        id->bind.afonly = value != 0;
        id->afonly_set = true;
        return 0;
    case CM_OPTION_ACK_TIMEOUT:
        if (value > ACK_TIMEOUT_MAX || (id->qp_type != QPT_RC && id->qp_type != QPT_XRC_SEND))
            return -EINVAL;
        id->ack_timeout = (uint8_t)value;
        id->ack_timeout_set = true;
        return 0;
    }
    return -EINVAL;
}

/* IP over InfiniBand has no RoCE device. */
static bool can_use_device(const struct cm_id *id)
{
    return id->bind.port_space != CM_PS_IPOIB;
}

int cm_bind(struct cm_id *id, const struct cm_addr *addr, const struct cm_route *route)
{
    if (id->state != CM_ID_IDLE || (!cm_addr_is_any(addr) && !can_use_device(id)))
        return -EINVAL;
    id->bind.addr = *addr;
    if (!id->afonly_set)
        id->bind.afonly = !addr->v6;
    int rc = port_space_bind(&id->cm->ports, &id->bind);
    if (rc) {
        id->bind.addr = (struct cm_addr){0};
        return rc;
    }
    id->state = CM_ID_BOUND;
    if (!cm_addr_is_any(addr))
        id->route = *route;
    CM_CHECK(id->cm);
    return 0;
}

static int bind_to_any(struct cm_id *id, bool v6)
{
    struct cm_addr any = {.v6 = v6};
    if (!v6)
        any.gid[10] = any.gid[11] = 0xff;
    return cm_bind(id, &any, &id->route);
}

int cm_addr_resolved(struct cm_id *id, const struct cm_addr *src, const struct cm_addr *dst,
                     const struct cm_route *route)
{
    int rc = id->state == CM_ID_IDLE ? bind_to_any(id, dst->v6) : 0;
    if (rc)
        return rc;
    if (id->state != CM_ID_BOUND)
        return -EINVAL;
    if (!can_use_device(id))
        return cm_addr_failed(id, -EINVAL);
    uint16_t port = id->bind.addr.port;
    id->bind.addr = *src;
    id->bind.addr.port = port;
    id->dst = *dst;
    id->route = *route;
    id->state = CM_ID_ADDR_RESOLVED;
    cm_id_report_status(id, CM_EVENT_ADDR_RESOLVED, 0);
    CM_CHECK(id->cm);
    return 0;
}

int cm_addr_failed(struct cm_id *id, int status)
{
    if (id->state != CM_ID_IDLE && id->state != CM_ID_BOUND)
        return -EINVAL;
    id->last_status = status;
    cm_id_report_status(id, CM_EVENT_ADDR_ERROR, status);
    return 0;
}

int cm_resolve_route(struct cm_id *id)
{
    if (id->state != CM_ID_ADDR_RESOLVED)
        return -EINVAL;
    if (id->tos_set)
        id->route.traffic_class = id->tos;
    id->state = CM_ID_ROUTE_RESOLVED;
    cm_id_report_status(id, CM_EVENT_ROUTE_RESOLVED, 0);
    return 0;
}

int cm_listen(struct cm_id *id, uint32_t backlog)
{
    int rc = id->state == CM_ID_IDLE ? bind_to_any(id, false) : 0;
    if (rc)
        return rc;
    if (id->state != CM_ID_BOUND)
        return -EINVAL;
    if (id->bind.reuseaddr && (rc = port_space_may_listen(&id->cm->ports, &id->bind)) != 0)
        return rc;
    id->backlog = backlog ? backlog : 1;
    id->bind.listening = true;
    id->state = CM_ID_LISTEN;
    CM_CHECK(id->cm);
    return 0;
}
