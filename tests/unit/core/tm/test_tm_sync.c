// SPDX-License-Identifier: BSD-2-Clause
/* Tag matching: how device and program agree on the unexpected messages so far. */
#include "tests/unit/core/tm_suite.h"

TestSuite(tm_sync, .init = setup, .fini = teardown);

/* Sends an unexpected message, and returns the flags of its completion. */
static uint8_t unexpected(void)
{
    struct tm_rx rx;
    cr_assert_null(begin_eager(tm, 0xdead, &rx));
    return tm_done(tm, &rx, 0);
}

Test(tm_sync, the_count_is_used_only_with_the_flag)
{
    static const struct {
        uint8_t opcode, flags;
        bool takes;
    } cases[] = {
        {TM_ADD, TM_OP_SIGNALED, false},
        {TM_ADD, TM_OP_SIGNALED | TM_OP_SYNC, true},
        {TM_ADD, TM_OP_SYNC, true},
        {TM_DEL, TM_OP_SIGNALED, false},
        {TM_DEL, TM_OP_SYNC, true}, /* even if there is nothing to delete (0.6) */
        {TM_SYNC, TM_OP_SIGNALED, true}, /* implied (0.4) */
        {TM_SYNC, 0, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct tm_op op = {.opcode = cases[i].opcode,
                           .flags = cases[i].flags,
                           .handle = (uint32_t)i,
                           .unexpected_cnt = (uint32_t)(0x10000 * i + 1000 + i)};
        struct tm_op_result r;
        uint16_t before = info_of(tm).sw_cnt;
        tm_op(tm, &op, &r, 0);
        cr_expect_eq(info_of(tm).sw_cnt, cases[i].takes ? 1000 + i : before, "case %zu", i);
        cr_expect_eq(r.complete, (cases[i].flags & TM_OP_SIGNALED) != 0, "case %zu", i);
    }
}

Test(tm_sync, completions_of_operations)
{
    struct tm_op_result r = do_add(tm, 0, 1, EXACT, 0);
    cr_assert(r.complete && r.status == WC_SUCCESS && r.opcode == WC_TM_ADD && r.flags == 0);
    r = do_sync(tm, 0);
    cr_assert(r.complete && r.status == WC_SUCCESS && r.opcode == WC_TM_SYNC && r.flags == 0);
    r = do_del(tm, 0, 0);
    cr_assert(r.complete && r.status == WC_SUCCESS && r.opcode == WC_TM_DEL && r.flags == 0);
    unexpected();
    cr_assert_eq(do_add(tm, 1, 1, EXACT, 0).flags, WC_TM_SYNC_REQ);
    cr_assert_eq(do_add(tm, 2, 1, EXACT, -1).flags, WC_TM_SYNC_REQ, "with or without a count");
    cr_assert_eq(do_del(tm, 2, 0).flags, WC_TM_SYNC_REQ);
    cr_assert_eq(do_del(tm, 2, 0).flags, WC_TM_SYNC_REQ, "that failed");
    cr_assert_eq(do_sync(tm, 0).flags, WC_TM_SYNC_REQ);
    cr_assert_eq(do_sync(tm, 1).flags, 0);
    cr_assert_eq(do_add(tm, 3, 1, EXACT, 1).flags, 0);
    cr_assert_eq(info_of(tm).counters.sync_req, 5);
}

Test(tm_sync, an_addition_with_the_right_count_is_active_and_activates)
{
    unexpected();
    do_add(tm, 0, 1, EXACT, 0);
    do_add(tm, 1, 2, EXACT, -1);
    cr_assert(info_of(tm).active == 0 && info_of(tm).pending == 2);
    cr_assert_eq(send_eager(tm, 1), TM_NO_HANDLE, "pending");
    do_add(tm, 2, 3, EXACT, 2);
    cr_assert(info_of(tm).active == 3 && info_of(tm).pending == 0, "all that wait, in front of the new one");
    cr_assert_eq(send_eager(tm, 2), 1);
    cr_assert_eq(send_eager(tm, 1), 0);
}

Test(tm_sync, active_entries_stay_active)
{
    do_add(tm, 0, 7, EXACT, 0);
    unexpected();
    do_add(tm, 1, 7, EXACT, 0);
    cr_assert(info_of(tm).active == 1 && info_of(tm).pending == 1);
    cr_assert_eq(send_eager(tm, 7), 0, "the variant of the race: it was active before");
    cr_assert_eq(send_eager(tm, 7), TM_NO_HANDLE);
    do_sync(tm, 2);
    cr_assert_eq(send_eager(tm, 7), 1);
}

/* In sync means: equal counts, and no unexpected message is arriving. */
Test(tm_sync, nothing_is_activated_while_an_unexpected_message_arrives)
{
    struct tm_rx one, two;
    begin_eager(tm, 1, &one);
    begin_eager(tm, 2, &two);
    do_add(tm, 0, 5, EXACT, 0);
    cr_assert_eq(do_sync(tm, 0).flags, WC_TM_SYNC_REQ);
    cr_assert_eq(info_of(tm).pending, 1);
    tm_done(tm, &one, 0);
    do_sync(tm, 1);
    cr_assert_eq(info_of(tm).pending, 1, "one is still arriving");
    tm_drop(tm, &two, 0);
    cr_assert_eq(info_of(tm).active, 1, "it died, so the counts agree");

    begin_eager(tm, 2, &two);
    do_add(tm, 1, 6, EXACT, 2); /* the program reports more than the device has counted */
    cr_assert_eq(info_of(tm).pending, 1);
    tm_done(tm, &two, 0);
    cr_assert_eq(info_of(tm).pending, 0, "now it is true");
}

/* --- when to ask ------------------------------------------------------------------------------- */

Test(tm_sync, a_sync_request_comes_after_16384_messages_without_a_report)
{
    for (uint32_t n = 1; n <= 16383; n++)
        cr_assert_eq(unexpected(), 0, "message %u", n);
    cr_assert_eq(unexpected(), WC_TM_SYNC_REQ, "message 16384");
    cr_assert_eq(unexpected(), WC_TM_SYNC_REQ, "and it goes on asking");
    do_sync(tm, 2);
    cr_assert_eq(unexpected(), WC_TM_SYNC_REQ, "16386 - 2");
    do_sync(tm, 4);
    cr_assert_eq(unexpected(), 0, "16387 - 4");
    cr_assert_eq(unexpected(), WC_TM_SYNC_REQ);
    do_sync(tm, 16388);
    cr_assert_eq(unexpected(), 0);
}

/* A program that never reports. After 2^16 messages the counts are equal again, because the protocol has 16 bits for
 * them. */
Test(tm_sync, seventy_thousand_unexpected_messages)
{
    do_add(tm, 0, 0xbeef, EXACT, 0);
    for (uint32_t n = 1; n <= 70000; n++) {
        uint8_t flags = unexpected();
        cr_assert_eq(flags, (n & 0xffff) > 0x3fff ? WC_TM_SYNC_REQ : 0, "message %u", n);
        if (n == 1)
            do_add(tm, 1, 0xbeef, EXACT, 0);
        cr_assert_eq(info_of(tm).pending, n < 65536 ? 1 : 0, "message %u", n);
    }
    cr_assert_eq(info_of(tm).hw_cnt, 70000 - 65536);
    cr_assert_eq(info_of(tm).active, 2);
    cr_assert_eq(info_of(tm).counters.rx_unexp_eager, 70000);
}

/* A program that reports after each message stays in sync across the wrap, whatever the upper bits are. */
Test(tm_sync, counts_wrap)
{
    for (uint32_t n = 1; n <= 200000; n++) {
        cr_assert_eq(unexpected(), 0);
        cr_assert_eq(do_sync(tm, n).flags, 0, "message %u", n);
        cr_assert(info_of(tm).in_sync);
    }
    cr_assert_eq(info_of(tm).counters.odd_counts, 0);
}

/* Counts that no correct program sends are treated like any others. */
Test(tm_sync, odd_counts)
{
    cr_assert_eq(do_sync(tm, 5).flags, WC_TM_SYNC_REQ, "ahead");
    cr_assert_eq(info_of(tm).counters.odd_counts, 1);
    do_add(tm, 0, 1, EXACT, -1);
    cr_assert_eq(info_of(tm).pending, 1);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(info_of(tm).pending, 1);
        unexpected();
    }
    cr_assert_eq(info_of(tm).pending, 0, "the device caught up");
    cr_assert_eq(do_sync(tm, 3).flags, WC_TM_SYNC_REQ, "backwards");
    cr_assert_eq(info_of(tm).counters.odd_counts, 2);
    cr_assert_eq(do_sync(tm, UINT32_MAX).flags, WC_TM_SYNC_REQ);
    cr_assert_eq(do_sync(tm, 5).flags, 0);
}
