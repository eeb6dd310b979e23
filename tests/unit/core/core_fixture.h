// SPDX-License-Identifier: BSD-2-Clause
/* One engine with plain memory, for tests that call the engine's API and forge packets. */
#ifndef PUMICE_TESTS_UNIT_CORE_CORE_FIXTURE_H
#define PUMICE_TESTS_UNIT_CORE_CORE_FIXTURE_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/engine.h"
#include "wire/syndrome.h"

#define FIX_MEM 8192u /* bytes of memory, at virtual address FIX_VA of space 1 */
#define FIX_VA 0x10000u
#define FIX_PD 7u

struct fixture {
    void *mem;
    struct engine *e;
    struct engine_config cfg;
    uint8_t bytes[FIX_MEM];
    void *qpmem[32];
    unsigned nqpmem;
    uint64_t now;
    unsigned reads, writes, atomics; /* number of upcalls */
    unsigned refills; /* number of refills of SRQs */
    struct srq *refill_srq; /* the SRQ that gets requests in a refill */
    unsigned refill_left; /* the number of requests left for refills */
    bool other_device; /* the peer is no Pumice device */
    bool gone; /* memory can't be changed any more */
    bool unmapped; /* memory reads as zeros */
};

static inline uint8_t *fix_at(struct fixture *f, const struct mem_segment *p)
{
    cr_assert(p->space == 1 && p->va >= FIX_VA && p->len <= FIX_MEM && p->va - FIX_VA <= FIX_MEM - p->len,
              "upcall for %u bytes at %#llx of space %u", p->len, (unsigned long long)p->va, p->space);
    return f->bytes + (p->va - FIX_VA);
}

static inline int fix_read(void *ctx, const struct mem_segment *src, unsigned nsrc, const struct buf *dst,
                           unsigned ndst)
{
    struct fixture *f = ctx;
    uint8_t all[8 * FIX_MEM];
    size_t n = 0, at = 0;
    f->reads++;
    for (unsigned i = 0; i < nsrc; i++) {
        cr_assert(n + src[i].len <= sizeof all);
        memcpy(all + n, fix_at(f, &src[i]), src[i].len);
        n += src[i].len;
    }
    for (unsigned i = 0; i < ndst; i++) {
        memcpy(dst[i].p, all + at, dst[i].len);
        at += dst[i].len;
    }
    cr_assert(at == n);
    for (unsigned i = 0; i < ndst && f->unmapped; i++) {
        memset(dst[i].p, 0, dst[i].len);
    }
    return f->unmapped ? MEM_UNMAPPED : 0;
}

static inline int fix_write(void *ctx, uint32_t qpn, const struct mem_segment *dst, unsigned ndst, const uint8_t *src,
                            size_t len)
{
    struct fixture *f = ctx;
    (void)qpn;
    (void)len;
    f->writes++;
    if (f->gone) {
        return -1;
    }
    for (unsigned i = 0; i < ndst; i++) {
        memcpy(fix_at(f, &dst[i]), src, dst[i].len);
        src += dst[i].len;
    }
    return 0;
}

static inline int fix_atomic(void *ctx, const struct mem_segment *where, enum mem_atomic op, uint64_t compare_add,
                             uint64_t swap, uint64_t *old)
{
    struct fixture *f = ctx;
    uint8_t *p = fix_at(f, where);
    f->atomics++;
    if (f->gone) {
        return -1;
    }
    if (f->unmapped) {
        *old = 0;
        return MEM_UNMAPPED;
    }
    memcpy(old, p, 8);
    uint64_t new = op == MEM_FETCH_ADD ? *old + compare_add : *old == compare_add ? swap : *old;
    memcpy(p, &new, 8);
    return 0;
}

/* The requests in the owner's ring have slots from 1000 on, and no buffer. */
static inline void fix_refill_srq(void *ctx, void *srq_owner)
{
    struct fixture *f = ctx;
    (void)srq_owner;
    f->refills++;
    while (f->refill_srq && f->refill_left > 0 && srq_room(f->refill_srq) > 0) {
        struct recv_wr wr = {.wr_id = 1, .slot = 1000 + --f->refill_left};
        cr_assert_eq(srq_post_recv(f->refill_srq, &wr, NULL), 0);
    }
}

static inline void *fix_zalloc(size_t n)
{
    void *p = aligned_alloc(64, (n + 63) / 64 * 64);
    cr_assert(p);
    return memset(p, 0, (n + 63) / 64 * 64);
}

/* An owner that always posts at once. */
static const struct owner_ops fix_no_refill = {0};

static inline void fix_init_with(struct fixture *f, uint32_t max_qp, uint32_t event_slots)
{
    static const struct mem_ops ops = {.read = fix_read, .write = fix_write, .atomic = fix_atomic};
    static const struct owner_ops owner_ops = {.refill_srq = fix_refill_srq};
    memset(f, 0, sizeof *f);
    engine_config_defaults(&f->cfg);
    f->cfg.max_qp = max_qp;
    f->cfg.max_mr = 8;
    f->cfg.max_srq = 4;
    f->cfg.max_peers = 4;
    f->cfg.completion_slots = 64;
    f->cfg.event_slots = event_slots;
    f->cfg.active_mtu = 4; /* 2048 */
    f->cfg.first_window_bytes = UINT64_MAX; /* windows begin at their largest */
    f->cfg.num_gids = 1;
    f->cfg.gids[0][15] = 1;
    f->mem = fix_zalloc(engine_size(&f->cfg));
    f->e = engine_init(f->mem, &f->cfg, &ops, f, &owner_ops, f);
    cr_assert(f->e);
}

static inline void fix_init(struct fixture *f)
{
    fix_init_with(f, 8, 16);
}

static inline void fix_fini(struct fixture *f)
{
    for (unsigned i = 0; i < f->nqpmem; i++) {
        free(f->qpmem[i]);
    }
    free(f->mem);
}

static inline struct qp *fix_qp_of(struct fixture *f, enum qp_type type)
{
    struct qp_init init = {
        .type = (uint8_t)type, .pd = FIX_PD, .caps = {4, 4, 2, 2, 32}, .send_cq = f, .recv_cq = f, .owner = f};
    struct qp *qp = NULL;
    void *mem = f->qpmem[f->nqpmem++] = fix_zalloc(qp_size(&init));
    cr_assert_eq(qp_create(f->e, &init, mem, &qp), 0);
    return qp;
}

static inline struct qp *fix_qp(struct fixture *f)
{
    return fix_qp_of(f, QPT_RC);
}

/* Valid values for every attribute. The peer is address ::2, QP 1234. */
static inline struct qp_attr fix_attr(void)
{
    struct qp_attr a = {.port = 1,
                        .path_mtu = 1,
                        .timeout = 14,
                        .retry_cnt = 5,
                        .rnr_retry = 6,
                        .min_rnr_timer = 12,
                        .max_rd_atomic = 3,
                        .max_dest_rd_atomic = 2,
                        .dest_qpn = 1234,
                        .rq_psn = 100,
                        .sq_psn = 200,
                        .qkey = 0x1234};
    a.access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
    a.av.dgid[15] = 2;
    return a;
}

/* The attributes that a transition to this state requires. */
static inline uint32_t fix_required_of(enum qp_type type, enum qp_state from, enum qp_state to)
{
    if (from == QPS_RESET && to == QPS_INIT) {
        return QPA_PKEY_INDEX | QPA_PORT | (type == QPT_UD ? QPA_QKEY : QPA_ACCESS_FLAGS);
    }
    if (from == QPS_INIT && to == QPS_RTR) {
        uint32_t path = QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN;
        return type == QPT_UD                           ? 0
               : type == QPT_UC || type == QPT_XRC_SEND ? path
                                                        : path | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER;
    }
    if (from == QPS_RTR && to == QPS_RTS) {
        uint32_t retries = QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC;
        return type == QPT_RC || type == QPT_XRC_SEND ? QPA_SQ_PSN | retries
               : type == QPT_XRC_RECV                 ? QPA_SQ_PSN | QPA_TIMEOUT
                                                      : QPA_SQ_PSN;
    }
    return 0;
}
static inline uint32_t fix_required(enum qp_state from, enum qp_state to)
{
    return fix_required_of(QPT_RC, from, to);
}

static inline int fix_modify(struct qp *qp, enum qp_state to)
{
    struct qp_attr a = fix_attr();
    const char *why = NULL;
    struct qp_info info;
    qp_info(qp, &info);
    a.state = (uint8_t)to;
    uint32_t mask = QPA_STATE | fix_required_of((enum qp_type)info.type, qp_state(qp), to);
    int err = qp_modify(qp, &a, mask, &why);
    cr_assert_eq(err == 0, why == NULL, "an error has a reason, success has none");
    return err;
}

/* Brings a QP from RESET to any state but SQE. */
static inline void fix_bring(struct qp *qp, enum qp_state to)
{
    static const enum qp_state way[] = {QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD};
    if (to == QPS_ERR) {
        cr_assert_eq(fix_modify(qp, QPS_ERR), 0);
        return;
    }
    for (int i = 0; i < 4 && qp_state(qp) != to; i++) {
        cr_assert_eq(fix_modify(qp, way[i]), 0);
    }
    cr_assert_eq(qp_state(qp), to);
}

/* Gives the engine a packet from the peer. */
static inline void fix_rx(struct fixture *f, struct pkt *p)
{
    struct rx_meta meta = {
        .src_gid = {[15] = 2}, .dst_gid = {[15] = 1}, .hop_limit = 64, .like_pumice = !f->other_device};
    p->migreq = true;
    p->pkey = PKEY_DEFAULT;
    engine_rx(f->e, p, &meta, f->now);
}

/* Sends all packets that are due and returns their number. The first `max` of them are decoded into out. */
static inline uint32_t fix_tx(struct fixture *f, uint8_t buf[65536], struct pkt *out, uint32_t max)
{
    struct tx_batch b = {.buf = buf, .cap = 65536};
    uint32_t n = engine_tx(f->e, &b, f->now);
    for (uint32_t i = 0; i < n && i < max; i++) {
        cr_assert_eq(pkt_decode(buf + b.pkt[i].off, b.pkt[i].len, &out[i]), PKT_OK);
    }
    return n;
}

/* Takes the oldest completion, which must exist. */
static inline struct completion fix_take(struct fixture *f)
{
    const struct completion *c = engine_peek_completion(f->e);
    cr_assert_not_null(c, "a completion");
    struct completion copy = *c;
    engine_drop_completion(f->e);
    return copy;
}

/* Gives the engine a request from the peer and returns the answering packet: 0 and the decoded packet (its payload is
 * in buf), or -1 for no answer. */
static inline int fix_exchange(struct fixture *f, struct pkt *request, uint8_t buf[16384], struct pkt *answer)
{
    struct tx_batch b = {.buf = buf, .cap = 16384};
    fix_rx(f, request);
    if (engine_tx(f->e, &b, f->now) == 0) {
        return -1;
    }
    cr_assert_eq(pkt_decode(buf + b.pkt[0].off, b.pkt[0].len, answer), PKT_OK);
    return 0;
}

#endif
