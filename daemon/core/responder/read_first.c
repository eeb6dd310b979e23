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

/* --- small READs ------------------------------------------------------------------------------- */

/* READs that are read together. */
struct together {
    unsigned n, nsegments;
    struct resource *res[TX_BATCH_PKTS];
    struct buf buf[TX_BATCH_PKTS];
    struct mem_segment segment[TX_BATCH_PKTS + READ_SMALL];
};

static bool add(struct qp *qp, struct together *t, struct resource *res)
{
    struct sge_iter from;
    resp_remote_iter(qp, &from, res->pd, res->rkey, res->va, res->length, ACCESS_REMOTE_READ);
    int n = sge_iter_segments(&from, t->segment + t->nsegments, READ_SMALL);
    if (n <= 0 || !sge_iter_done(&from))
        return false;
    t->nsegments += (unsigned)n;
    t->res[t->n] = res;
    t->buf[t->n++] = (struct buf){.p = res->data, .len = res->length};
    return true;
}

/* Adds the small READs that came after this one, up to one that cannot be read now. */
static void add_following(struct qp *qp, struct together *t, const struct resource *res)
{
    struct responder *r = qp->resp;
    for (uint32_t i = resp_resource_index(r, res) + 1; i != r->res_tail && t->n < r->res_unread; i++) {
        struct resource *next = resp_resource(r, i);
        if (!resource_is_unread(next) || next->length > READ_SMALL)
            continue;
        if (t->n == TX_BATCH_PKTS || t->nsegments > TX_BATCH_PKTS || next->pd != res->pd || !add(qp, t, next))
            return;
    }
}

static enum copied keep(struct qp *qp, struct resource *res)
{
    struct together t;
    t.n = t.nsegments = 0; /* the lists stay as they are: they are long */
    if (!add(qp, &t, res))
        return COPY_REFUSED;
    unsigned segments = t.nsegments;
    if (!res->again)
        add_following(qp, &t, res);
    const struct mem_access *mem = &qp->e->mem;
    int err = mem->ops->read(mem->ctx, t.segment, t.nsegments, t.buf, t.n);
    if (err && t.n > 1) { /* each one has an error of its own, or none */
        t.n = 1;
        err = mem->ops->read(mem->ctx, t.segment, segments, t.buf, 1);
    }
    if (err < 0)
        return COPY_FAILED;
    if (err == MEM_UNMAPPED)
        COUNT(qp, mem_unmapped);
    for (unsigned i = 0; i < t.n; i++)
        resp_set_kept(qp, t.res[i]);
    return COPIED;
}

/* --- all READs --------------------------------------------------------------------------------- */

bool read_first_copy(struct qp *qp)
{
    struct responder *r = qp->resp;
    for (uint32_t i = r->res_first; i != r->res_tail && r->res_unread; i++) {
        struct resource *res = resp_resource(r, i);
        if (!resource_is_unread(res))
            continue;
        if (res->length > READ_SMALL ? !copy(qp, res) : keep(qp, res) != COPIED) {
            r->stalled = true;
            return false;
        }
    }
    return true;
}

enum copied read_first_data(struct qp *qp, struct resource *res, const struct buf *buf, uint32_t n, uint32_t bytes)
{
    uint64_t off = (uint64_t)res->next_pkt * qp->mtu;
    if (res->length > READ_SMALL && !res->copied)
        return gather(qp, res, off, buf, n, bytes);
    if (res->length > 0 && res->length <= READ_SMALL && !res->kept) {
        enum copied result = keep(qp, res);
        if (result != COPIED)
            return result;
    }
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
