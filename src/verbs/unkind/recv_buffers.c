// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/unkind/recv_buffers.h"

#include <sys/uio.h>

#include "src/verbs/base/clock.h"
#include "src/verbs/memory/mr.h"

#define PATTERN 0xdb
#define BLOCK 4096u
#define BLOCKS 16u
#define FILL_MAX (BLOCK * BLOCKS) /* bytes that are filled at each end of a buffer */

/* The system call, and not a loop, because the program may have unmapped or protected the memory. Then nothing is
 * filled. */
static void fill(uint8_t *p, size_t len)
{
    static const uint8_t block[BLOCK] = {[0 ... BLOCK - 1] = PATTERN};
    struct iovec from[BLOCKS], to = {p, len};
    unsigned n = 0;
    for (size_t left = len; left; n++) {
        size_t part = left < BLOCK ? left : BLOCK;
        from[n] = (struct iovec){(void *)(uintptr_t)block, part};
        left -= part;
    }
    ssize_t done = process_vm_writev(getpid(), from, n, &to, 1, 0);
    (void)done;
}

/* The memory of an SGE; NULL: it is not in a region that the device may write, or not in private memory. */
static uint8_t *memory_of(struct vb_context *c, const struct pm_sge *s)
{
    const struct vb_mr *mr = vb_table_get(&c->mrs, s->lkey >> 8);
    if (!mr || mr->mr.lkey != s->lkey || mr->dm || !mr->mr.addr || !(mr->access & IBV_ACCESS_LOCAL_WRITE) ||
        s->addr < mr->iova || s->addr - mr->iova > mr->mr.length || s->length > mr->mr.length - (s->addr - mr->iova))
        return NULL;
    return (uint8_t *)mr->mr.addr + (s->addr - mr->iova);
}

static void fill_sge(struct vb_context *c, const struct pm_sge *s)
{
    uint8_t *p = memory_of(c, s);
    uint32_t first = s->length < FILL_MAX ? s->length : FILL_MAX, last = s->length - first;
    if (!p || !s->length)
        return;
    fill(p, first);
    last = last < FILL_MAX ? last : FILL_MAX;
    if (last)
        fill(p + s->length - last, last);
}

static bool overlap(const struct pm_sge *a, const struct pm_sge *sge, uint32_t num)
{
    for (uint32_t i = 0; i < num; i++) {
        if (a->addr < sge[i].addr + sge[i].length && sge[i].addr < a->addr + a->length)
            return true;
    }
    return false;
}

/* --- of a QP --- */

static bool queue_has(const struct vb_queue *q, uint32_t next, const struct pm_sge *s)
{
    for (uint32_t i = atomic_load_explicit(&q->head, memory_order_acquire); i != next; i++) {
        const struct pm_recv_wqe *w = ring_slot(q->ring, q->stride, q->mask, i);
        if (overlap(s, (const struct pm_sge *)(w + 1), w->num_sge < q->max_sge ? w->num_sge : q->max_sge))
            return true;
    }
    return false;
}

void vb_unkind_posted(struct vb_qp *qp, struct pm_recv_wqe *w, uint32_t next)
{
    struct vb_context *c = vb_ctx(qp->qp.context);
    const struct pm_sge *sge = (const struct pm_sge *)(w + 1);
    for (uint32_t i = 0; c->caps.unkind & UNKIND_BUFFERS && i < w->num_sge; i++) {
        if (!queue_has(&qp->rq, next, &sge[i]))
            fill_sge(c, &sge[i]);
    }
    /* The daemon compares it with the time at which a message comes. */
    w->wqe_index = (uint32_t)(vb_clock(CLOCK_MONOTONIC) / 1000);
}

/* --- of an SRQ --- */

static bool srq_has(struct vb_srq *srq, uint32_t but, const struct pm_sge *s)
{
    for (uint32_t i = 0; i < srq->capacity; i++) {
        const struct vb_srq_req *r = vb_srq_req(srq, i);
        if (i != but && r->next == VB_SRQ_OUT && overlap(s, r->sge, r->num_sge))
            return true;
    }
    return false;
}

void vb_unkind_srq_posted(struct vb_srq *srq, uint32_t wqe_index)
{
    struct vb_context *c = vb_ctx(srq->srq.context);
    const struct vb_srq_req *r = vb_srq_req(srq, wqe_index);
    for (uint32_t i = 0; c->caps.unkind & UNKIND_BUFFERS && i < r->num_sge; i++) {
        if (!srq_has(srq, wqe_index, &r->sge[i]))
            fill_sge(c, &r->sge[i]);
    }
}

void vb_unkind_failed(struct vb_context *c, const struct pm_sge *sge, uint32_t num)
{
    for (uint32_t i = 0; c->caps.unkind & UNKIND_BUFFERS && i < num; i++)
        fill_sge(c, &sge[i]);
}
