// SPDX-License-Identifier: BSD-2-Clause
/* For tests of shared receive queues: one SRQ with three RC QPs, packets to each of them, and their expected
 * results. */
#ifndef PUMICE_TESTS_UNIT_CORE_SRQ_FIXTURE_H
#define PUMICE_TESTS_UNIT_CORE_SRQ_FIXTURE_H

#include <errno.h>

#include "tests/unit/core/core_fixture.h"

#define SRQ_PD 9u
#define DEPTH 12u

static struct fixture fix;
static struct srq *srq;
static void *srqmem;
static struct qp *qp[3];
static uint32_t psn[3]; /* the peer's next PSN, by QP */
static uint32_t srq_key, qp_key; /* keys of the memory, one for each protection domain */
static uint8_t buf[16384];
static int owner; /* of the SRQ */

static inline struct srq *make_srq(uint32_t max_wr, uint32_t max_sge, void **mem)
{
    struct srq_init init = {.pd = SRQ_PD, .max_wr = max_wr, .max_sge = max_sge, .owner = &owner};
    struct srq *s = NULL;
    *mem = fix_zalloc(srq_size(max_wr, max_sge));
    cr_assert_eq(srq_create(fix.e, &init, *mem, &s), 0);
    return s;
}

static inline struct qp *make_qp(struct srq *s)
{
    struct qp_init init = {.type = QPT_RC,
                           .pd = FIX_PD,
                           .srq = s,
                           .caps = {4, 1 << 20, 2, 77, 32}, /* its own receive attributes are ignored */
                           .send_cq = &qp,
                           .recv_cq = &psn,
                           .owner = &fix};
    struct qp *q = NULL;
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(&init));
    cr_assert_eq(qp_create(fix.e, &init, mem, &q), 0);
    fix_bring(q, QPS_RTS);
    return q;
}

static inline void setup(void)
{
    fix_init(&fix);
    struct mr_init mr = {.pd = SRQ_PD,
                         .space = 1,
                         .va = FIX_VA,
                         .iova = FIX_VA,
                         .length = FIX_MEM,
                         .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE};
    cr_assert_eq(mr_register(fix.e, &mr, &srq_key), 0);
    mr.pd = FIX_PD;
    cr_assert_eq(mr_register(fix.e, &mr, &qp_key), 0);
    srq = make_srq(DEPTH, 2, &srqmem);
    for (int i = 0; i < 3; i++) {
        qp[i] = make_qp(srq);
        psn[i] = 100;
    }
}
static inline void teardown(void)
{
    fix_fini(&fix);
    free(srqmem);
}

/* A buffer of len bytes at offset 64 * slot. */
static inline int post(uint32_t slot, uint32_t len, uint32_t key)
{
    struct recv_wr wr = {.wr_id = 5000 + slot, .slot = slot, .num_sge = 1};
    struct sge sge = {FIX_VA + 64 * slot, len, key};
    return srq_post_recv(srq, &wr, &sge);
}

static inline void post_many(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(post(i, 1000, srq_key), 0);
    }
}

/* Gives QP i a packet of len bytes. Returns the syndrome of the answer, or 0xff for no answer. */
static inline uint8_t arrive_at(int i, uint8_t opcode, uint32_t len)
{
    static const uint8_t bytes[256] = {1, 2, 3};
    struct pkt answer, p = {.opcode = opcode, .psn = psn[i], .payload = bytes, .payload_len = len};
    p.dest_qpn = qp_number(qp[i]);
    p.ackreq = !(op_table[opcode].properties & (OP_IS_FIRST | OP_IS_MIDDLE));
    int err = fix_exchange(&fix, &p, buf, &answer);
    uint8_t syndrome = err ? 0xff : answer.aeth.syndrome;
    psn[i] += err || (syndrome & AETH_KIND_MASK) == AETH_ACK;
    return syndrome;
}

#define ACKED (AETH_ACK | AETH_NO_CREDITS)

static inline void expect_recv(int i, uint32_t slot, uint8_t status)
{
    const struct completion *c = engine_peek_completion(fix.e);
    cr_assert(c && c->is_recv);
    cr_expect_eq(c->srq_owner, &owner);
    cr_expect_eq(c->cq, &psn, "the QP's receive CQ");
    cr_expect_eq(c->qpn, qp_number(qp[i]));
    cr_expect_eq(c->slot, slot, "slot %u", c->slot);
    cr_expect_eq(c->wr_id, 5000 + slot);
    cr_expect_eq(c->status, status, "status %u", c->status);
    engine_drop_completion(fix.e);
}

static inline void expect_no_completion(void)
{
    cr_expect_null(engine_peek_completion(fix.e));
}

static inline struct event next_event(void)
{
    struct event ev = {.type = 0};
    return engine_pop_event(fix.e, &ev) ? ev : (struct event){.type = 0};
}

static inline void expect_srq_event(uint8_t type)
{
    struct event ev = next_event();
    cr_expect_eq(ev.type, type, "event %u", ev.type);
    cr_expect_eq(ev.srq_owner, &owner);
    cr_expect_null(ev.qp_owner);
}

static inline void expect_qp_event(int i, uint8_t type)
{
    struct event ev = next_event();
    cr_expect_eq(ev.type, type, "event %u", ev.type);
    cr_expect_eq(ev.qpn, qp_number(qp[i]));
    cr_expect_null(ev.srq_owner);
}

static inline void expect_no_event(void)
{
    cr_expect_eq(next_event().type, 0);
}

static inline void turn(void)
{
    struct tx_batch b = {.buf = buf, .cap = sizeof buf};
    engine_tx(fix.e, &b, fix.now);
}

static inline void to_err(int i)
{
    cr_assert_eq(fix_modify(qp[i], QPS_ERR), 0);
    turn();
}

#endif
