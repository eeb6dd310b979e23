// SPDX-License-Identifier: BSD-2-Clause
/* Posting in place: an entry of the send queue is reserved, filled in, and committed. */
#include <errno.h>

#include "tests/unit/core/one_qp.h"

#define DEPTH 4 /* of fix_qp's send queue */
#define MAX_SGE 2
#define MAX_INLINE 32

static uint32_t key;

static void setup(void)
{
    struct mr_init init = {
        .pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM, .access = ACCESS_LOCAL_WRITE};
    fix_init(&fix);
    cr_assert_eq(mr_register(fix.e, &init, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(post, .init = setup, .fini = teardown);

/* Fills a reserved entry with a SEND of 8 inline bytes. */
static void fill(struct send_slot *slot, uint64_t wr_id)
{
    *slot->wr =
        (struct send_wr){.wr_id = wr_id, .opcode = WR_SEND, .flags = SEND_SIGNALED | SEND_INLINE, .inline_len = 8};
    memcpy(slot->data, "in place", 8);
}

Test(post, a_request_that_is_filled_in_place_is_sent)
{
    struct send_slot slot;
    cr_assert_eq(qp_send_reserve(qp, &slot), 0);
    cr_expect(slot.max_sge == MAX_SGE && slot.max_inline == MAX_INLINE);
    fill(&slot, 7);
    cr_assert_eq(qp_send_commit(qp), 0);
    cr_assert_eq(transmit(), 1);
    struct pkt p = sent(0);
    cr_assert_eq(p.payload_len, 8);
    cr_expect_arr_eq(p.payload, "in place", 8);
}

Test(post, an_entry_that_is_not_committed_stays_free)
{
    struct send_slot slot;
    for (unsigned i = 0; i < 2 * DEPTH; i++)
        cr_assert_eq(qp_send_reserve(qp, &slot), 0);
    cr_expect_eq(qp_send_room(qp), DEPTH);
    cr_expect_eq(transmit(), 0);
}

Test(post, a_bad_request_is_refused_and_its_entry_stays_free)
{
    struct send_slot slot;
    cr_assert_eq(qp_send_reserve(qp, &slot), 0);
    fill(&slot, 1);
    slot.wr->inline_len = MAX_INLINE + 1;
    cr_expect_eq(qp_send_commit(qp), -EINVAL);
    slot.wr->flags = 0;
    slot.wr->num_sge = MAX_SGE + 1;
    cr_expect_eq(qp_send_commit(qp), -EINVAL);
    slot.wr->opcode = 200;
    cr_expect_eq(qp_send_commit(qp), -EINVAL);
    cr_expect_eq(qp_send_room(qp), DEPTH);
}

Test(post, a_full_queue_gives_no_entry)
{
    struct send_slot slot;
    for (unsigned i = 0; i < DEPTH; i++) {
        cr_assert_eq(qp_send_reserve(qp, &slot), 0);
        fill(&slot, i);
        cr_assert_eq(qp_send_commit(qp), 0);
    }
    cr_expect_eq(qp_send_reserve(qp, &slot), -ENOMEM);
}

Test(post, a_qp_that_can_not_send_gives_no_entry)
{
    struct send_slot slot;
    struct qp *ready = fix_qp(&fix);
    fix_bring(ready, QPS_RTR);
    cr_expect_eq(qp_send_reserve(ready, &slot), -EINVAL);
}
