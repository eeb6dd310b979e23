// SPDX-License-Identifier: BSD-2-Clause
/* End-to-end credits, packet by packet: when the requester waits, and what the responder tells. */
#include "tests/unit/core/one_qp.h"

#include "daemon/core/qp/requester_state.h"

#define HALF_A_SECOND 500000000u
#define MS 1000000u

static uint32_t key;

static void setup(void)
{
    static const struct mem_ops ops = {.read = fix_read, .write = fix_write, .atomic = fix_atomic};
    struct mr_init mr = {
        .pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM, .access = ACCESS_LOCAL_WRITE};
    fix_init(&fix);
    fix.cfg.e2e_credits = true;
    memset(fix.mem, 0, engine_size(&fix.cfg));
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS); /* sends from PSN 200, expects PSN 100 */
    fix.now = 1000 * (uint64_t)MS;
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(credits, .init = setup, .fini = teardown);

static void post(uint8_t opcode)
{
    struct sge sge = {FIX_VA, 8, key};
    struct send_wr wr = {.opcode = opcode, .num_sge = 1, .remote_addr = 0x1000, .rkey = 1};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
}

static struct qp_info info(void)
{
    struct qp_info i;
    qp_info(qp, &i);
    return i;
}

static void ack_with(uint32_t psn, uint32_t credits)
{
    nak(AETH_ACK | aeth_credit_code(credits), psn);
}

/* Lets time pass until the next deadline, which must be so late. */
static void expire_after(uint64_t least, uint64_t most)
{
    uint64_t due = info().deadline;
    cr_assert(due >= fix.now + least && due <= fix.now + most, "%llu us", (unsigned long long)(due - fix.now) / 1000);
    fix.now = due;
    engine_expire(fix.e, fix.now);
}

Test(credits, the_first_message_goes_alone)
{
    post(WR_SEND);
    post(WR_SEND);
    post(WR_SEND);
    cr_assert_eq(transmit(), 1);
    cr_expect(info().waiting_credit && info().credit_state == CREDITS_UNKNOWN);
    ack_with(200, 1);
    cr_expect_eq(transmit(), 1);
    cr_expect_eq(sent(0).psn, 201);
    ack(201); /* no credits: no limit any more */
    cr_expect_eq(transmit(), 1);
    cr_expect(!info().waiting_credit && info().credit_state == CREDITS_UNLIMITED);
}

Test(credits, requests_without_a_receive_need_none)
{
    post(WR_SEND);
    cr_assert_eq(transmit(), 1);
    ack_with(200, 0);
    post(WR_RDMA_WRITE);
    post(WR_RDMA_WRITE_WITH_IMM);
    cr_expect_eq(transmit(), 1);
    cr_expect_eq(sent(0).opcode, OP_WRITE_ONLY);
    cr_expect(info().waiting_credit);
    ack_with(201, 1);
    cr_expect_eq(transmit(), 1);
    cr_expect_eq(sent(0).opcode, OP_WRITE_ONLY_IMM);
}

/* An ACK tells of receive requests as of its PSN. One that comes late must not count them twice. */
Test(credits, an_older_ack_gives_no_more)
{
    for (int i = 0; i < 4; i++)
        post(WR_SEND);
    cr_assert_eq(transmit(), 1);
    ack_with(200, 2);
    cr_assert_eq(transmit(), 2);
    ack_with(202, 0);
    ack_with(200, 2);
    cr_expect_eq(transmit(), 0);
    cr_expect_eq(info().counters.old_acks, 1u);
    ack_with(202, 1); /* for receive requests that were posted later */
    cr_expect_eq(transmit(), 1);
    cr_expect_eq(info().counters.credit_acks_rcvd, 1u);
}

/* A peer that sends no ACK of its own accord is asked after half a second. From then on it is asked soon. */
Test(credits, a_peer_that_does_not_tell_is_asked)
{
    for (int i = 0; i < 4; i++)
        post(WR_SEND);
    cr_assert_eq(transmit(), 1);
    ack_with(200, 0);
    cr_assert_eq(transmit(), 0);
    expire_after(HALF_A_SECOND, HALF_A_SECOND);
    cr_assert_eq(transmit(), 1);
    ack_with(201, 0);
    cr_assert_eq(transmit(), 0);
    expire_after(1, 10 * MS);
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(info().counters.credit_asks, 2u);
    ack_with(202, 0);
    ack_with(202, 1); /* it tells, after all */
    cr_assert_eq(transmit(), 1);
    post(WR_SEND);
    ack_with(203, 0);
    cr_assert_eq(transmit(), 0);
    expire_after(HALF_A_SECOND, HALF_A_SECOND);
}

Test(credits, a_refused_message_leaves_the_wait_as_it_is)
{
    for (int i = 0; i < 3; i++)
        post(WR_SEND);
    cr_assert_eq(transmit(), 1);
    ack_with(200, 0);
    cr_assert_eq(transmit(), 0);
    expire_after(HALF_A_SECOND, HALF_A_SECOND);
    cr_assert_eq(transmit(), 1);
    nak(AETH_RNR | 1, 201);
    fix.now = info().deadline;
    engine_expire(fix.e, fix.now);
    cr_assert_eq(transmit(), 1);
    ack_with(201, 0);
    cr_assert_eq(transmit(), 0);
    expire_after(HALF_A_SECOND, HALF_A_SECOND);
}

/* --- the responder ------------------------------------------------------------------------------ */

static void message(uint32_t psn)
{
    arrive((struct pkt){.opcode = OP_SEND_ONLY, .psn = psn, .ackreq = true});
}

/* Packets that are sent after so much time. */
static uint32_t sent_after(uint64_t ns)
{
    fix.now += ns;
    engine_expire(fix.e, fix.now);
    return transmit();
}

static void post_receive(void)
{
    cr_assert_eq(qp_post_recv(qp, &(struct recv_wr){.wr_id = 1}, NULL), 0);
}

static uint8_t acked_after(uint64_t ns, uint32_t psn)
{
    cr_assert_eq(sent_after(ns), 1);
    struct pkt p = sent(0);
    cr_assert(p.opcode == OP_ACK && p.psn == psn, "opcode %u, PSN %u", p.opcode, p.psn);
    return p.aeth.syndrome;
}

static uint8_t acked_with(uint32_t psn)
{
    return acked_after(0, psn);
}

Test(credits, acks_tell_how_many_receives_are_left)
{
    for (int i = 0; i < 3; i++)
        post_receive();
    for (uint32_t i = 0; i < 3; i++) {
        message(100 + i);
        cr_expect_eq(acked_with(100 + i), 2 - i);
    }
}

Test(credits, new_receives_are_told_and_told_again)
{
    post_receive();
    message(100);
    cr_assert_eq(acked_with(100), 0);
    post_receive();
    post_receive();
    cr_expect_eq(acked_with(100), 2, "at once");
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(sent_after((MS << i) - 1), 0);
        cr_expect_eq(acked_after(1, 100), 2, "repetition %d", i);
    }
    cr_expect_eq(sent_after(1000 * (uint64_t)MS), 0);
    cr_expect_eq(info().counters.credit_acks_sent, 4u);
}

Test(credits, a_request_shows_that_they_were_heard)
{
    post_receive();
    message(100);
    cr_assert_eq(acked_with(100), 0);
    post_receive();
    cr_assert_eq(acked_with(100), 1);
    message(101);
    cr_expect_eq(acked_with(101), 0);
    cr_expect_eq(sent_after(1000 * (uint64_t)MS), 0, "no repetition is due");
}

Test(credits, nobody_waits_while_receives_are_left)
{
    post_receive();
    post_receive();
    message(100);
    cr_assert_eq(acked_with(100), 1);
    post_receive();
    cr_expect_eq(transmit(), 0);
}
