// SPDX-License-Identifier: BSD-2-Clause
/* Tag matching for users: the trace and its reasons. */
#include "tests/unit/core/tm_suite.h"

TestSuite(tm_trace, .init = setup, .fini = teardown);

Test(tm_trace, the_trace_has_each_event_with_its_reason)
{
    struct packet p;
    struct tm_rx rx;
    do_add(tm, 0, 1, EXACT, 0);
    struct tm_decision d = decide(make_msg(&p, TMH_EAGER, 2, 16));
    tm_commit(tm, &d, &rx, 100);
    do_add(tm, 1, 3, EXACT, 0);
    d = decide(make_msg(&p, TMH_EAGER, 3, 16));
    tm_refuse(tm, &d, 200);
    tm_done(tm, &rx, 300);
    d = decide(make_msg(&p, TMH_EAGER, 3, 16));
    tm_commit(tm, &d, &rx, 400);
    tm_done(tm, &rx, 500);
    do_del(tm, 1, 2);
    cr_assert_eq(send_eager(tm, 1), 0);

    static const struct {
        uint8_t type, why;
        uint64_t time, tag;
        uint32_t handle;
        uint16_t hw_cnt, sw_cnt;
        uint32_t inflight;
    } expect[] = {
        {TM_EV_ADD, TM_WHY_NONE, 0, 1, 0, 0, 0, 0},
        {TM_EV_UNEXPECTED, TM_WHY_NO_MATCH, 100, 2, TM_NO_HANDLE, 0, 0, 1},
        {TM_EV_ADD, TM_WHY_NONE, 100, 3, 1, 0, 0, 1},
        {TM_EV_WAIT, TM_WHY_PENDING_INFLIGHT, 200, 3, 1, 0, 0, 1},
        {TM_EV_DELIVER, TM_WHY_NONE, 300, 2, TM_NO_HANDLE, 1, 0, 0},
        {TM_EV_UNEXPECTED, TM_WHY_PENDING, 400, 3, 1, 1, 0, 1},
        {TM_EV_DELIVER, TM_WHY_NONE, 500, 3, TM_NO_HANDLE, 2, 0, 0},
        {TM_EV_ACTIVATE, TM_WHY_NONE, 500, 0, TM_NO_HANDLE, 2, 2, 0},
        {TM_EV_DEL, TM_WHY_NONE, 500, 0, 1, 2, 2, 0},
        {TM_EV_MATCH, TM_WHY_NONE, 500, 1, 0, 2, 2, 0},
        {TM_EV_COMPLETE, TM_WHY_NONE, 500, 1, 0, 2, 2, 0},
    };
    cr_assert_eq(tm_trace_end(tm), sizeof(expect) / sizeof(*expect));
    for (uint64_t i = 0; i < tm_trace_end(tm); i++) {
        struct tm_event ev;
        cr_assert(tm_trace_get(tm, i, &ev));
        cr_expect_eq(ev.type, expect[i].type, "event %u: %s", (unsigned)i, tm_event_name(ev.type));
        cr_expect_eq(ev.why, expect[i].why, "event %u: %s", (unsigned)i, tm_reason_name(ev.why));
        cr_expect(ev.time == expect[i].time && ev.tag == expect[i].tag && ev.handle == expect[i].handle, "event %u",
                  (unsigned)i);
        cr_expect(ev.hw_cnt == expect[i].hw_cnt && ev.sw_cnt == expect[i].sw_cnt && ev.inflight == expect[i].inflight,
                  "event %u", (unsigned)i);
    }
    struct tm_event ev;
    tm_trace_get(tm, 7, &ev);
    cr_assert_eq(ev.entries, 1, "one entry became active");
}

/* A message without a buffer arrives several times. That is one event, until something else happens. */
Test(tm_trace, a_deferred_decision_is_recorded_once)
{
    struct packet p;
    for (int i = 0; i < 10; i++) {
        struct tm_decision d = decide(make_msg(&p, TMH_EAGER, 3 + (i >= 5), 16));
        tm_refuse(tm, &d, 0);
    }
    cr_assert_eq(tm_trace_end(tm), 2);
    cr_assert_eq(info_of(tm).counters.rx_wait, 10, "each of them counts");
    do_sync(tm, 0);
    struct tm_decision d = decide(make_msg(&p, TMH_EAGER, 4, 16));
    tm_refuse(tm, &d, 0);
    cr_assert(tm_trace_end(tm) == 4 && last_event(tm).type == TM_EV_WAIT);
}

/* A message that was delivered, and whose delivery was revoked. */
Test(tm_trace, a_revoked_decision_is_recorded)
{
    struct tm_rx rx;
    begin_eager(tm, 1, &rx);
    tm_done(tm, &rx, 0);
    do_add(tm, 0, 1, EXACT, -1);
    tm_uncount(tm, 7);
    struct tm_event ev;
    cr_assert(tm_trace_get(tm, tm_trace_end(tm) - 2, &ev));
    cr_assert(ev.type == TM_EV_UNCOUNT && ev.hw_cnt == 0 && ev.time == 7);
    cr_assert_eq(last_event(tm).type, TM_EV_ACTIVATE);
}

Test(tm_trace, the_trace_forgets_the_oldest)
{
    struct tm_event ev;
    cr_assert_not(tm_trace_get(tm, 0, &ev));
    for (uint32_t i = 0; i < TRACE_SLOTS + 5; i++)
        do_sync(tm, i);
    cr_assert_eq(tm_trace_end(tm), TRACE_SLOTS + 5);
    cr_assert_not(tm_trace_get(tm, 4, &ev));
    cr_assert(tm_trace_get(tm, 5, &ev));
    cr_assert_eq(ev.sw_cnt, 5);
    cr_assert_not(tm_trace_get(tm, TRACE_SLOTS + 5, &ev));
}

/* Without a trace, a list needs no memory for it, and works. */
Test(tm_trace, the_trace_is_optional)
{
    struct tm_params p = {.max_num_tags = 4, .max_ops = 4};
    struct tm_params traced = p;
    traced.trace_slots = 1024;
    cr_assert_gt(tm_size(&traced), tm_size(&p) + 1000 * sizeof(struct tm_event));
    struct tag_list *quiet = tm_init(calloc(1, tm_size(&p)), &p);
    struct tm_event ev;
    do_sync(quiet, 3);
    cr_assert_not(tm_trace_get(quiet, 0, &ev));
    free(quiet);
}

Test(tm_trace, everything_has_a_name)
{
    for (uint8_t i = 0; i < TM_EVENT_COUNT; i++)
        cr_assert_str_neq(tm_event_name(i), "?");
    cr_assert_str_eq(tm_event_name(TM_EVENT_COUNT), "?");
    for (uint8_t i = 0; i < TM_REASON_COUNT; i++) {
        cr_assert_str_neq(tm_reason_name(i), "?");
        cr_assert_str_neq(tm_reason_text(i), "?");
        for (uint8_t j = 0; j < i; j++)
            cr_assert_str_neq(tm_reason_name(i), tm_reason_name(j));
    }
    cr_assert_str_eq(tm_reason_name(TM_REASON_COUNT), "?");
    cr_assert_str_eq(tm_kind_name(TM_KIND_RNDV), "rndv");
    cr_assert_str_eq(tm_kind_name(TM_KIND_RNDV + 1), "?");
}
