// SPDX-License-Identifier: BSD-2-Clause
/* For tests of XRC: an initiator, a target, and SRQs of two XRC domains and two protection domains. */
#ifndef PUMICE_TESTS_UNIT_CORE_XRC_FIXTURE_H
#define PUMICE_TESTS_UNIT_CORE_XRC_FIXTURE_H

#include <errno.h>

#include "tests/unit/core/core_fixture.h"

#define DOMAIN 31u
#define ALIEN 32u /* another domain */
#define PD_A 21u
#define PD_B 22u

enum { A, B, C, SRQS }; /* A and B belong to DOMAIN; C belongs to ALIEN and has A's protection domain */

static struct fixture fix;
static struct srq *srq[SRQS];
static void *srqmem[SRQS];
static int cq[SRQS], owner[SRQS];
static uint32_t key[2]; /* of PD_A and PD_B, for the whole memory */
static struct qp *tgt, *ini;
static uint32_t psn; /* the peer's next PSN */
static uint8_t buf[65536];

static inline struct qp *make_qp(const struct qp_init *init, enum qp_state state)
{
    struct qp *q = NULL;
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(init));
    cr_assert_eq(qp_create(fix.e, init, mem, &q), 0);
    fix_bring(q, state);
    return q;
}

static inline struct qp *make_target(enum qp_state state)
{
    struct qp_init init = {.type = QPT_XRC_RECV, .xrcd = DOMAIN, .caps = {9, 9, 9, 9, 9}, .owner = &tgt};
    return make_qp(&init, state);
}

static inline void setup(void)
{
    static const uint32_t xrcd[] = {DOMAIN, DOMAIN, ALIEN}, pd[] = {PD_A, PD_B, PD_A};
    fix_init(&fix);
    for (int i = 0; i < 2; i++) {
        struct mr_init mr = {.pd = pd[i], .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};
        mr.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
        cr_assert_eq(mr_register(fix.e, &mr, &key[i]), 0);
    }
    for (int i = 0; i < SRQS; i++) {
        struct srq_init init = {
            .pd = pd[i], .xrcd = xrcd[i], .max_wr = 8, .max_sge = 2, .cq = &cq[i], .owner = &owner[i]};
        srqmem[i] = fix_zalloc(srq_size(8, 2));
        cr_assert_eq(srq_create(fix.e, &init, srqmem[i], &srq[i]), 0);
    }
    tgt = make_target(QPS_RTR);
    struct qp_init init = {
        .type = QPT_XRC_SEND, .pd = PD_A, .caps = {8, 77, 2, 77, 32}, .send_cq = &ini, .owner = &ini};
    ini = make_qp(&init, QPS_RTS);
    psn = 100;
}
static inline void teardown(void)
{
    fix_fini(&fix);
    for (int i = 0; i < SRQS; i++) {
        free(srqmem[i]);
    }
}

static inline void post_one(int i, uint32_t slot)
{
    struct recv_wr wr = {.wr_id = 7000 + slot, .slot = slot, .num_sge = 1};
    struct sge sge = {FIX_VA + 1024 * slot, 1024, key[i == B]};
    cr_assert_eq(srq_post_recv(srq[i], &wr, &sge), 0);
}

static inline struct pkt request(uint8_t operation, uint32_t srqn, uint32_t len)
{
    static const uint8_t bytes[256] = {0xaa, 0xbb};
    struct pkt p = {.opcode = OP_SERVICE_XRC | operation, .psn = psn, .srqn = srqn, .payload = bytes};
    p.payload_len = len;
    p.dest_qpn = qp_number(tgt);
    p.ackreq = !(op_table[p.opcode].properties & (OP_IS_FIRST | OP_IS_MIDDLE));
    return p;
}

/* Returns the syndrome of the answer, or 0xff for no answer. */
static inline uint8_t feed(struct pkt p, struct pkt *answer)
{
    struct pkt a;
    int err = fix_exchange(&fix, &p, buf, answer ? answer : &a);
    uint8_t syndrome = err ? 0xff : (answer ? answer : &a)->aeth.syndrome;
    psn += err || (syndrome & AETH_KIND_MASK) == AETH_ACK;
    return syndrome;
}

static inline uint8_t send_to(int i, uint8_t operation, uint32_t len)
{
    return feed(request(operation, srq_number(srq[i]), len), NULL);
}

#define ACKED (AETH_ACK | AETH_NO_CREDITS)

static inline void expect_recv(int i, uint32_t slot, uint8_t status)
{
    struct completion c = fix_take(&fix);
    cr_expect_eq(c.cq, &cq[i], "the SRQ's CQ");
    cr_expect_eq(c.srq_owner, &owner[i]);
    cr_expect_eq(c.qp_owner, &tgt);
    cr_expect_eq(c.qpn, qp_number(tgt));
    cr_expect_eq(c.src_qp, 1234);
    cr_expect(c.is_recv && c.slot == slot && c.wr_id == 7000 + slot, "slot %u", c.slot);
    cr_expect_eq(c.status, status, "status %u", c.status);
}

/* The target has refused a request, is in ERR, and has raised one event. */
static inline void expect_dead(uint8_t event)
{
    struct event ev = {.type = 0};
    cr_expect_eq(qp_state(tgt), QPS_ERR);
    cr_expect(engine_pop_event(fix.e, &ev));
    while (ev.type == EVENT_COMM_EST) {
        cr_expect(engine_pop_event(fix.e, &ev));
    }
    cr_expect_eq(ev.type, event, "event %u", ev.type);
    cr_expect_eq(ev.qp_owner, &tgt);
    cr_expect_not(engine_pop_event(fix.e, &ev), "event %u", ev.type);
    psn++;
    cr_expect_eq(send_to(A, OP_SEND_ONLY, 1), 0xff, "one NAK, then silence");
}

static inline void expect_untouched(int i, uint32_t posted)
{
    cr_expect_eq(srq_posted(srq[i]), posted);
    cr_expect_null(engine_peek_completion(fix.e));
}

#endif
