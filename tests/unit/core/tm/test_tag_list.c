// SPDX-License-Identifier: BSD-2-Clause
/* Tag matching: which entry or buffer a message gets, and the operations on the list. */
#include <stdio.h>

#include "tests/unit/core/tm_suite.h"

TestSuite(tm, .init = setup, .fini = teardown);

/* --- parameters -------------------------------------------------------------------------------- */

Test(tm, parameters_have_bounds)
{
    static const struct {
        struct tm_params p;
        bool good;
    } cases[] = {
        {{.max_num_tags = 1, .max_ops = 1}, true},
        {{.max_num_tags = 4095, .max_ops = 8192, .trace_slots = 1024}, true},
        {{.max_num_tags = 4096, .max_ops = 1}, false},
        {{.max_num_tags = 0, .max_ops = 1}, false},
        {{.max_num_tags = 1, .max_ops = 0}, false},
        {{.max_num_tags = 1, .max_ops = 8193}, false},
        {{.max_num_tags = 1, .max_ops = 1, .trace_slots = 1000}, false},
        {{.max_num_tags = 1, .max_ops = 1, .trace_slots = 1 << 21}, false},
        {{.max_num_tags = 1, .max_ops = 1, .profile = TM_PROFILES}, false},
        {{.max_num_tags = 127, .max_ops = 1, .profile = TM_PROFILE_MLX5}, true},
        {{.max_num_tags = 128, .max_ops = 1, .profile = TM_PROFILE_MLX5}, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        cr_expect_eq(tm_size(&cases[i].p) != 0, cases[i].good, "case %zu", i);
    /* The limits that programs rely on. */
    const struct tm_profile *p = tm_profile(TM_PROFILE_GENEROUS);
    cr_assert(p->max_num_tags >= 4095 && p->max_ops >= 8192 && p->max_sge >= 16 && p->max_rndv_hdr >= 64);
    cr_assert_null(tm_profile(TM_PROFILES));
}

/* --- what a message is ------------------------------------------------------------------------- */

Test(tm, kinds_of_messages)
{
    static const struct {
        const char *what;
        uint32_t len;
        uint8_t opcode, kind, why, wc;
    } cases[] = {
        {"no bytes", 0, 0, TM_KIND_NO_TAG, TM_WHY_EMPTY, WC_TM_NO_TAG},
        {"no tag, 1 byte", 1, TMH_NO_TAG, TM_KIND_NO_TAG, TM_WHY_NO_TAG, WC_TM_NO_TAG},
        {"no tag, whole header", 16, TMH_NO_TAG, TM_KIND_NO_TAG, TM_WHY_NO_TAG, WC_TM_NO_TAG},
        {"FIN, 1 byte", 1, TMH_FIN, TM_KIND_FIN, TM_WHY_FIN, WC_TM_NO_TAG},
        {"FIN, TMH only", 16, TMH_FIN, TM_KIND_FIN, TM_WHY_FIN, WC_TM_NO_TAG},
        {"FIN", 32, TMH_FIN, TM_KIND_FIN, TM_WHY_FIN, WC_TM_NO_TAG},
        {"eager, 1 byte", 1, TMH_EAGER, TM_KIND_GARBAGE, TM_WHY_SHORT, WC_TM_NO_TAG},
        {"eager, 15 bytes", 15, TMH_EAGER, TM_KIND_GARBAGE, TM_WHY_SHORT, WC_TM_NO_TAG},
        {"eager, no payload", 16, TMH_EAGER, TM_KIND_EAGER, TM_WHY_NO_ENTRY, WC_TM_RECV},
        {"eager, payload", 17, TMH_EAGER, TM_KIND_EAGER, TM_WHY_NO_ENTRY, WC_TM_RECV},
        {"rendezvous, TMH only", 16, TMH_RNDV, TM_KIND_GARBAGE, TM_WHY_SHORT, WC_TM_NO_TAG},
        {"rendezvous, 31 bytes", 31, TMH_RNDV, TM_KIND_GARBAGE, TM_WHY_SHORT, WC_TM_NO_TAG},
        {"rendezvous", 32, TMH_RNDV, TM_KIND_RNDV, TM_WHY_NO_ENTRY, WC_TM_RECV},
        {"rendezvous, metadata", TM_MAX_RNDV_HDR, TMH_RNDV, TM_KIND_RNDV, TM_WHY_NO_ENTRY, WC_TM_RECV},
        {"operation 4", 64, 4, TM_KIND_GARBAGE, TM_WHY_UNKNOWN_OP, WC_TM_NO_TAG},
        {"operation 255", 1, 255, TM_KIND_GARBAGE, TM_WHY_UNKNOWN_OP, WC_TM_NO_TAG},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct packet p;
        struct tm_decision d = decide(make_msg(&p, cases[i].opcode, 5, cases[i].len));
        cr_expect_eq(d.kind, cases[i].kind, "%s: %s", cases[i].what, tm_kind_name(d.kind));
        cr_expect_eq(d.why, cases[i].why, "%s: %s", cases[i].what, tm_reason_name(d.why));
        cr_expect_eq(d.action, TM_ACT_BUFFER, "%s", cases[i].what);
        cr_expect_null(d.entry);
        cr_expect_eq(tm_wc_opcode(d.action, d.kind), cases[i].wc, "%s", cases[i].what);
        cr_expect_eq(tm_wc_table[d.action].whole, 0, "%s", cases[i].what);
    }
}

Test(tm, only_tagged_messages_count)
{
    static const struct {
        uint32_t len;
        uint8_t opcode;
        bool counts;
    } cases[] = {
        {1, TMH_NO_TAG, false}, {0, 0, false},  {32, TMH_FIN, false},  {15, TMH_EAGER, false},
        {31, TMH_RNDV, false},  {16, 9, false}, {16, TMH_EAGER, true}, {32, TMH_RNDV, true},
    };
    uint16_t count = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct packet p;
        struct tm_rx rx;
        struct tm_decision d = decide(make_msg(&p, cases[i].opcode, 5, cases[i].len));
        tm_commit(tm, &d, &rx, 0);
        cr_expect_eq(info_of(tm).inflight, cases[i].counts, "case %zu", i);
        cr_expect_eq(info_of(tm).hw_cnt, count, "case %zu: counted before it is delivered", i);
        tm_done(tm, &rx, 0);
        count += cases[i].counts;
        cr_expect_eq(info_of(tm).hw_cnt, count, "case %zu", i);
        cr_expect_eq(info_of(tm).inflight, 0);
    }
    struct tm_counters c = info_of(tm).counters;
    cr_assert(c.rx_unexp_eager == 1 && c.rx_unexp_rndv == 1 && c.rx_no_tag == 6 && c.rx_fin == 1 && c.rx_garbage == 3);
}

Test(tm, a_message_without_a_tag_does_not_stop_matching)
{
    struct packet p;
    struct tm_rx rx;
    struct tm_decision d = decide(make_msg(&p, TMH_NO_TAG, 0, 16));
    tm_commit(tm, &d, &rx, 0); /* the message is still arriving while the entry is added */
    do_add(tm, 0, 7, EXACT, 0);
    cr_assert_eq(info_of(tm).active, 1);
    cr_assert_eq(send_eager(tm, 7), 0);
    tm_done(tm, &rx, 0);
}

Test(tm, rendezvous_requests_have_a_greatest_length)
{
    struct packet p;
    make_rndv(&p, 1, 100);
    p.msg.len = TM_MAX_RNDV_HDR + 1;
    do_add(tm, 0, 1, EXACT, -1);
    struct tm_decision d = decide(&p.msg);
    cr_assert_eq(d.action, TM_ACT_REFUSE, "it would have matched");
    cr_assert_eq(d.why, TM_WHY_HEADER_TOO_LONG);
    tm_refuse(tm, &d, 5);
    cr_assert_eq(last_event(tm).type, TM_EV_REFUSE);
    cr_assert_eq(info_of(tm).counters.rx_refused, 1);
    cr_assert_eq(info_of(tm).active, 1, "nothing was consumed");

    make_rndv(&p, 1, 100);
    p.msg.whole = false; /* more packets follow */
    p.msg.len = 256;
    cr_assert_eq(decide(&p.msg).action, TM_ACT_REFUSE);
}

/* --- which entry ------------------------------------------------------------------------------- */

Test(tm, mask_table)
{
    static const struct {
        uint64_t tag, mask, message;
        bool matches;
    } cases[] = {
        {0, 0, 0, true},
        {0, 0, EXACT, true},
        {0x1234, EXACT, 0x1234, true},
        {0x1234, EXACT, 0x1235, false},
        {0x1234, EXACT, 0x8000000000001234, false},
        {0x1200, 0xff00, 0x1234, true},
        {0x1200, 0xff00, 0xab1234, true},
        {0x1200, 0xff00, 0x1334, false},
        {0x1234, 0xff00, 0x1234, false}, /* tag bits outside of the mask: never (0.9) */
        {0x1234, 0xff00, 0x1200, false},
        {1, 0, 1, false},
        {1, 0, 0, false},
        {1ull << 63, 1ull << 63, EXACT, true},
        {1ull << 63, 1ull << 63, EXACT >> 1, false},
        {0, 1ull << 63, EXACT >> 1, true},
        {EXACT, EXACT, EXACT, true},
        {EXACT, EXACT, EXACT - 1, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint32_t handle = handle_of(3, (uint32_t)i);
        do_add(tm, handle, cases[i].tag, cases[i].mask, -1);
        struct packet p;
        struct tm_decision d = decide(make_msg(&p, TMH_EAGER, cases[i].message, 20));
        cr_expect_eq(d.entry != NULL, cases[i].matches, "case %zu", i);
        cr_expect_eq(cases[i].matches, (cases[i].message & cases[i].mask) == cases[i].tag, "the table itself");
        bool almost = (cases[i].message & cases[i].mask) == (cases[i].tag & cases[i].mask);
        if (!d.entry) {
            cr_expect_eq(d.why, almost ? TM_WHY_MASK : TM_WHY_NO_MATCH, "case %zu: %s", i, tm_reason_name(d.why));
            cr_expect_eq(d.other, almost ? handle : TM_NO_HANDLE);
        }
        cr_assert_eq(do_del(tm, handle, -1).status, WC_SUCCESS);
    }
    cr_assert_eq(info_of(tm).masks, 0);
}

Test(tm, the_earliest_posted_entry_matches)
{
    static const struct {
        const char *what;
        struct {
            uint64_t tag, mask;
        } entry[3];
        uint64_t message;
        int first, second; /* entries that two such messages match; -1: none */
    } cases[] = {
        {"wildcard before specific", {{0, 0}, {5, EXACT}}, 5, 0, 1},
        {"specific before wildcard", {{5, EXACT}, {0, 0}}, 5, 0, 1},
        {"specific that does not match", {{6, EXACT}, {0, 0}, {5, EXACT}}, 5, 1, 2},
        {"twice the same", {{5, EXACT}, {5, EXACT}}, 5, 0, 1},
        {"the same after another", {{6, EXACT}, {5, EXACT}, {5, EXACT}}, 5, 1, 2},
        {"two wildcards of different masks", {{0x500, 0xf00}, {0x5, 0xf}}, 0x505, 0, 1},
        {"the other way round", {{0x5, 0xf}, {0x500, 0xf00}}, 0x505, 0, 1},
        {"wildcard between", {{5, EXACT}, {5, 0xff}, {5, EXACT}}, 5, 0, 1},
        {"nothing", {{6, EXACT}, {7, 0xff}, {1, 0}}, 5, -1, -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (uint32_t n = 0; n < 3; n++)
            do_add(tm, handle_of(n, (uint32_t)i), cases[i].entry[n].tag, cases[i].entry[n].mask, info_of(tm).hw_cnt);
        const struct tm_entry *got[2];
        struct tm_rx rx[2];
        for (int n = 0; n < 2; n++)
            got[n] = begin_eager(tm, cases[i].message, &rx[n]);
        cr_expect_eq(got[0] ? (int)TM_SLOT(got[0]->handle) : -1, cases[i].first, "%s", cases[i].what);
        cr_expect_eq(got[1] ? (int)TM_SLOT(got[1]->handle) : -1, cases[i].second, "%s", cases[i].what);
        for (int n = 0; n < 2; n++)
            tm_done(tm, &rx[n], 0);
        for (uint32_t n = 0; n < 3; n++)
            do_del(tm, handle_of(n, (uint32_t)i), info_of(tm).hw_cnt);
    }
}

/* Expects that walking the list gives this text: slots in order, * marks active ones. */
static void expect_list(const char *text, int line)
{
    char got[256] = "";
    for (const struct tm_entry *e = tm_next_entry(tm, NULL); e; e = tm_next_entry(tm, e))
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%u%s", *got ? " " : "", TM_SLOT(e->handle),
                 tm_is_active(tm, e) ? "*" : "");
    cr_expect_str_eq(got, text, "line %d: \"%s\" instead of \"%s\"", line, got, text);
}

Test(tm, the_list_keeps_the_order_of_posting)
{
    for (uint32_t n = 0; n < 6; n++)
        do_add(tm, n, n % 2, n % 3 ? EXACT : 1, -1);
    expect_list("0* 1* 2* 3* 4* 5*", __LINE__);
    cr_assert_eq(info_of(tm).masks, 2);
    do_del(tm, 2, -1);
    cr_assert_eq(send_eager(tm, 0), 0);
    expect_list("1* 3* 4* 5*", __LINE__);
    do_add(tm, handle_of(2, 1), 9, EXACT, -1);
    expect_list("1* 3* 4* 5* 2*", __LINE__);
    cr_assert_eq(send_eager(tm, 77), 3, "under mask 1");
    cr_assert_eq(send_eager(tm, 78), TM_NO_HANDLE);
    do_add(tm, handle_of(0, 1), 9, EXACT, -1);
    expect_list("1* 4* 5* 2* 0", __LINE__);
}

/* --- how it gets there ------------------------------------------------------------------------- */

static void add_buffers(uint32_t handle, const uint32_t *lengths, uint8_t n)
{
    struct sge sge[TM_MAX_SGE] = {{0}};
    for (uint8_t i = 0; i < n; i++)
        sge[i] = (struct sge){.addr = 0x10000u * i, .length = lengths[i], .lkey = i};
    struct tm_op op = {.opcode = TM_ADD, .handle = handle, .tag = 1, .mask = EXACT, .num_sge = n, .sge = sge};
    struct tm_op_result r;
    tm_op(tm, &op, &r, 0);
    cr_assert_not(r.complete, "not signaled");
}

Test(tm, eager_payload_and_buffers)
{
    static const struct {
        uint32_t len; /* of the message or its first packet */
        uint32_t sge[3];
        uint8_t num_sge;
        bool whole;
        uint8_t action, first, last, all, status;
    } cases[] = {
        {16, {0}, 0, true, TM_ACT_EAGER, 0, 0, WC_TM_MATCH | WC_TM_DATA_VALID, WC_SUCCESS},
        {17, {0}, 0, true, TM_ACT_OVERFLOW, WC_TM_MATCH, 0, 0, WC_LOC_LEN_ERR},
        {116, {100}, 1, true, TM_ACT_EAGER, 0, 0, WC_TM_MATCH | WC_TM_DATA_VALID, WC_SUCCESS},
        {117, {100}, 1, true, TM_ACT_OVERFLOW, WC_TM_MATCH, 0, 0, WC_LOC_LEN_ERR},
        {116, {50, 0, 50}, 3, true, TM_ACT_EAGER, 0, 0, WC_TM_MATCH | WC_TM_DATA_VALID, WC_SUCCESS},
        {256, {1000}, 1, false, TM_ACT_EAGER, WC_TM_MATCH, WC_TM_DATA_VALID, 0, WC_SUCCESS},
        {256, {240}, 1, false, TM_ACT_EAGER, WC_TM_MATCH, WC_TM_DATA_VALID, 0, WC_SUCCESS},
        {256, {239}, 1, false, TM_ACT_OVERFLOW, WC_TM_MATCH, 0, 0, WC_LOC_LEN_ERR},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint32_t handle = handle_of(0, (uint32_t)i);
        add_buffers(handle, cases[i].sge, cases[i].num_sge);
        struct packet p;
        make_msg(&p, TMH_EAGER, 1, cases[i].len);
        p.msg.whole = cases[i].whole;
        struct tm_decision d = decide(&p.msg);
        cr_assert_not_null(d.entry, "case %zu", i);
        cr_expect_eq(d.action, cases[i].action, "case %zu", i);
        const struct tm_wc *wc = &tm_wc_table[d.action];
        cr_expect_eq(wc->status, cases[i].status, "case %zu", i);
        if (cases[i].whole)
            cr_expect_eq(wc->whole, cases[i].all, "case %zu", i);
        else
            cr_expect(wc->first == cases[i].first && wc->last == cases[i].last, "case %zu", i);
        struct tm_rx rx;
        tm_commit(tm, &d, &rx, 0);
        cr_expect_eq(rx.tmh.app_ctx, 0xabcd0123);
        cr_expect_eq(rx.entry->num_sge, cases[i].num_sge);
        for (uint8_t n = 0; n < cases[i].num_sge; n++)
            cr_expect(rx.entry->sge[n].length == cases[i].sge[n] && rx.entry->sge[n].lkey == n, "case %zu", i);
        tm_done(tm, &rx, 0);
    }
    cr_assert_eq(info_of(tm).consumed, 0);
}

Test(tm, rendezvous_and_buffers)
{
    static const struct {
        uint32_t data, room;
        bool can_read;
        uint8_t action, why, first, last, all, status;
    } cases[] = {
        {100, 100, true, TM_ACT_READ, TM_WHY_NONE, WC_TM_MATCH, WC_TM_DATA_VALID, 0, WC_SUCCESS},
        {99, 100, true, TM_ACT_READ, TM_WHY_NONE, WC_TM_MATCH, WC_TM_DATA_VALID, 0, WC_SUCCESS},
        {101, 100, true, TM_ACT_INCOMPLETE, TM_WHY_BUFFER_TOO_SHORT, 0, 0, WC_TM_MATCH | WC_TM_DATA_VALID,
         WC_TM_RNDV_INCOMPLETE},
        {100, 100, false, TM_ACT_INCOMPLETE, TM_WHY_NO_READS, 0, 0, WC_TM_MATCH | WC_TM_DATA_VALID,
         WC_TM_RNDV_INCOMPLETE},
        {0, 100, true, TM_ACT_FIN, TM_WHY_NONE, 0, 0, WC_TM_MATCH | WC_TM_DATA_VALID, WC_SUCCESS},
        {0, 0, false, TM_ACT_FIN, TM_WHY_NONE, 0, 0, WC_TM_MATCH | WC_TM_DATA_VALID, WC_SUCCESS},
        {UINT32_MAX, 1u << 31, true, TM_ACT_INCOMPLETE, TM_WHY_BUFFER_TOO_SHORT, 0, 0, WC_TM_MATCH | WC_TM_DATA_VALID,
         WC_TM_RNDV_INCOMPLETE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        add_buffers(handle_of(0, (uint32_t)i), &cases[i].room, 1);
        struct packet p;
        make_rndv(&p, 1, cases[i].data);
        p.msg.can_read = cases[i].can_read;
        struct tm_decision d = decide(&p.msg);
        cr_assert_not_null(d.entry, "case %zu", i);
        cr_expect_eq(d.action, cases[i].action, "case %zu", i);
        cr_expect_eq(d.why, cases[i].why, "case %zu: %s", i, tm_reason_name(d.why));
        const struct tm_wc *wc = &tm_wc_table[d.action];
        cr_expect_eq(wc->status, cases[i].status, "case %zu", i);
        if (d.action == TM_ACT_READ)
            cr_expect(wc->first == cases[i].first && wc->last == cases[i].last, "case %zu", i);
        else
            cr_expect_eq(wc->whole, cases[i].all, "case %zu", i);
        cr_expect(d.rvh.va == 0x123456789abcdef0 && d.rvh.rkey == 0xfeedbeef && d.rvh.len == cases[i].data);
        cr_expect(d.tmh.reserved[0] == 1 && d.tmh.reserved[2] == 3, "reserved bytes go into the FIN");
        struct tm_rx rx;
        tm_commit(tm, &d, &rx, 0);
        tm_done(tm, &rx, 0);
    }
    struct tm_counters c = info_of(tm).counters;
    cr_assert(c.rndv_fin == 4 && c.sw_rndv == 3 && c.rx_exp_rndv == 7);
    cr_assert_eq(info_of(tm).hw_cnt, 0, "they all matched");
}

/* --- no trace of what did not happen ----------------------------------------------------------- */

Test(tm, a_decision_without_commit_changes_nothing)
{
    struct packet p;
    make_msg(&p, TMH_EAGER, 5, 32);
    do_add(tm, 0, 6, EXACT, -1);
    for (int i = 0; i < 3; i++) { /* three times without a buffer */
        struct tm_decision d = decide(&p.msg);
        cr_assert_null(d.entry);
        tm_refuse(tm, &d, 0);
    }
    struct tm_info info = info_of(tm);
    cr_assert(info.hw_cnt == 0 && info.inflight == 0 && info.active == 1 && info.in_sync);
    cr_assert_eq(info.counters.rx_wait, 3);
    cr_assert_eq(info.counters.depth_sum, 0);
    /* When the message comes again, there is an active entry. The earlier decisions don't count. */
    do_add(tm, 1, 5, EXACT, -1);
    struct tm_decision d = decide(&p.msg);
    cr_assert_not_null(d.entry);
    cr_assert_eq(d.entry->handle, 1);
}

Test(tm, an_undelivered_message_is_not_counted)
{
    struct tm_rx rx, matched;
    do_add(tm, 0, 1, EXACT, -1);
    cr_assert_null(begin_eager(tm, 5, &rx));
    do_add(tm, 1, 2, EXACT, 0);
    cr_assert_eq(info_of(tm).pending, 1, "the unexpected message is still arriving");
    cr_assert_not_null(begin_eager(tm, 1, &matched), "active before, active still");
    tm_drop(tm, &rx, 0);
    cr_assert_eq(info_of(tm).pending, 0);
    cr_assert_eq(info_of(tm).hw_cnt, 0);
    cr_assert_eq(send_eager(tm, 2), 1);
    tm_drop(tm, &matched, 0);
    cr_assert_eq(info_of(tm).consumed, 0);
    cr_assert_eq(info_of(tm).counters.rx_dropped, 2);
    tm_drop(tm, &matched, 0); /* it holds no resources any more */
    cr_assert_eq(tm_done(tm, &matched, 0), 0);
    cr_assert_eq(info_of(tm).counters.rx_dropped, 2);
}

/* --- handles ----------------------------------------------------------------------------------- */

Test(tm, deletions_and_races)
{
    struct tm_rx rx;
    /* Deleting a listed entry. */
    do_add(tm, handle_of(4, 0), 5, EXACT, -1);
    struct tm_op_result r = do_del(tm, handle_of(4, 0), -1);
    cr_assert(r.complete && r.status == WC_SUCCESS && r.opcode == WC_TM_DEL && r.flags == 0);
    cr_assert_eq(send_eager(tm, 5), TM_NO_HANDLE, "no message comes for it any more");
    do_sync(tm, 1);
    /* Deleting it twice. */
    r = do_del(tm, handle_of(4, 0), -1);
    cr_assert(r.complete && r.status == WC_TM_ERR && r.why == TM_WHY_STALE);
    /* Deleting a consumed entry: first while its data still arrives, then when all has arrived. */
    do_add(tm, handle_of(4, 1), 5, EXACT, -1);
    cr_assert_not_null(begin_eager(tm, 5, &rx));
    r = do_del(tm, handle_of(4, 1), -1);
    cr_assert(r.status == WC_TM_ERR && r.why == TM_WHY_CONSUMED);
    tm_done(tm, &rx, 0);
    r = do_del(tm, handle_of(4, 1), -1);
    cr_assert(r.status == WC_TM_ERR && r.why == TM_WHY_STALE);
    /* The slot is used again. The old handles don't affect the new entry. */
    do_add(tm, handle_of(4, 2), 5, EXACT, -1);
    cr_assert_eq(do_del(tm, handle_of(4, 1), -1).status, WC_TM_ERR);
    cr_assert_eq(do_del(tm, handle_of(4, 0), -1).status, WC_TM_ERR);
    cr_assert_eq(do_del(tm, handle_of(4, 2) + (1u << 31), -1).status, WC_TM_ERR);
    cr_assert_eq(do_del(tm, TM_NO_HANDLE, -1).status, WC_TM_ERR);
    cr_assert_eq(info_of(tm).active, 1);
    /* A late deletion that is not signaled: no completion. */
    struct tm_op op = {.opcode = TM_DEL, .handle = handle_of(4, 1)};
    tm_op(tm, &op, &r, 0);
    cr_assert_not(r.complete);
    /* A pending entry can be deleted as well. */
    send_eager(tm, 99);
    do_add(tm, 8, 6, EXACT, 0);
    cr_assert_eq(info_of(tm).pending, 1);
    cr_assert_eq(do_del(tm, 8, -1).status, WC_SUCCESS);
    cr_assert_eq(info_of(tm).pending, 0);
    struct tm_counters c = info_of(tm).counters;
    cr_assert(c.list_del == 2 && c.list_del_late == 8 && c.list_add == 4);
}

Test(tm, additions_of_a_hostile_client)
{
    struct tm_rx rx;
    struct sge sge[TM_MAX_SGE + 1] = {{0}};
    do_add(tm, handle_of(0, 0), 1, EXACT, -1);
    do_add(tm, handle_of(1, 0), 2, EXACT, -1);
    begin_eager(tm, 2, &rx);
    const struct {
        struct tm_op op;
        uint8_t why;
    } cases[] = {
        {{.opcode = TM_ADD, .handle = handle_of(0, 1)}, TM_WHY_SLOT_TAKEN}, /* listed */
        {{.opcode = TM_ADD, .handle = handle_of(1, 1)}, TM_WHY_SLOT_TAKEN}, /* data arriving */
        {{.opcode = TM_ADD, .handle = handle_of(TM_MAX_TAGS, 0)}, TM_WHY_BAD_SLOT},
        {{.opcode = TM_ADD, .handle = TM_NO_HANDLE}, TM_WHY_BAD_SLOT},
        {{.opcode = TM_ADD, .handle = 2, .sge = sge, .num_sge = TM_MAX_SGE + 1}, TM_WHY_BAD_SGE},
        {{.opcode = TM_ADD, .handle = 2, .sge = sge, .num_sge = 255}, TM_WHY_BAD_SGE},
        {{.opcode = 3, .handle = 0}, TM_WHY_BAD_OP},
        {{.opcode = 255, .handle = 0, .flags = 255}, TM_WHY_BAD_OP},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct tm_op_result r;
        tm_op(tm, &cases[i].op, &r, 0);
        cr_expect(r.complete, "case %zu: signaled or not", i);
        cr_expect_eq(r.status, WC_TM_ERR, "case %zu", i);
        cr_expect_eq(r.why, cases[i].why, "case %zu: %s", i, tm_reason_name(r.why));
        cr_expect(info_of(tm).active == 1 && info_of(tm).consumed == 1, "case %zu", i);
        cr_expect_eq(last_event(tm).type, TM_EV_REFUSED_OP, "case %zu", i);
    }
    struct tm_op most = {.opcode = TM_ADD, .handle = 2, .sge = sge, .num_sge = TM_MAX_SGE};
    struct tm_op_result r;
    tm_op(tm, &most, &r, 0);
    cr_assert_eq(r.status, WC_SUCCESS);
}

Test(tm, every_slot_can_be_used)
{
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < TM_MAX_TAGS; i++)
            cr_assert_eq(do_add(tm, handle_of(i, round), 7, EXACT, -1).status, WC_SUCCESS);
        cr_assert_eq(info_of(tm).active, TM_MAX_TAGS);
        for (uint32_t i = 0; i < TM_MAX_TAGS; i++)
            cr_assert_eq(send_eager(tm, 7), handle_of(i, round), "one tag, in the order of posting");
        cr_assert_eq(info_of(tm).active, 0);
    }
}

/* As many different masks as entries. All slots, classes and buckets are found and freed again. */
Test(tm, every_entry_may_have_a_mask_of_its_own)
{
    for (uint32_t i = 0; i < TM_MAX_TAGS; i++)
        do_add(tm, i, 1ull << 63, 1ull << 63 | i, -1);
    cr_assert_eq(info_of(tm).masks, TM_MAX_TAGS);
    for (uint32_t i = 0; i < TM_MAX_TAGS; i++)
        cr_assert_eq(send_eager(tm, 1ull << 63), i);
    cr_assert_eq(info_of(tm).masks, 0);
}

/* --- cost -------------------------------------------------------------------------------------- */

/* Finding a tag behind 4,000 others takes only a few comparisons, with and without wildcards. */
Test(tm, depth_does_not_grow_with_the_list)
{
    static const uint64_t masks[] = {EXACT, 0xffffffff, 0xffff0000ffffffff};
    for (uint32_t i = 0; i < 4000; i++)
        do_add(tm, i, i * 0x10001, masks[i % 3], -1);
    struct tm_counters before = info_of(tm).counters;
    for (uint32_t i = 4000; i-- > 0;) /* the last one posted first */
        cr_assert_eq(send_eager(tm, i * 0x10001), i);
    struct tm_counters after = info_of(tm).counters;
    cr_assert_lt(after.depth_sum - before.depth_sum, 4000 * 8, "%llu comparisons",
                 (unsigned long long)(after.depth_sum - before.depth_sum));
    cr_assert_leq(after.depth_max, 24, "%llu", (unsigned long long)after.depth_max);
    cr_assert_gt(after.depth_max, 0);
}

/* --- the strict profile ------------------------------------------------------------------------ */

Test(tm, mlx5_profile)
{
    struct tag_list *strict = tm_make(127, TM_PROFILE_MLX5);
    struct packet p;
    struct tm_decision d;
    struct sge sge[2] = {{.length = 4}, {.length = 4}};
    struct tm_op op = {.opcode = TM_ADD, .handle = 0, .tag = 1, .mask = EXACT, .sge = sge, .num_sge = 2};
    struct tm_op_result r;
    tm_op(strict, &op, &r, 0);
    cr_assert_eq(r.why, TM_WHY_BAD_SGE);
    op.num_sge = 1;
    tm_op(strict, &op, &r, 0);
    cr_assert_eq(r.status, WC_SUCCESS);
    /* No message is accepted before 33 buffers are posted. */
    tm_buffers_posted(strict, 32);
    tm_decide(strict, make_msg(&p, TMH_EAGER, 1, 20), &d);
    cr_assert(d.action == TM_ACT_WAIT && d.why == TM_WHY_FEW_BUFFERS && !d.entry);
    tm_buffers_posted(strict, 1);
    tm_decide(strict, &p.msg, &d);
    cr_assert_eq(d.action, TM_ACT_EAGER);
    make_rndv(&p, 1, 4);
    p.msg.len = 64;
    tm_decide(strict, &p.msg, &d);
    cr_assert_eq(d.action, TM_ACT_READ);
    p.msg.len = 65;
    tm_decide(strict, &p.msg, &d);
    cr_assert_eq(d.action, TM_ACT_REFUSE);
    cr_assert(tm_profile(TM_PROFILE_MLX5)->owns_send_queue && !tm_profile(TM_PROFILE_GENEROUS)->owns_send_queue);
    free(strict);
}
