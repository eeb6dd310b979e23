// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues: who gets which request, the limit, errors, and what becomes of requests that QPs have taken. */
#include <errno.h>

#include "tests/unit/core/core_fixture.h"

#define SRQ_PD 9u
#define DEPTH 12u

static struct fixture fix;
static struct srq *srq;
static void *srqmem;
static struct qp *qp[3];
static uint32_t psn[3]; /* next one of the peer, by QP */
static uint32_t srq_key, qp_key; /* of the memory, for either protection domain */
static uint8_t buf[16384];
static int owner; /* of the SRQ */

static struct srq *make_srq(uint32_t max_wr, uint32_t max_sge, void **mem)
{
    struct srq_init init = {.pd = SRQ_PD, .max_wr = max_wr, .max_sge = max_sge, .owner = &owner};
    struct srq *s = NULL;
    *mem = fix_zalloc(srq_size(max_wr, max_sge));
    cr_assert_eq(srq_create(fix.e, &init, *mem, &s), 0);
    return s;
}

static struct qp *make_qp(struct srq *s)
{
    struct qp_init init = {.type = QPT_RC,
                           .pd = FIX_PD,
                           .srq = s,
                           .caps = {4, 1 << 20, 2, 77, 32}, /* its own receive side does not count */
                           .send_cq = &qp,
                           .recv_cq = &psn,
                           .owner = &fix};
    struct qp *q = NULL;
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(&init));
    cr_assert_eq(qp_create(fix.e, &init, mem, &q), 0);
    fix_bring(&fix, q, QPS_RTS);
    return q;
}

static void setup(void)
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
static void teardown(void)
{
    fix_fini(&fix);
    free(srqmem);
}
TestSuite(srq, .init = setup, .fini = teardown);

/* A buffer of len bytes at offset 64 * slot. */
static int post(uint32_t slot, uint32_t len, uint32_t key)
{
    struct recv_wr wr = {.wr_id = 5000 + slot, .slot = slot, .num_sge = 1};
    struct sge sge = {FIX_VA + 64 * slot, len, key};
    return srq_post_recv(srq, &wr, &sge);
}

static void post_many(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        cr_assert_eq(post(i, 1000, srq_key), 0);
    }
}

/* A packet of len bytes for QP i; returns the answer's syndrome, or 0xff. */
static uint8_t arrive_at(int i, uint8_t opcode, uint32_t len)
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

static void expect_recv(int i, uint32_t slot, uint8_t status)
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

static void expect_no_completion(void)
{
    cr_expect_null(engine_peek_completion(fix.e));
}

static struct event next_event(void)
{
    struct event ev = {.type = 0};
    return engine_pop_event(fix.e, &ev) ? ev : (struct event){.type = 0};
}

static void expect_srq_event(uint8_t type)
{
    struct event ev = next_event();
    cr_expect_eq(ev.type, type, "event %u", ev.type);
    cr_expect_eq(ev.srq_owner, &owner);
    cr_expect_null(ev.qp_owner);
}

static void expect_qp_event(int i, uint8_t type)
{
    struct event ev = next_event();
    cr_expect_eq(ev.type, type, "event %u", ev.type);
    cr_expect_eq(ev.qpn, qp_number(qp[i]));
    cr_expect_null(ev.srq_owner);
}

static void expect_no_event(void)
{
    cr_expect_eq(next_event().type, 0);
}

static void turn(void)
{
    struct tx_batch b = {.buf = buf, .cap = sizeof buf};
    engine_tx(fix.e, &b, fix.now);
}

static void to_err(int i)
{
    cr_assert_eq(fix_modify(&fix, qp[i], QPS_ERR), 0);
    turn();
}

/* --- life ------------------------------------------------------------------------------------------------------------------- */

Test(srq, bounds)
{
    struct srq_init good = {.pd = 1, .max_wr = 4, .max_sge = 1, .owner = &owner};
    struct srq *s;
    uint64_t mem[512] = {0};
    cr_expect_eq(srq_size(0, 1), 0);
    cr_expect_eq(srq_size(16385, 1), 0);
    cr_expect_neq(srq_size(16384, 1), 0);
    cr_expect_eq(srq_size(1, ENGINE_MAX_SGE + 1), 0);
    cr_assert_leq(srq_size(4, 1), sizeof mem);
    struct srq_init bad = good;
    bad.pd = 0;
    cr_expect_eq(srq_create(fix.e, &bad, mem, &s), -EINVAL);
    bad = good;
    bad.owner = NULL;
    cr_expect_eq(srq_create(fix.e, &bad, mem, &s), -EINVAL);
    bad = good;
    bad.xrcd = 3; /* without a CQ */
    cr_expect_eq(srq_create(fix.e, &bad, mem, &s), -EINVAL);
}

Test(srq, numbers_are_unique_and_come_back_late)
{
    void *mem[8];
    struct srq *s[8];
    for (int i = 0; i < 3; i++) { /* with the fixture's, the fourth of max_srq */
        s[i] = make_srq(4, 1, &mem[i]);
        cr_expect(srq_number(s[i]) != 0 && srq_number(s[i]) <= 0xffffff);
        cr_expect_neq(srq_number(s[i]), i ? srq_number(s[i - 1]) : srq_number(srq));
    }
    struct srq_init init = {.pd = 1, .max_wr = 4, .max_sge = 1, .owner = &owner};
    mem[3] = fix_zalloc(srq_size(4, 1));
    cr_expect_eq(srq_create(fix.e, &init, mem[3], &s[3]), -ENOMEM);
    uint32_t old = srq_number(s[1]);
    cr_assert_eq(srq_destroy(s[1]), 0);
    cr_assert_eq(srq_create(fix.e, &init, mem[3], &s[3]), 0);
    cr_expect_neq(srq_number(s[3]), old);
    for (int i = 0; i < 4; i++) {
        free(mem[i]);
    }
}

Test(srq, a_qp_with_one_has_no_receive_queue)
{
    struct recv_wr wr = {.num_sge = 0};
    cr_expect_eq(qp_post_recv(qp[0], &wr, NULL), -EINVAL);
    cr_expect_eq(qp_recv_room(qp[0]), 0);
}

Test(srq, is_busy_while_qps_use_it)
{
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(srq_destroy(srq), -EBUSY);
        qp_destroy(qp[i]);
    }
    cr_expect_eq(srq_destroy(srq), 0);
}

Test(srq, posting_is_bounded)
{
    struct recv_wr wr = {.num_sge = 3};
    struct sge sge[3] = {{0}};
    cr_expect_eq(srq_post_recv(srq, &wr, sge), -EINVAL);
    cr_expect_eq(srq_room(srq), DEPTH);
    post_many(DEPTH);
    cr_expect_eq(srq_room(srq), 0);
    cr_expect_eq(srq_posted(srq), DEPTH);
    cr_expect_eq(post(1, 1, srq_key), -ENOMEM);
}

/* --- requests find their messages ---------------------------------------------------------------------------------------------- */

Test(srq, first_come_first_served)
{
    post_many(5);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 3), ACKED);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff); /* takes slot 1 */
    cr_expect_eq(arrive_at(2, OP_WRITE_ONLY_IMM, 0), ACKED);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 0), ACKED);
    cr_expect_eq(arrive_at(0, OP_SEND_MIDDLE, 256), 0xff);
    cr_expect_eq(arrive_at(0, OP_SEND_LAST, 1), ACKED);
    expect_recv(1, 0, WC_SUCCESS);
    expect_recv(2, 2, WC_SUCCESS);
    expect_recv(1, 3, WC_SUCCESS);
    expect_recv(0, 1, WC_SUCCESS);
    expect_no_completion();
    cr_expect_eq(srq_posted(srq), 1);
}

Test(srq, what_was_taken_keeps_its_place)
{
    post_many(DEPTH);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff);
    cr_expect_eq(srq_posted(srq), DEPTH - 1);
    cr_expect_eq(srq_room(srq), 0);
    cr_expect_eq(arrive_at(0, OP_SEND_LAST, 1), ACKED);
    cr_expect_eq(srq_room(srq), 1);
}

Test(srq, an_empty_one_holds_only_who_needs_it)
{
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 3), AETH_RNR | 12);
    cr_expect_eq(arrive_at(1, OP_WRITE_ONLY, 0), ACKED);
    post_many(1);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 3), ACKED);
    expect_recv(1, 0, WC_SUCCESS);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 3), AETH_RNR | 12);
    post_many(1);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 3), ACKED);
    expect_recv(0, 0, WC_SUCCESS);
}

Test(srq, its_owner_is_asked_when_it_is_empty)
{
    fix.refill_srq = srq;
    fix.refill_left = 1;
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), ACKED);
    cr_expect_eq(fix.refills, 1);
    cr_expect_eq(engine_peek_completion(fix.e)->slot, 1000);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), AETH_RNR | 12);
    cr_expect_eq(fix.refills, 2);
}

Test(srq, buffers_are_of_its_protection_domain)
{
    cr_assert_eq(post(0, 100, srq_key), 0);
    cr_assert_eq(post(1, 100, qp_key), 0);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 80), ACKED);
    expect_recv(0, 0, WC_SUCCESS);
    cr_expect_eq(fix.bytes[0], 1);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 80), NAK_REMOTE_OPERATION);
    expect_recv(0, 1, WC_LOC_PROT_ERR);
}

Test(srq, a_message_too_long_takes_its_request_with_it)
{
    cr_assert_eq(post(0, 100, srq_key), 0);
    post_many(1);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 101), NAK_INVALID_REQUEST);
    expect_recv(0, 0, WC_LOC_LEN_ERR);
    expect_no_completion();
    expect_qp_event(0, EVENT_QP_LAST_WQE_REACHED);
    expect_no_event();
    cr_expect_eq(srq_posted(srq), 1);
    cr_expect_eq(qp_state(qp[1]), QPS_RTS);
}

/* --- the limit ------------------------------------------------------------------------------------------------------------------ */

Test(srq, the_limit_is_told_once)
{
    post_many(10);
    srq_set_limit(srq, 7);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(arrive_at(i, OP_SEND_ONLY, 1), ACKED);
    }
    expect_no_event(); /* seven are left */
    cr_expect_eq(srq_limit(srq), 7);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_srq_event(EVENT_SRQ_LIMIT_REACHED);
    cr_expect_eq(srq_limit(srq), 0);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_no_event();
    srq_set_limit(srq, 6); /* armed again, below it already */
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_srq_event(EVENT_SRQ_LIMIT_REACHED);
    expect_no_event();
}

Test(srq, the_limit_counts_what_its_owner_has)
{
    post_many(2);
    fix.refill_srq = srq;
    fix.refill_left = 3;
    srq_set_limit(srq, 3);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), ACKED); /* 1 + 3 */
    expect_no_event();
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), ACKED);
    expect_no_event();
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), ACKED);
    expect_srq_event(EVENT_SRQ_LIMIT_REACHED);
}

Test(srq, the_limit_is_told_when_nothing_is_left)
{
    srq_set_limit(srq, 1);
    expect_no_event();
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), AETH_RNR | 12);
    expect_srq_event(EVENT_SRQ_LIMIT_REACHED);
}

/* --- QPs that go ------------------------------------------------------------------------------------------------------------------ */

Test(srq, err_flushes_the_message_under_way_and_no_more)
{
    post_many(3);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff);
    to_err(0);
    expect_recv(0, 0, WC_WR_FLUSH_ERR);
    expect_no_completion();
    expect_qp_event(0, EVENT_QP_LAST_WQE_REACHED);
    turn();
    expect_no_event();
    cr_expect_eq(srq_posted(srq), 2);
}

Test(srq, err_is_told_even_if_nothing_was_taken)
{
    post_many(1);
    to_err(0);
    expect_no_completion();
    expect_qp_event(0, EVENT_QP_LAST_WQE_REACHED);
    cr_assert_eq(fix_modify(&fix, qp[0], QPS_RESET), 0);
    fix_bring(&fix, qp[0], QPS_RTS);
    psn[0] = 100;
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 1), ACKED);
    expect_recv(0, 0, WC_SUCCESS);
    expect_no_event();
    to_err(0);
    expect_qp_event(0, EVENT_QP_LAST_WQE_REACHED);
}

Test(srq, the_last_wqe_waits_for_room)
{
    post_many(1);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff);
    for (int i = 0; i < 4; i++) { /* fill the completion queue with flushed sends */
        for (int k = 0; k < 4; k++) {
            struct send_wr wr = {.opcode = WR_SEND, .flags = SEND_SIGNALED};
            cr_assert_eq(fix_modify(&fix, qp[1 + i % 2], QPS_ERR), 0);
            for (int n = 0; n < 4; n++) {
                qp_post_send(qp[1 + i % 2], &wr, NULL, NULL, 0);
            }
            turn();
        }
    }
    while (next_event().type) {
    }
    to_err(0);
    expect_no_event();
    while (engine_peek_completion(fix.e) && !engine_peek_completion(fix.e)->is_recv) {
        engine_drop_completion(fix.e);
    }
    turn();
    expect_recv(0, 0, WC_WR_FLUSH_ERR);
    expect_qp_event(0, EVENT_QP_LAST_WQE_REACHED);
}

static void put_back_by(bool destroy)
{
    post_many(3);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_recv(1, 1, WC_SUCCESS);
    if (destroy) {
        qp_destroy(qp[0]);
    } else {
        cr_assert_eq(fix_modify(&fix, qp[0], QPS_RESET), 0);
    }
    cr_expect_eq(srq_posted(srq), 2);
    cr_expect_eq(srq_room(srq), DEPTH - 2);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_recv(1, 0, WC_SUCCESS);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_recv(1, 2, WC_SUCCESS);
    expect_no_completion();
    expect_no_event();
}

Test(srq, a_destroyed_qp_puts_its_request_back)
{
    put_back_by(true);
}

Test(srq, a_reset_qp_puts_its_request_back)
{
    put_back_by(false);
}

Test(srq, a_refused_write_with_immediate_leaves_its_request)
{
    struct pkt answer, p = {.opcode = OP_WRITE_ONLY_IMM, .psn = 100, .reth = {FIX_VA, srq_key, 1}};
    post_many(1);
    p.dest_qpn = qp_number(qp[0]);
    p.payload = buf + 8000;
    p.payload_len = 1;
    cr_assert_eq(fix_exchange(&fix, &p, buf, &answer), 0);
    cr_expect_eq(answer.aeth.syndrome, NAK_REMOTE_ACCESS, "a key of the SRQ's domain is not the QP's");
    expect_no_completion();
    cr_expect_eq(srq_posted(srq), 1);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_recv(1, 0, WC_SUCCESS);
}

Test(srq, memory_that_fails_under_a_message)
{
    post_many(2);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff);
    engine_mem_fault(fix.e, qp_number(qp[0]), 0);
    turn();
    expect_recv(0, 0, WC_LOC_PROT_ERR);
    expect_no_completion();
    expect_qp_event(0, EVENT_QP_LAST_WQE_REACHED);
    expect_no_event();
    cr_expect_eq(srq_posted(srq), 1);
}

Test(srq, a_destroyed_qp_takes_its_completions_with_it)
{
    post_many(2);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 1), ACKED);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    qp_destroy(qp[0]);
    expect_recv(1, 1, WC_SUCCESS);
    expect_no_completion();
}

/* --- resizing, breaking ------------------------------------------------------------------------------------------------------------- */

Test(srq, resizing_keeps_order_and_what_was_taken)
{
    struct srq *bigger = NULL;
    post_many(8);
    for (int i = 0; i < 6; i++) { /* so that the ring wraps */
        cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
        expect_recv(1, (uint32_t)i, WC_SUCCESS);
    }
    post_many(6);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff); /* takes 6 */
    void *mem = fix_zalloc(srq_size(64, 2));
    cr_expect_eq(srq_resize(srq, 7, mem, &bigger), -EINVAL);
    cr_expect_eq(srq_resize(srq, 0, mem, &bigger), -EINVAL);
    uint32_t n = srq_number(srq);
    cr_assert_eq(srq_resize(srq, 64, mem, &bigger), 0);
    memset(srqmem, 0xdb, srq_size(DEPTH, 2));
    srq = bigger;
    cr_expect_eq(srq_number(srq), n);
    cr_expect_eq(srq_posted(srq), 7);
    cr_expect_eq(srq_room(srq), 64 - 8);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
    expect_recv(1, 7, WC_SUCCESS);
    cr_expect_eq(arrive_at(2, OP_SEND_FIRST, 256), 0xff);
    qp_destroy(qp[2]); /* puts it back to where it is now */
    for (uint32_t i = 0; i < 6; i++) {
        cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), ACKED);
        expect_recv(1, i, WC_SUCCESS);
    }
    cr_expect_eq(arrive_at(0, OP_SEND_LAST, 1), ACKED);
    expect_recv(0, 6, WC_SUCCESS);
    qp_destroy(qp[0]);
    qp_destroy(qp[1]);
    cr_expect_eq(srq_destroy(srq), 0);
    free(mem);
}

Test(srq, a_broken_one_breaks_who_needs_it)
{
    post_many(3);
    cr_expect_eq(arrive_at(0, OP_SEND_FIRST, 256), 0xff);
    srq_fail(srq);
    srq_fail(srq);
    expect_srq_event(EVENT_SRQ_ERR);
    expect_no_event();
    cr_expect_eq(arrive_at(0, OP_SEND_LAST, 1), ACKED); /* has what it needs */
    expect_recv(0, 0, WC_SUCCESS);
    cr_expect_eq(arrive_at(1, OP_WRITE_ONLY, 0), ACKED);
    cr_expect_eq(arrive_at(1, OP_SEND_ONLY, 1), NAK_REMOTE_OPERATION);
    cr_expect_eq(qp_state(qp[1]), QPS_ERR);
    expect_qp_event(1, EVENT_QP_FATAL);
    expect_qp_event(1, EVENT_QP_LAST_WQE_REACHED);
    expect_no_completion();
    cr_expect_eq(qp_state(qp[2]), QPS_RTS);
}

Test(srq, events_of_a_destroyed_one_are_dropped)
{
    srq_fail(srq);
    for (int i = 0; i < 3; i++) {
        qp_destroy(qp[i]);
    }
    cr_expect_eq(srq_destroy(srq), 0);
    expect_no_event();
}

/* --- more events than there is room for ---------------------------------------------------------------------------------------- */

/* Each program waits for its QP's last event before it destroys it. */
Test(srq_events, all_are_told_the_last_request, .fini = teardown)
{
    struct qp *many[16];
    bool told[16] = {false};
    uint32_t total = 0, turns = 0, got;
    struct event ev;
    fix_init_with(&fix, 32, 4);
    srq = make_srq(DEPTH, 2, &srqmem);
    for (int i = 0; i < 16; i++) {
        many[i] = make_qp(srq);
    }
    for (int i = 0; i < 16; i++) {
        cr_assert_eq(fix_modify(&fix, many[i], QPS_ERR), 0);
    }
    do {
        turn();
        for (got = 0; engine_pop_event(fix.e, &ev); got++) {
            cr_expect_eq(ev.type, EVENT_QP_LAST_WQE_REACHED);
            for (int i = 0; i < 16; i++) {
                told[i] |= ev.qpn == qp_number(many[i]);
            }
        }
        total += got;
    } while (got > 0 && ++turns < 100);
    cr_assert_eq(total, 16, "%u events", total);
    for (int i = 0; i < 16; i++) {
        cr_assert(told[i], "QP %d", i);
    }
    cr_assert_eq(engine_counters(fix.e)->events_dropped, 0);
    qp_destroy(many[3]);
}

Test(srq_events, the_limit_stays_armed, .fini = teardown)
{
    struct event ev;
    fix_init_with(&fix, 8, 1);
    srq = make_srq(DEPTH, 2, &srqmem);
    for (int i = 0; i < 2; i++) {
        qp[i] = make_qp(srq);
        psn[i] = 100;
    }
    post_many(4); /* without a key */
    srq_set_limit(srq, 4);
    cr_assert_eq(fix_modify(&fix, qp[1], QPS_ERR), 0);
    turn();
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), ACKED);
    cr_expect_eq(srq_limit(srq), 4, "the other QP's event takes the only place");
    cr_assert(engine_pop_event(fix.e, &ev) && ev.type == EVENT_QP_LAST_WQE_REACHED);
    cr_expect_eq(arrive_at(0, OP_SEND_ONLY, 0), ACKED);
    cr_expect_eq(srq_limit(srq), 0);
    expect_srq_event(EVENT_SRQ_LIMIT_REACHED);
    expect_no_event();
}

Test(srq_events, what_is_dropped_is_counted, .fini = teardown)
{
    fix_init_with(&fix, 8, 1);
    srq = make_srq(DEPTH, 2, &srqmem);
    qp[0] = make_qp(srq);
    cr_assert_eq(fix_modify(&fix, qp[0], QPS_ERR), 0);
    turn();
    srq_fail(srq);
    cr_assert_eq(engine_counters(fix.e)->events_dropped, 1);
}
