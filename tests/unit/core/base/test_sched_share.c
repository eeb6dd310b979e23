// SPDX-License-Identifier: BSD-2-Clause
/* Shares of the scheduler: users take turns, whatever number of QPs each has and whatever its turns cost. */
#include "tests/unit/core/core_fixture.h"

#define CROWD 100u

/* --- the scheduler alone ----------------------------------------------------------------------- */

static struct scheduler s;
static struct sched_share many, one;
static struct sched_entity crowd[CROWD], single;
static uint64_t spent_by_crowd, spent_by_single;

static void setup(void)
{
    scheduler_init(&s);
    sched_share_init(&many, &s);
    sched_share_init(&one, &s);
    for (unsigned i = 0; i < CROWD; i++)
        sched_entity_init(&crowd[i], &many);
    sched_entity_init(&single, &one);
    spent_by_crowd = spent_by_single = 0;
}
TestSuite(sched_share, .init = setup);

static void all_ready(void)
{
    for (unsigned i = 0; i < CROWD; i++)
        sched_make_ready(&crowd[i]);
    sched_make_ready(&single);
}

/* Turns that all make progress. Entities stay ready. */
static void turns(unsigned n, uint32_t crowd_cost, uint32_t single_cost)
{
    while (n--) {
        struct sched_entity *e = scheduler_next(&s);
        cr_assert_not_null(e);
        *(e == &single ? &spent_by_single : &spent_by_crowd) += e == &single ? single_cost : crowd_cost;
        sched_end_turn(e, e == &single ? single_cost : crowd_cost, true);
        sched_make_ready(e);
    }
}

Test(sched_share, a_user_with_many_qps_gets_no_more_than_a_user_with_one)
{
    all_ready();
    turns(1000, 65536, 65536);
    cr_expect(spent_by_single * 10 > spent_by_crowd * 9 && spent_by_single * 9 < spent_by_crowd * 10, "%zu and %zu",
              (size_t)spent_by_single, (size_t)spent_by_crowd);
}

Test(sched_share, expensive_turns_are_rarer)
{
    all_ready();
    turns(2000, 200000, 10000);
    cr_expect(spent_by_single * 10 > spent_by_crowd * 8, "%zu and %zu", (size_t)spent_by_single,
              (size_t)spent_by_crowd);
    cr_expect(spent_by_crowd * 10 > spent_by_single * 8, "%zu and %zu", (size_t)spent_by_single,
              (size_t)spent_by_crowd);
}

/* A user whose QPs pause after each turn gets no more by that. */
Test(sched_share, a_pause_pays_no_cost)
{
    sched_make_ready(&single);
    for (unsigned i = 0; i < 2000; i++) {
        turns(1, 100000, 2048);
        sched_make_unready(&crowd[0]);
        sched_make_ready(&crowd[0]);
    }
    cr_expect(spent_by_single * 10 > spent_by_crowd * 8, "%zu and %zu", (size_t)spent_by_single,
              (size_t)spent_by_crowd);
}

/* A user who had nothing to do does not get all turns later. */
Test(sched_share, a_pause_earns_nothing)
{
    for (unsigned i = 0; i < CROWD; i++)
        sched_make_ready(&crowd[i]);
    turns(1000, 65536, 65536);
    spent_by_crowd = 0;
    sched_make_ready(&single);
    turns(100, 65536, 65536);
    cr_expect(spent_by_crowd * 10 > spent_by_single * 8, "%zu and %zu", (size_t)spent_by_single,
              (size_t)spent_by_crowd);
}

/* The crowd also receives what it sends, and pays for both. */
Test(sched_share, received_packets_cost)
{
    all_ready();
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t before = spent_by_crowd;
        turns(1, 10000, 10000);
        sched_charge_received(&crowd[0], (uint32_t)(spent_by_crowd - before));
    }
    cr_expect(spent_by_single * 10 > spent_by_crowd * 18, "%zu and %zu", (size_t)spent_by_single,
              (size_t)spent_by_crowd);
}

Test(sched_share, a_user_alone_never_waits)
{
    for (unsigned i = 0; i < CROWD; i++)
        sched_make_ready(&crowd[i]);
    for (unsigned i = 0; i < 3 * CROWD; i++) { /* all in their order, with any debt */
        struct sched_entity *e = scheduler_next(&s);
        cr_assert_eq(e, &crowd[i % CROWD], "turn %u", i);
        sched_end_turn(e, UINT32_MAX, true);
        sched_make_ready(e);
    }
}

/* Each entity has one turn after the last progress, and then no other until the next round. */
Test(sched_share, without_progress_each_has_one_turn)
{
    unsigned n = 0;
    struct sched_entity *e;
    all_ready();
    turns(50, 1000, 1000);
    while ((e = scheduler_next(&s)) != NULL && n <= CROWD + 1) {
        sched_end_turn(e, 512, false);
        sched_make_ready(e);
        n++;
    }
    cr_expect_eq(n, CROWD + 1);
    cr_expect_eq(s.count, CROWD + 1);
    scheduler_new_round(&s);
    cr_expect_not_null(scheduler_next(&s));
}

Test(sched_share, an_entity_can_be_first)
{
    all_ready();
    sched_make_unready(&crowd[50]);
    sched_make_ready_first(&crowd[50]);
    cr_expect_eq(scheduler_next(&s), &crowd[50]);
    cr_expect_eq(s.count, CROWD);
    for (unsigned i = 0; i < CROWD; i++)
        sched_make_unready(&crowd[i]);
    sched_make_unready(&single);
    cr_expect(scheduler_is_idle(&s) && s.count == 0);
}

/* --- in the engine ----------------------------------------------------------------------------- */

static struct fixture fix;

static struct qp *qp_in(struct sched_share *share)
{
    struct qp_init init = {.type = QPT_RC,
                           .pd = FIX_PD,
                           .caps = {4, 4, 2, 2, 32},
                           .send_cq = &fix,
                           .recv_cq = &fix,
                           .owner = &fix,
                           .share = share};
    struct qp *qp = NULL;
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(&init));
    cr_assert_eq(qp_create(fix.e, &init, mem, &qp), 0);
    fix_bring(qp, QPS_RTS);
    return qp;
}

static void post(struct qp *qp)
{
    struct sge sge = {.addr = 1, .length = 16};
    struct send_wr wr = {.opcode = WR_SEND, .flags = SEND_SIGNALED | SEND_INLINE, .num_sge = 0, .inline_len = 16};
    uint8_t data[16] = {0};
    cr_assert_eq(qp_post_send(qp, &wr, &sge, data), 0);
}

/* The request of a user with one QP is one of the first two, though the other user posted sixteen requests before. */
Test(sched_share, the_engine_lets_users_take_turns)
{
    static uint8_t out[65536];
    struct tx_batch b = {.buf = out, .cap = sizeof(out)};
    struct sched_share a, c;
    static const struct mem_ops ops = {.read = fix_read, .write = fix_write, .atomic = fix_atomic};
    struct qp *first[16];
    fix_init(&fix);
    free(fix.mem);
    fix.cfg.max_qp = 32;
    fix.mem = fix_zalloc(engine_size(&fix.cfg));
    fix.e = engine_init(fix.mem, &fix.cfg, &ops, &fix, &fix_no_refill, &fix);
    engine_share_init(fix.e, &a);
    engine_share_init(fix.e, &c);
    for (unsigned i = 0; i < 16; i++)
        first[i] = qp_in(&a);
    struct qp *late = qp_in(&c);
    cr_assert_eq(engine_tx(fix.e, &b, fix.now), 0);
    for (unsigned i = 0; i < 16; i++)
        post(first[i]);
    post(late);
    cr_assert_eq(engine_tx(fix.e, &b, fix.now), 17);
    cr_expect(b.pkt[0].src_qpn == qp_number(late) || b.pkt[1].src_qpn == qp_number(late));
    fix_fini(&fix);
}
