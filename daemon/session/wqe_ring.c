// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/session/wqe_ring.h"

#include <string.h>

#include "wire/pkt.h"

_Static_assert(sizeof(struct sge) == sizeof(struct pm_sge), "SGEs are copied as they are");

/* Copies memory such that the compiler can't replace the copy by later loads of the source. */
static void copy_once(void *dst, const void *src, size_t len)
{
    memcpy(dst, src, len);
    atomic_signal_fence(memory_order_seq_cst);
    __asm__ volatile("" : : "r"(dst) : "memory");
}

int64_t ring_waiting(const struct ring *r)
{
    if (r->slots == 0)
        return 0;
    uint32_t n = atomic_load_explicit(r->tail, memory_order_acquire) - r->head;
    return n <= r->slots ? (int64_t)n : -1;
}

const char *ring_verdict_text(enum ring_verdict v)
{
    switch (v) {
    case RING_BAD_SGE:
        return "a request with more SGEs than the queue pair has";
    case RING_BAD_OP:
        return "a list operation that does not exist";
    case RING_BAD_INLINE:
        return "a request with more inline data than the queue pair takes";
    case RING_OK:
        break;
    }
    return "a good request";
}

static void read_ud(const struct pm_send_wqe *w, const uint8_t *at, struct ud_dest *ud)
{
    struct pm_av av;

    copy_once(&av, at, sizeof(av));
    memcpy(ud->av.dgid, av.dgid, sizeof(ud->av.dgid));
    ud->av.sgid_index = av.sgid_index;
    ud->av.traffic_class = av.traffic_class;
    ud->av.hop_limit = av.hop_limit;
    ud->av.sl = av.sl;
    ud->av.flow_label = av.flow_label;
    ud->qpn = w->remote_qpn & QPN_MASK; /* as many bits as the packet's field has */
    ud->qkey = w->remote_qkey;
}

/* Values that don't fit become values that the engine refuses. */
static void read_flush(const struct pm_send_wqe *w, struct flush *flush)
{
    *flush = (struct flush){
        .length = w->compare_add <= UINT32_MAX ? (uint32_t)w->compare_add : UINT32_MAX,
        .placement = (uint8_t)w->swap,
        .selectivity = w->swap >> 8 <= UINT8_MAX ? (uint8_t)(w->swap >> 8) : UINT8_MAX,
    };
}

static void read_bind(const struct pm_send_wqe *w, struct mw_bind *bind)
{
    *bind = (struct mw_bind){
        .mw_key = w->rkey,
        .new_key = w->imm,
        .mr_key = w->mr_key,
        .access = w->srqn,
        .addr = w->remote_addr,
        .length = w->compare_add,
    };
}

enum ring_verdict ring_read_send(const struct ring *r, struct send_slot *out)
{
    const uint8_t *slot = r->base + (size_t)(r->head & (r->slots - 1)) * r->stride;
    const uint8_t *body = slot + sizeof(struct pm_send_wqe);
    struct pm_send_wqe w;
    struct send_wr *wr = out->wr;

    copy_once(&w, slot, sizeof(w));
    wr->wr_id = w.wr_id;
    wr->slot = r->head;
    wr->opcode = w.opcode;
    wr->flags = w.flags;
    wr->num_sge = 0;
    wr->inline_len = 0;
    memcpy(wr->imm, &w.imm, sizeof(wr->imm));
    wr->inv_rkey = w.imm;
    wr->remote_addr = w.remote_addr;
    wr->rkey = w.rkey;
    wr->compare_add = w.compare_add;
    wr->swap = w.swap;
    wr->srqn = w.srqn & QPN_MASK; /* as many bits as the packet's field has */
    if (r->has_av) {
        read_ud(&w, body, &wr->ud);
        body += sizeof(struct pm_av);
    } else if (w.opcode == WR_BIND_MW) {
        read_bind(&w, &wr->bind);
    } else if (w.opcode == WR_FLUSH) {
        read_flush(&w, &wr->flush);
    }
    if (w.flags & PM_SEND_INLINE) {
        if (w.inline_len > r->max_inline || w.inline_len > out->max_inline)
            return RING_BAD_INLINE;
        wr->inline_len = w.inline_len;
        copy_once(out->data, body, w.inline_len);
        return RING_OK;
    }
    if (w.num_sge > r->max_sge || w.num_sge > out->max_sge)
        return RING_BAD_SGE;
    wr->num_sge = w.num_sge;
    copy_once(out->sge, body, w.num_sge * sizeof(out->sge[0]));
    return RING_OK;
}

enum ring_verdict ring_read_recv(const struct ring *r, struct ring_recv *out)
{
    const uint8_t *slot = r->base + (size_t)(r->head & (r->slots - 1)) * r->stride;
    struct pm_recv_wqe w;

    copy_once(&w, slot, sizeof(w));
    if (w.num_sge > r->max_sge || w.num_sge > ENGINE_MAX_SGE)
        return RING_BAD_SGE;
    out->wr.wr_id = w.wr_id;
    out->wr.slot = r->has_wqe_index ? w.wqe_index : r->head;
    out->wr.num_sge = (uint8_t)w.num_sge;
    copy_once(out->sge, slot + sizeof(w), w.num_sge * sizeof(out->sge[0]));
    return RING_OK;
}

uint32_t ring_posted_us(const struct ring *r)
{
    const uint8_t *slot = r->base + (size_t)(r->head & (r->slots - 1)) * r->stride;
    struct pm_recv_wqe w;

    copy_once(&w, slot, sizeof(w));
    return w.wqe_index;
}

enum ring_verdict ring_read_tm_op(const struct ring *r, struct ring_tm_op *out)
{
    const uint8_t *slot = r->base + (size_t)(r->head & (r->slots - 1)) * r->stride;
    struct pm_tm_op w;

    copy_once(&w, slot, sizeof(w));
    if (w.opcode > TM_SYNC)
        return RING_BAD_OP;
    if (w.opcode != TM_ADD)
        w.num_sge = 0;
    if (w.num_sge > r->max_sge || w.num_sge > TM_MAX_SGE)
        return RING_BAD_SGE;
    out->op = (struct tm_op){
        .wr_id = w.wr_id,
        .slot = w.handle,
        .tag = w.tag,
        .mask = w.mask,
        .recv_wr_id = w.recv_wr_id,
        .unexpected_cnt = w.unexpected_cnt,
        .handle = w.handle,
        .opcode = w.opcode,
        .flags = w.flags & (PM_TM_OP_SIGNALED | PM_TM_OP_SYNC),
        .num_sge = w.num_sge,
        .sge = out->sge,
    };
    copy_once(out->sge, slot + sizeof(w), w.num_sge * sizeof(out->sge[0]));
    return RING_OK;
}

static uint32_t send_head(bool has_av)
{
    return (uint32_t)(sizeof(struct pm_send_wqe) + (has_av ? sizeof(struct pm_av) : 0));
}

uint32_t ring_send_stride(uint32_t max_sge, uint32_t max_inline, bool has_av)
{
    uint32_t sges = max_sge * (uint32_t)sizeof(struct pm_sge);
    uint32_t body = sges > max_inline ? sges : max_inline;

    return (send_head(has_av) + body + 63) & ~63u;
}

uint32_t ring_send_room(uint32_t max_sge, uint32_t max_inline, bool has_av)
{
    return ring_send_stride(max_sge, max_inline, has_av) - send_head(has_av);
}

uint32_t ring_recv_stride(uint32_t max_sge)
{
    return (uint32_t)sizeof(struct pm_recv_wqe) + max_sge * (uint32_t)sizeof(struct pm_sge);
}

uint32_t ring_tm_stride(uint32_t max_sge)
{
    return (uint32_t)sizeof(struct pm_tm_op) + max_sge * (uint32_t)sizeof(struct pm_sge);
}

uint32_t ring_slots(uint32_t max_wr)
{
    uint32_t slots = max_wr ? 1 : 0;

    while (slots < max_wr)
        slots *= 2;
    return slots;
}
