// SPDX-License-Identifier: BSD-2-Clause
/* XRC initiators and targets, packet by packet: what an XRCETH may name, whose keys count, where completions go. */
#include <errno.h>

#include "tests/unit/core/core_fixture.h"

#define DOMAIN 31u
#define ALIEN 32u /* another domain */
#define PD_A 21u
#define PD_B 22u

enum { A, B, C, SRQS }; /* A and B are of DOMAIN, C is of ALIEN, with A's protection domain */

static struct fixture fix;
static struct srq *srq[SRQS];
static void *srqmem[SRQS];
static int cq[SRQS], owner[SRQS];
static uint32_t key[2]; /* of PD_A and PD_B, for all of the memory */
static struct qp *tgt, *ini;
static uint32_t psn; /* next one of the peer's */
static uint8_t buf[65536];

static struct qp *make_qp(const struct qp_init *init, enum qp_state state)
{
    struct qp *q = NULL;
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(init));
    cr_assert_eq(qp_create(fix.e, init, mem, &q), 0);
    fix_bring(&fix, q, state);
    return q;
}

static struct qp *make_target(enum qp_state state)
{
    struct qp_init init = {.type = QPT_XRC_RECV, .xrcd = DOMAIN, .caps = {9, 9, 9, 9, 9}, .owner = &tgt};
    return make_qp(&init, state);
}

static void setup(void)
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
static void teardown(void)
{
    fix_fini(&fix);
    for (int i = 0; i < SRQS; i++) {
        free(srqmem[i]);
    }
}
TestSuite(xrc, .init = setup, .fini = teardown);

static void post_one(int i, uint32_t slot)
{
    struct recv_wr wr = {.wr_id = 7000 + slot, .slot = slot, .num_sge = 1};
    struct sge sge = {FIX_VA + 1024 * slot, 1024, key[i == B]};
    cr_assert_eq(srq_post_recv(srq[i], &wr, &sge), 0);
}

static struct pkt request(uint8_t operation, uint32_t srqn, uint32_t len)
{
    static const uint8_t bytes[256] = {0xaa, 0xbb};
    struct pkt p = {.opcode = OP_SERVICE_XRC | operation, .psn = psn, .srqn = srqn, .payload = bytes};
    p.payload_len = len;
    p.dest_qpn = qp_number(tgt);
    p.ackreq = !(op_table[p.opcode].properties & (OP_IS_FIRST | OP_IS_MIDDLE));
    return p;
}

/* The answer's syndrome, or 0xff: silence. */
static uint8_t feed(struct pkt p, struct pkt *answer)
{
    struct pkt a;
    int err = fix_exchange(&fix, &p, buf, answer ? answer : &a);
    uint8_t syndrome = err ? 0xff : (answer ? answer : &a)->aeth.syndrome;
    psn += err || (syndrome & AETH_KIND_MASK) == AETH_ACK;
    return syndrome;
}

static uint8_t send_to(int i, uint8_t operation, uint32_t len)
{
    return feed(request(operation, srq_number(srq[i]), len), NULL);
}

#define ACKED (AETH_ACK | AETH_NO_CREDITS)

static void expect_recv(int i, uint32_t slot, uint8_t status)
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

/* The target has refused a request, is in ERR, and has said so once. */
static void expect_dead(uint8_t event)
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

static void expect_untouched(int i, uint32_t posted)
{
    cr_expect_eq(srq_posted(srq[i]), posted);
    cr_expect_null(engine_peek_completion(fix.e));
}

/* --- what there is ------------------------------------------------------------------------------------------------------------ */

Test(xrc, what_each_needs)
{
    struct qp_init init = {.type = QPT_XRC_SEND, .pd = PD_A, .send_cq = &ini, .caps = {4, 0, 1, 0, 0}};
    struct qp *q;
    uint64_t mem[1024] = {0};
    cr_assert(qp_size(&init) <= sizeof mem);
    struct qp_init bad = init;
    bad.pd = 0;
    cr_expect_eq(qp_create(fix.e, &bad, mem, &q), -EINVAL);
    bad = init;
    bad.send_cq = NULL;
    cr_expect_eq(qp_create(fix.e, &bad, mem, &q), -EINVAL);
    bad = init;
    bad.srq = srq[A];
    cr_expect_eq(qp_create(fix.e, &bad, mem, &q), -EINVAL);
    bad = (struct qp_init){.type = QPT_XRC_RECV};
    cr_expect_eq(qp_create(fix.e, &bad, mem, &q), -EINVAL, "no domain");
    bad = (struct qp_init){.type = QPT_RC, .pd = 1, .send_cq = &ini, .recv_cq = &ini, .srq = srq[A]};
    cr_expect_eq(qp_create(fix.e, &bad, mem, &q), -EINVAL, "an XRC SRQ is not for RC QPs");
}

Test(xrc, nothing_is_posted_to_a_target_nor_received_by_an_initiator)
{
    struct send_wr s = {.opcode = WR_SEND};
    struct recv_wr r = {.num_sge = 0};
    cr_assert_eq(fix_modify(&fix, tgt, QPS_RTS), 0);
    cr_expect_eq(qp_post_send(tgt, &s, NULL, NULL, 0), -EINVAL);
    cr_expect_eq(qp_post_recv(tgt, &r, NULL), -EINVAL);
    cr_expect_eq(qp_post_recv(ini, &r, NULL), -EINVAL);
    cr_expect_eq(qp_recv_room(tgt), 0);
    cr_expect_eq(qp_recv_room(ini), 0);
    cr_expect_eq(qp_send_room(tgt), 0);
}

Test(xrc, initiators_take_no_requests_and_targets_no_responses)
{
    struct pkt p = request(OP_SEND_ONLY, srq_number(srq[A]), 1);
    struct pkt ack = {.opcode = OP_SERVICE_XRC | OP_ACK, .psn = 200, .aeth = {ACKED, 1}};
    post_one(A, 0);
    p.dest_qpn = qp_number(ini);
    ack.dest_qpn = qp_number(tgt);
    fix_rx(&fix, &p);
    fix_rx(&fix, &ack);
    cr_expect_eq(engine_counters(fix.e)->rx_bad_opcode, 2);
    p = request(OP_SEND_ONLY, 0, 1);
    p.opcode = OP_SEND_ONLY; /* RC's */
    fix_rx(&fix, &p);
    cr_expect_eq(engine_counters(fix.e)->rx_bad_opcode, 3);
    cr_expect_eq(fix_tx(&fix, buf, NULL, 0), 0);
    expect_untouched(A, 1);
}

static int modify(struct qp *qp, enum qp_state to, uint32_t more)
{
    struct qp_attr a = fix_attr();
    struct qp_info info;
    qp_info(qp, &info);
    a.state = (uint8_t)to;
    uint32_t mask = QPA_STATE | fix_required_of((enum qp_type)info.type, qp_state(qp), to) | more;
    return qp_modify(qp, &a, mask, 0, NULL);
}

Test(xrc, each_half_has_its_attributes)
{
    cr_assert_eq(modify(ini, QPS_RESET, 0), 0);
    cr_assert_eq(modify(ini, QPS_INIT, 0), 0);
    cr_assert_eq(modify(ini, QPS_RTR, 0), 0);
    cr_assert_eq(modify(ini, QPS_RTS, 0), 0);
    cr_assert_eq(modify(tgt, QPS_RTS, QPA_MIN_RNR_TIMER), 0);
    cr_assert_eq(modify(tgt, QPS_SQD, 0), 0);
    cr_assert_eq(modify(tgt, QPS_RTS, 0), 0);
    cr_expect_eq(modify(tgt, QPS_RTS, QPA_SQ_PSN), -EINVAL);
    cr_expect_eq(modify(ini, QPS_RTS, QPA_RETRY_CNT), -EINVAL);
}

Test(xrc, attributes_of_the_other_half_mean_nothing)
{
    struct qp_attr a;
    cr_assert_eq(modify(ini, QPS_RESET, 0), 0);
    cr_assert_eq(modify(ini, QPS_INIT, 0), 0);
    cr_assert_eq(modify(ini, QPS_RTR, QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER), 0);
    qp_query(ini, &a);
    cr_expect(a.max_dest_rd_atomic == 0 && a.min_rnr_timer == 0);
    cr_assert_eq(modify(ini, QPS_RTS, QPA_MIN_RNR_TIMER), 0);
    cr_assert_eq(modify(tgt, QPS_RTS, QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC), 0);
    qp_query(tgt, &a);
    cr_expect(a.retry_cnt == 0 && a.rnr_retry == 0 && a.max_rd_atomic == 0);
}

/* --- the initiator -------------------------------------------------------------------------------------------------------------- */

Test(xrc, every_request_packet_names_the_srq)
{
    static const uint8_t opcode[] = {OP_SEND_FIRST,   OP_SEND_MIDDLE, OP_SEND_LAST_IMM,
                                     OP_READ_REQUEST, OP_FETCH_ADD,   OP_WRITE_ONLY_IMM};
    struct pkt p[8];
    struct sge sge = {FIX_VA, 600, key[0]};
    struct send_wr wr = {.opcode = WR_SEND_WITH_IMM, .num_sge = 1, .srqn = 0x123456};
    cr_assert_eq(qp_post_send(ini, &wr, &sge, NULL, 0), 0);
    wr = (struct send_wr){.opcode = WR_RDMA_READ, .num_sge = 1, .srqn = 0x123457};
    cr_assert_eq(qp_post_send(ini, &wr, &sge, NULL, 0), 0);
    sge.length = 8;
    wr = (struct send_wr){.opcode = WR_ATOMIC_FETCH_AND_ADD, .num_sge = 1, .srqn = 0x123458};
    cr_assert_eq(qp_post_send(ini, &wr, &sge, NULL, 0), 0);
    wr = (struct send_wr){.opcode = WR_RDMA_WRITE_WITH_IMM, .num_sge = 1, .srqn = 0x123459};
    cr_assert_eq(qp_post_send(ini, &wr, &sge, NULL, 0), 0);
    cr_assert_eq(fix_tx(&fix, buf, p, 8), 6);
    for (int i = 0; i < 6; i++) {
        cr_expect_eq(p[i].opcode, OP_SERVICE_XRC | opcode[i], "%#x", p[i].opcode);
        cr_expect_eq(p[i].srqn, i < 3 ? 0x123456u : 0x123454u + (uint32_t)i, "packet %d: %#x", i, p[i].srqn);
    }
}

Test(xrc, an_initiator_hears_nothing_from_its_own_fault)
{
    struct pkt p[2];
    struct sge sge = {FIX_VA, 8, key[0]};
    struct send_wr wr = {.opcode = WR_RDMA_READ, .num_sge = 1, .srqn = 5};
    cr_assert_eq(qp_post_send(ini, &wr, &sge, NULL, 0), 0);
    cr_assert_eq(fix_tx(&fix, buf, p, 2), 1);
    engine_mem_fault(fix.e, qp_number(ini), 0);
    cr_expect_eq(fix_tx(&fix, buf, p, 2), 0, "no NAK: it has no responder");
    cr_expect_eq(fix_take(&fix).status, WC_LOC_PROT_ERR);
    cr_expect_eq(qp_state(ini), QPS_ERR);
}

Test(xrc, a_destroyed_initiator_leaves_nothing_that_answers)
{
    struct pkt p = request(OP_SEND_ONLY, srq_number(srq[A]), 1);
    p.dest_qpn = qp_number(ini);
    p.psn = 99; /* before what it would expect */
    qp_destroy(ini);
    fix_rx(&fix, &p);
    cr_expect_eq(fix_tx(&fix, buf, NULL, 0), 0);
    cr_expect_eq(engine_counters(fix.e)->rx_unknown_qp, 1);
}

/* --- the target ------------------------------------------------------------------------------------------------------------------ */

Test(xrc, messages_go_where_they_are_sent)
{
    struct pkt answer;
    for (uint32_t i = 0; i < 2; i++) {
        post_one(A, i);
        post_one(B, 4 + i);
    }
    cr_expect_eq(send_to(B, OP_SEND_ONLY, 256), ACKED);
    expect_recv(B, 4, WC_SUCCESS);
    cr_expect_eq(fix.bytes[4096], 0xaa);
    cr_expect_eq(send_to(A, OP_SEND_FIRST, 256), 0xff);
    cr_expect_eq(send_to(A, OP_SEND_LAST, 10), ACKED);
    expect_recv(A, 0, WC_SUCCESS);
    struct pkt p = request(OP_WRITE_ONLY_IMM, srq_number(srq[B]), 0);
    cr_expect_eq(feed(p, &answer), ACKED);
    cr_expect_eq(answer.opcode, OP_SERVICE_XRC | OP_ACK);
    expect_recv(B, 5, WC_SUCCESS);
    expect_untouched(A, 1);
    expect_untouched(B, 0);
}

Test(xrc, an_empty_srq_holds_up_the_message_for_it)
{
    post_one(B, 4);
    cr_expect_eq(send_to(A, OP_SEND_ONLY, 1), AETH_RNR | 12);
    expect_untouched(B, 1);
    post_one(A, 0);
    cr_expect_eq(send_to(A, OP_SEND_ONLY, 1), ACKED);
    expect_recv(A, 0, WC_SUCCESS);
    cr_expect_eq(send_to(B, OP_SEND_ONLY, 1), ACKED);
    expect_recv(B, 4, WC_SUCCESS);
}

Test(xrc, its_srqs_owner_is_asked)
{
    fix.refill_srq = srq[B];
    fix.refill_left = 1;
    cr_expect_eq(send_to(B, OP_SEND_ONLY, 0), ACKED);
    cr_expect_eq(fix.refills, 1);
}

/* --- what it refuses -------------------------------------------------------------------------------------------------------------- */

Test(xrc, an_unknown_number)
{
    post_one(A, 0);
    cr_expect_eq(feed(request(OP_SEND_ONLY, 0xabcdef, 1), NULL), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
    expect_untouched(A, 1);
    cr_expect_eq(engine_counters(fix.e)->xrc_refused, 1);
}

Test(xrc, number_0)
{
    cr_expect_eq(feed(request(OP_SEND_ONLY, 0, 1), NULL), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
}

Test(xrc, an_srq_of_another_domain)
{
    static const uint8_t operation[] = {OP_SEND_ONLY, OP_SEND_FIRST, OP_WRITE_ONLY, OP_READ_REQUEST, OP_FETCH_ADD};
    for (unsigned i = 0; i < sizeof operation; i++) {
        struct pkt p = request(operation[i], srq_number(srq[C]), operation[i] == OP_SEND_FIRST ? 256 : 0);
        p.reth.rkey = p.atomic.rkey = key[0]; /* of its protection domain */
        p.reth.va = p.atomic.va = FIX_VA;
        p.ackreq = true;
        if (srq_posted(srq[C]) == 0) {
            post_one(C, 0);
        }
        cr_expect_eq(feed(p, NULL), NAK_REMOTE_ACCESS, "operation %#x", operation[i]);
        expect_dead(EVENT_QP_ACCESS_ERR);
        expect_untouched(C, 1);
        qp_destroy(tgt);
        tgt = make_target(QPS_RTR);
        psn = 100;
    }
    cr_expect_eq(fix.writes + fix.atomics, 0);
}

Test(xrc, a_basic_srq)
{
    struct srq_init init = {.pd = PD_A, .max_wr = 8, .max_sge = 2, .owner = &owner};
    void *mem = fix_zalloc(srq_size(8, 2));
    struct srq *basic;
    cr_assert_eq(srq_create(fix.e, &init, mem, &basic), 0);
    cr_expect_eq(feed(request(OP_SEND_ONLY, srq_number(basic), 1), NULL), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
    free(mem);
}

Test(xrc, transport_checks_come_first)
{
    struct pkt p = request(OP_SEND_LAST, 0xabcdef, 1); /* of a message that never began */
    cr_expect_eq(feed(p, NULL), NAK_INVALID_REQUEST);
    expect_dead(EVENT_QP_REQ_ERR);
}

Test(xrc, psns_come_first)
{
    struct pkt p = request(OP_SEND_ONLY, 0xabcdef, 1);
    p.psn = psn + 1;
    cr_expect_eq(feed(p, NULL), NAK_PSN_SEQUENCE);
    p.psn = psn - 1;
    cr_expect_eq(feed(p, NULL), ACKED, "a duplicate");
    cr_expect_eq(qp_state(tgt), QPS_RTR);
}

Test(xrc, rights_come_first)
{
    struct qp_attr a = fix_attr();
    a.state = QPS_RTS;
    a.access = 0;
    uint32_t mask = QPA_STATE | QPA_TIMEOUT | QPA_SQ_PSN | QPA_ACCESS_FLAGS;
    cr_assert_eq(qp_modify(tgt, &a, mask, 0, NULL), 0);
    cr_expect_eq(feed(request(OP_WRITE_ONLY, 0xabcdef, 0), NULL), NAK_INVALID_REQUEST);
    expect_dead(EVENT_QP_REQ_ERR);
}

Test(xrc, a_message_names_one_srq)
{
    post_one(A, 0);
    post_one(B, 4);
    cr_expect_eq(send_to(A, OP_SEND_FIRST, 256), 0xff);
    cr_expect_eq(send_to(B, OP_SEND_LAST, 1), NAK_INVALID_REQUEST);
    expect_recv(A, 0, WC_WR_FLUSH_ERR);
    expect_dead(EVENT_QP_REQ_ERR);
    expect_untouched(B, 1);
}

Test(xrc, so_does_a_write)
{
    struct pkt p = request(OP_WRITE_FIRST, srq_number(srq[A]), 256);
    p.reth = (struct pkt_reth){FIX_VA, key[0], 257};
    post_one(B, 4);
    cr_expect_eq(feed(p, NULL), 0xff);
    cr_expect_eq(send_to(B, OP_WRITE_LAST_IMM, 1), NAK_INVALID_REQUEST);
    expect_dead(EVENT_QP_REQ_ERR);
    expect_untouched(B, 1);
}

Test(xrc, an_srq_destroyed_in_the_middle_of_a_message)
{
    post_one(A, 0);
    post_one(A, 1);
    cr_expect_eq(send_to(A, OP_SEND_ONLY, 1), ACKED);
    cr_expect_eq(send_to(A, OP_SEND_FIRST, 256), 0xff);
    uint32_t n = srq_number(srq[A]);
    cr_expect_eq(srq_destroy(srq[A]), 0, "targets don't keep it");
    cr_expect_null(engine_peek_completion(fix.e), "its completions are dropped");
    memset(srqmem[A], 0xdb, srq_size(8, 2));
    cr_expect_eq(feed(request(OP_SEND_LAST, n, 1), NULL), NAK_REMOTE_ACCESS);
    psn--;
    cr_expect_null(engine_peek_completion(fix.e), "nor is there a flushed one");
    cr_expect_eq(qp_state(tgt), QPS_ERR);
}

/* --- protection -------------------------------------------------------------------------------------------------------------------- */

static void expect_protection(uint8_t operation)
{
    for (int i = 0; i < 4; i++) { /* keys of A and B through SRQs A and B */
        struct pkt answer, p = request(operation, srq_number(srq[i % 2]), operation == OP_WRITE_ONLY ? 8 : 0);
        p.reth = (struct pkt_reth){FIX_VA, key[i / 2], 8};
        p.atomic.va = FIX_VA;
        p.atomic.rkey = key[i / 2];
        uint8_t syndrome = feed(p, &answer);
        if (i % 2 == i / 2) {
            cr_expect_eq(syndrome, ACKED, "operation %#x: %#x", operation, syndrome);
            cr_expect_eq(answer.opcode & OP_SERVICE_MASK, OP_SERVICE_XRC);
        } else {
            cr_expect_eq(syndrome, NAK_REMOTE_ACCESS, "operation %#x: %#x", operation, syndrome);
            expect_dead(EVENT_QP_ACCESS_ERR);
            qp_destroy(tgt);
            tgt = make_target(QPS_RTR);
            psn = 100;
        }
    }
}

Test(xrc, keys_are_of_the_srqs_protection_domain)
{
    expect_protection(OP_WRITE_ONLY);
    expect_protection(OP_READ_REQUEST);
    expect_protection(OP_FETCH_ADD);
    cr_expect_eq(fix.writes, 2);
    cr_expect_eq(fix.atomics, 2);
}

Test(xrc, a_read_is_repeated_with_the_protection_domain_that_it_had)
{
    struct pkt answer, read = request(OP_READ_REQUEST, srq_number(srq[A]), 0);
    struct pkt write = request(OP_WRITE_ONLY, srq_number(srq[B]), 0);
    read.reth = (struct pkt_reth){FIX_VA, key[0], 8};
    cr_expect_eq(feed(read, &answer), ACKED);
    write.psn = psn;
    cr_expect_eq(feed(write, NULL), ACKED);
    cr_expect_eq(feed(read, &answer), ACKED);
    cr_expect_eq(answer.opcode, OP_SERVICE_XRC | OP_READ_RESP_ONLY);
    cr_expect_eq(answer.payload_len, 8);
}

Test(xrc, receive_buffers_are_of_the_srqs_protection_domain)
{
    struct recv_wr wr = {.num_sge = 1, .slot = 3, .wr_id = 7003};
    struct sge sge = {FIX_VA, 100, key[1]};
    cr_assert_eq(srq_post_recv(srq[A], &wr, &sge), 0);
    cr_expect_eq(send_to(A, OP_SEND_ONLY, 80), NAK_REMOTE_OPERATION);
    expect_recv(A, 3, WC_LOC_PROT_ERR);
}

Test(xrc, memory_extensions_go_by_it_too)
{
    struct pkt p = request(OP_ATOMIC_WRITE, srq_number(srq[B]), 8);
    p.reth = (struct pkt_reth){FIX_VA, key[1], 8};
    cr_expect_eq(feed(p, NULL), ACKED);
    p = request(OP_ATOMIC_WRITE, srq_number(srq[A]), 8);
    p.reth = (struct pkt_reth){FIX_VA, key[1], 8};
    cr_expect_eq(feed(p, NULL), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
}

/* Binds a window of PD_A, over the first 64 bytes. */
static uint32_t bind_window(struct qp *by, uint8_t type, uint8_t status)
{
    uint32_t window, region;
    struct mr_init mr = {.pd = PD_A, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};
    mr.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_MW_BIND;
    cr_assert_eq(mr_register(fix.e, &mr, &region), 0);
    cr_assert_eq(mw_alloc(fix.e, PD_A, type, &window), 0);
    uint32_t bound = (window & ~0xffu) | ((window + 1) & 0xff);
    struct send_wr wr = {.opcode = WR_BIND_MW, .flags = SEND_SIGNALED};
    wr.bind = (struct mw_bind){.mw_key = type == MW_TYPE_1 ? window : bound,
                               .new_key = type == MW_TYPE_1 ? bound : 0,
                               .mr_key = region,
                               .access = ACCESS_REMOTE_WRITE,
                               .addr = FIX_VA,
                               .length = 64};
    cr_assert_eq(qp_post_send(by, &wr, NULL, NULL, 0), 0);
    fix_tx(&fix, buf, NULL, 0);
    cr_assert_eq(fix_take(&fix).status, status);
    return bound;
}

static struct qp *rc_qp(void)
{
    struct qp_init init = {
        .type = QPT_RC, .pd = PD_A, .caps = {4, 0, 0, 0, 0}, .send_cq = &ini, .recv_cq = &ini, .owner = &ini};
    return make_qp(&init, QPS_RTS);
}

static uint8_t write_by(uint32_t rkey, int i)
{
    struct pkt p = request(OP_WRITE_ONLY, srq_number(srq[i]), 8);
    p.reth = (struct pkt_reth){FIX_VA, rkey, 8};
    return feed(p, NULL);
}

Test(xrc, windows_of_type_1_are_of_a_protection_domain)
{
    uint32_t rkey = bind_window(ini, MW_TYPE_1, WC_SUCCESS);
    cr_expect_eq(write_by(rkey, A), ACKED);
    cr_expect_eq(write_by(rkey, B), NAK_REMOTE_ACCESS);
}

Test(xrc, windows_of_type_2_are_of_a_qp_and_no_targets)
{
    bind_window(ini, MW_TYPE_2, WC_MW_BIND_ERR);
    cr_expect_eq(write_by(bind_window(rc_qp(), MW_TYPE_2, WC_SUCCESS), A), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
}

Test(xrc, a_target_has_no_window_that_a_peer_could_invalidate)
{
    struct pkt p = request(OP_SEND_ONLY_INV, srq_number(srq[A]), 1);
    p.inv_rkey = bind_window(rc_qp(), MW_TYPE_2, WC_SUCCESS);
    post_one(A, 0);
    cr_expect_eq(feed(p, NULL), NAK_REMOTE_ACCESS);
    expect_dead(EVENT_QP_ACCESS_ERR);
    expect_untouched(A, 1);
}

/* --- faults of memory --------------------------------------------------------------------------------------------------------------- */

Test(xrc, a_deferred_write_that_fails_is_told_to_the_srq)
{
    post_one(A, 0);
    post_one(A, 1);
    struct pkt p = request(OP_SEND_ONLY, srq_number(srq[A]), 80);
    fix_rx(&fix, &p);
    engine_mem_fault(fix.e, qp_number(tgt), 0);
    cr_assert_eq(fix_tx(&fix, buf, &p, 1), 1);
    cr_expect_eq(p.opcode, OP_SERVICE_XRC | OP_ACK);
    cr_expect_eq(p.aeth.syndrome, NAK_REMOTE_OPERATION);
    expect_recv(A, 0, WC_LOC_PROT_ERR);
    expect_untouched(A, 1);
}

/* --- targets that go ---------------------------------------------------------------------------------------------------------------- */

Test(xrc, what_was_received_outlives_the_target)
{
    post_one(A, 0);
    post_one(A, 1);
    cr_expect_eq(send_to(A, OP_SEND_ONLY, 1), ACKED);
    cr_expect_eq(send_to(A, OP_SEND_FIRST, 256), 0xff);
    uint32_t n = qp_number(tgt);
    qp_destroy(tgt);
    struct completion c = fix_take(&fix);
    cr_expect(c.cq == &cq[A] && c.srq_owner == &owner[A] && c.slot == 0 && c.status == WC_SUCCESS && c.qpn == n);
    cr_expect_null(c.qp_owner);
    cr_expect_eq(srq_posted(srq[A]), 1, "the other one was put back");
}

Test(xrc, a_destroyed_target_still_acknowledges_what_it_had)
{
    struct pkt answer, p = request(OP_SEND_ONLY, srq_number(srq[A]), 1);
    post_one(A, 0);
    cr_expect_eq(feed(p, NULL), ACKED);
    qp_destroy(tgt);
    cr_expect_eq(feed(p, &answer), ACKED);
    cr_expect_eq(answer.opcode, OP_SERVICE_XRC | OP_ACK);
}

Test(xrc, err_flushes_what_was_taken_and_tells_no_last_wqe)
{
    struct event ev;
    post_one(A, 0);
    post_one(A, 1);
    cr_expect_eq(send_to(A, OP_SEND_FIRST, 256), 0xff);
    while (engine_pop_event(fix.e, &ev)) {
    }
    cr_assert_eq(fix_modify(&fix, tgt, QPS_ERR), 0);
    fix_tx(&fix, buf, NULL, 0);
    expect_recv(A, 0, WC_WR_FLUSH_ERR);
    expect_untouched(A, 1);
    cr_expect_not(engine_pop_event(fix.e, &ev), "a target is not attached to an SRQ");
}
