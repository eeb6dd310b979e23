// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/responder/read_first.h"

#include <string.h>

#include "daemon/core/qp/resource.h"

/* Gathers bytes of a READ from memory. */
static enum copied gather(struct qp *qp, const struct resource *res, uint64_t off, const struct buf *buf, uint32_t n,
                          uint32_t bytes)
{
    struct sge_iter from;
    resp_remote_iter(qp, &from, res->pd, res->rkey, res->va + off, bytes, ACCESS_REMOTE_READ);
    return resp_read(qp, &from, buf, n);
}

static bool is_allowed(struct qp *qp, const struct resource *res)
{
    struct sge_iter from;
    resp_remote_iter(qp, &from, res->pd, res->rkey, res->va, res->length, ACCESS_REMOTE_READ);
    return sge_iter_allowed(&from);
}

/* False: there is no room, or the memory is gone. In the second case the QP fails when it sends the response. */
static bool copy(struct qp *qp, struct resource *res)
{
    uint64_t off = (uint64_t)res->next_pkt * qp->mtu;
    uint32_t bytes = res->length - (uint32_t)off;
    uint8_t *to = read_copies_take(&qp->e->copies, bytes);
    if (!to)
        return false;
    if (gather(qp, res, off, &(struct buf){.p = to, .len = bytes}, 1, bytes) != COPIED) {
        read_copies_put(&qp->e->copies);
        return false;
    }
    resp_set_copy(qp, res, to);
    return true;
}

bool read_first_copy(struct qp *qp)
{
    struct responder *r = qp->resp;
    for (uint32_t i = r->res_first; i != r->res_tail && r->res_unread; i++) {
        struct resource *res = resp_resource(r, i);
        if (resource_is_unread(res) && !copy(qp, res)) {
            r->stalled = true;
            return false;
        }
    }
    return true;
}

enum copied read_first_data(struct qp *qp, const struct resource *res, const struct buf *buf, uint32_t n,
                            uint32_t bytes)
{
    uint64_t off = (uint64_t)res->next_pkt * qp->mtu;
    if (res->length > READ_SMALL && !res->copied)
        return gather(qp, res, off, buf, n, bytes);
    if (res->again && !is_allowed(qp, res)) /* the key was revoked since the first answer */
        return COPY_REFUSED;
    const uint8_t *from = res->copied ? res->copy + (off - (uint64_t)res->copy_pkt * qp->mtu) : res->data;
    for (uint32_t i = 0; i < n; i++) {
        if (buf[i].len)
            memcpy(buf[i].p, from, buf[i].len);
        from += buf[i].len;
    }
    return COPIED;
}
