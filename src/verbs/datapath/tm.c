// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/tm.h"

#include <errno.h>
#include <stdlib.h>

#include "src/verbs/base/sge.h"
#include "src/verbs/session/context.h"

#define SLOT_MASK ((1u << PM_TM_SLOT_BITS) - 1)
#define NEXT_GENERATION (1u << PM_TM_SLOT_BITS)
#define OPS_FLAGS (IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC)

_Static_assert((int)PM_TM_OP_SIGNALED == IBV_OPS_SIGNALED && (int)PM_TM_OP_SYNC == IBV_OPS_TM_SYNC,
               "the flags go to the daemon unchanged");

/* --- slots ------------------------------------------------------------------------------------ */

static void put_free(struct vb_tm *tm, uint32_t slot)
{
    tm->entry[slot].next = VB_TM_NONE;
    if (tm->first == VB_TM_NONE)
        tm->first = slot;
    else
        tm->entry[tm->last].next = slot;
    tm->last = slot;
}

struct vb_tm *vb_tm_new(void *segment, const struct pm_create_srq_req *req, const struct pm_create_srq_rep *rep,
                        uint32_t max_sge)
{
    struct vb_tm *tm =
        calloc(1, sizeof(*tm) + req->max_num_tags * sizeof(tm->entry[0]) + req->max_ops * sizeof(tm->signaled[0]));
    if (!tm)
        return NULL;
    tm->signaled = (struct vb_tm_signaled *)(tm->entry + req->max_num_tags);
    tm->ring = (uint8_t *)segment + rep->ops_offset;
    tm->mask = rep->ops_slots - 1;
    tm->stride = rep->ops_stride;
    tm->max_ops = req->max_ops;
    tm->max_num_tags = req->max_num_tags;
    tm->max_sge = max_sge;
    tm->first = VB_TM_NONE;
    for (uint32_t i = 0; i < tm->max_num_tags; i++) {
        tm->entry[i].handle = i;
        put_free(tm, i);
    }
    return tm;
}

/* One completion of the entry in this slot was polled, or will never come. */
static void release(struct vb_tm *tm, uint32_t slot)
{
    if (slot < tm->max_num_tags && tm->entry[slot].waits && --tm->entry[slot].waits == 0)
        put_free(tm, slot);
}

/* Calls release() for the entry with this handle, unless another entry uses the slot meanwhile. */
static void release_handle(struct vb_tm *tm, uint32_t handle)
{
    uint32_t slot = handle & SLOT_MASK;
    if (slot < tm->max_num_tags && tm->entry[slot].handle == handle)
        release(tm, slot);
}

/* --- the end of operations -------------------------------------------------------------------- */

/* Notes which operations the daemon has carried out. Acquire: pairs with the release store of ops_head by the daemon.
 * So this thread sees `deleted`, and the daemon has read the slots that this thread writes next. */
static void note_done(struct vb_srq *srq)
{
    struct vb_tm *tm = srq->tm;
    uint32_t head = atomic_load_explicit(&srq->page->ops_head, memory_order_acquire);
    for (; tm->seen != head && tm->seen != tm->tail; tm->seen++) {
        const struct pm_tm_op *w = ring_slot(tm->ring, tm->stride, tm->mask, tm->seen);
        if (w->flags & PM_TM_OP_SIGNALED)
            continue;
        tm->outstanding--;
        if (w->opcode == IBV_WR_TAG_DEL && w->deleted)
            release_handle(tm, w->handle);
    }
}

/* Notes that the completion of a list operation was polled. */
static void retire_op(struct vb_tm *tm, const struct pm_cqe *e)
{
    if (tm->outstanding)
        tm->outstanding--;
    if (tm->signaled_count) {
        tm->signaled_count--;
        tm->signaled_head = tm->signaled_head + 1 < tm->max_ops ? tm->signaled_head + 1 : 0;
    }
    if (e->opcode == IBV_WC_TM_ADD) {
        release_handle(tm, e->slot);
        if (e->status != IBV_WC_SUCCESS) /* the ADD was refused, so the entry receives nothing */
            release_handle(tm, e->slot);
    } else if (e->opcode == IBV_WC_TM_DEL && e->status == IBV_WC_SUCCESS) {
        release_handle(tm, e->slot);
    }
}

void vb_tm_retire(struct vb_srq *srq, const struct pm_cqe *e)
{
    if (e->kind & PM_CQE_TM_OP)
        retire_op(srq->tm, e);
    else if (e->status != IBV_WC_SUCCESS || e->wc_flags & IBV_WC_TM_DATA_VALID)
        /* the last completion of the entry */
        release(srq->tm, e->slot);
}

/* --- after the death of the daemon ------------------------------------------------------------ */

bool vb_tm_flush_next(struct vb_srq *srq, struct vb_flushed *out)
{
    struct vb_tm *tm = srq->tm;
    note_done(srq);
    if (tm->signaled_count) {
        const struct vb_tm_signaled *t = &tm->signaled[tm->signaled_head];
        struct pm_cqe e = {.opcode = t->opcode, .status = IBV_WC_WR_FLUSH_ERR, .slot = t->handle};
        *out = (struct vb_flushed){t->wr_id, t->opcode};
        retire_op(tm, &e);
        return true;
    }
    for (uint32_t i = 0; i < tm->max_num_tags; i++) {
        if (tm->entry[i].waits) {
            *out = (struct vb_flushed){tm->entry[i].recv_wr_id, IBV_WC_TM_RECV};
            release(tm, i);
            return true;
        }
    }
    tm->seen = tm->tail; /* the daemon will never carry out the unsignaled operations */
    tm->outstanding = 0;
    return false;
}

/* --- posting ---------------------------------------------------------------------------------- */

static bool has_room(const struct vb_tm *tm)
{
    return tm->outstanding < tm->max_ops && tm->tail - tm->seen <= tm->mask;
}

/* Takes a free slot. Returns the handle of the new entry, or VB_TM_NONE if no slot is free. */
static uint32_t new_handle(struct vb_tm *tm, bool signaled)
{
    uint32_t slot = tm->first;
    if (slot == VB_TM_NONE)
        return VB_TM_NONE;
    struct vb_tm_entry *e = &tm->entry[slot];
    tm->first = e->next;
    e->handle += NEXT_GENERATION;
    e->waits = signaled ? 2 : 1;
    return e->handle;
}

static bool valid(const struct vb_tm *tm, const struct ibv_ops_wr *wr)
{
    if (wr->flags & ~OPS_FLAGS)
        return false;
    if (wr->opcode != IBV_WR_TAG_ADD)
        return wr->opcode == IBV_WR_TAG_DEL || wr->opcode == IBV_WR_TAG_SYNC;
    int n = wr->tm.add.num_sge;
    return n >= 0 && (uint32_t)n <= tm->max_sge && (n == 0 || wr->tm.add.sg_list);
}

static uint8_t completion_of(enum ibv_ops_wr_opcode opcode)
{
    return opcode == IBV_WR_TAG_ADD ? IBV_WC_TM_ADD : opcode == IBV_WR_TAG_DEL ? IBV_WC_TM_DEL : IBV_WC_TM_SYNC;
}

/* Writes one operation at the tail. Returns 0 or an errno value. */
static int put(struct vb_srq *srq, struct ibv_ops_wr *wr)
{
    struct vb_tm *tm = srq->tm;
    bool adds = wr->opcode == IBV_WR_TAG_ADD;
    if (!valid(tm, wr))
        return EINVAL;
    if (!has_room(tm) || (adds && tm->first == VB_TM_NONE))
        note_done(srq);
    if (!has_room(tm))
        return ENOMEM;
    uint32_t handle = wr->opcode == IBV_WR_TAG_DEL ? wr->tm.handle : 0;
    if (adds && (handle = new_handle(tm, wr->flags & IBV_OPS_SIGNALED)) == VB_TM_NONE)
        return ENOMEM;
    struct pm_tm_op *w = ring_slot(tm->ring, tm->stride, tm->mask, tm->tail);
    *w = (struct pm_tm_op){.wr_id = wr->wr_id,
                           .handle = handle,
                           .unexpected_cnt = wr->tm.unexpected_cnt,
                           .opcode = (uint8_t)wr->opcode,
                           .flags = (uint8_t)wr->flags};
    if (adds) {
        w->recv_wr_id = wr->tm.add.recv_wr_id;
        w->tag = wr->tm.add.tag;
        w->mask = wr->tm.add.mask;
        w->num_sge = (uint8_t)wr->tm.add.num_sge;
        if (w->num_sge)
            memcpy(w + 1, wr->tm.add.sg_list, w->num_sge * sizeof(struct pm_sge));
        wr->tm.handle = handle;
        tm->entry[handle & SLOT_MASK].recv_wr_id = wr->tm.add.recv_wr_id;
    }
    if (wr->flags & IBV_OPS_SIGNALED)
        tm->signaled[(tm->signaled_head + tm->signaled_count++) % tm->max_ops] =
            (struct vb_tm_signaled){wr->wr_id, handle, completion_of(wr->opcode)};
    tm->tail++;
    tm->outstanding++;
    return 0;
}

int vb_post_srq_ops(struct ibv_srq *ibsrq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr)
{
    struct vb_srq *srq = vb_srq(ibsrq);
    struct vb_context *c = vb_ctx(ibsrq->context);
    int rc = !vb_owned(c) ? EIO : !srq->tm ? EINVAL : 0;
    if (rc == 0) {
        pthread_mutex_lock(&srq->lock);
        uint32_t before = srq->tm->tail;
        while (wr && (rc = put(srq, wr)) == 0)
            wr = wr->next;
        if (srq->tm->tail != before) {
            /* Release: pairs with the acquire load by the daemon, so that it sees the operations that it counts. */
            atomic_store_explicit(&srq->page->ops_tail, srq->tm->tail, memory_order_release);
            vb_doorbell(c, srq->doorbell);
        }
        pthread_mutex_unlock(&srq->lock);
    }
    if (rc && bad_wr)
        *bad_wr = wr;
    return rc;
}
