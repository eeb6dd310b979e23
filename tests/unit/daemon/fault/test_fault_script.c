// SPDX-License-Identifier: BSD-2-Clause
/* Scripts of faults (daemon/fault/fault_script.h): each kind of line does what its words say, the latest line that applies
 * decides, and errors name line and column. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "daemon/fault/fault.h"
#include "daemon/fault/fault_script.h"
#include "wire/pkt.h"

#define MS 1000000ull
#define S (1000 * MS)

static const uint8_t gid_a[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
static const uint8_t gid_b[16] = {[10] = 0xff, 0xff, 127, 0, 0, 2};

static struct fault state;
static uint64_t now;

static void start_with(const char *script, unsigned host, const char *base)
{
    struct fault_spec spec;
    char why[FAULT_WHY_MAX];

    cr_assert_eq(fault_parse(base, &spec, why, sizeof(why)), 0, "%s: %s", base, why);
    cr_assert_eq(fault_script_parse(script, host, 0, &spec, why, sizeof(why)), 0, "%s: %s", script, why);
    now = 100 * S;
    fault_init(&state, &spec, 1, now, now);
}

static void start(const char *script)
{
    start_with(script, 0, "");
}

static void at(uint64_t ns)
{
    now = 100 * S + ns;
    if (fault_deadline(&state) <= now)
        fault_advance(&state, now);
}

static struct fault_verdict about(uint32_t qpn, uint32_t psn, uint8_t opcode)
{
    struct fault_pkt p = {
        .src_gid = gid_a, .dst_gid = gid_b, .dest_qpn = qpn, .src_qpn = qpn + 100, .psn = psn, .opcode = opcode};
    struct fault_verdict v;

    fault_decide(&state, &p, now, &v);
    return v;
}

static enum fault_action sent(uint32_t qpn, uint32_t psn)
{
    return about(qpn, psn, OP_SEND_ONLY).action;
}

static bool refused(uint32_t psn)
{
    struct fault_pkt p = {.src_gid = gid_b, .dst_gid = gid_a, .dest_qpn = 17, .psn = psn, .opcode = OP_SEND_ONLY};

    return fault_refuses(&state, &p, now);
}

Test(fault_script, nothing_in_it)
{
    start("");
    cr_assert(!fault_on(&state));
    start("\n  # a comment\n\t\r\n#\n");
    cr_assert(!fault_on(&state));
}

Test(fault_script, drop_after_packets_of_a_qp)
{
    start("after 1000 packets of qp 0x75: drop 3 # 0x75 is 117");
    for (uint32_t i = 1; i < 1010; i++) {
        cr_assert_eq(sent(17, i), i > 1000 && i <= 1003 ? FAULT_DROP : FAULT_PASS, "%u", i);
        cr_assert_eq(sent(18, i), FAULT_PASS);
    }
}

Test(fault_script, limits)
{
    start("at 0s: drop to qp 18");
    cr_assert_eq(sent(18, 0), FAULT_DROP);
    cr_assert_eq(sent(17, 0), FAULT_PASS);
    start("at 0s: drop 2 of write-only to 127.0.0.2");
    cr_assert_eq(sent(17, 0), FAULT_PASS);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(about(17, i, OP_WRITE_ONLY).action, i < 2 ? FAULT_DROP : FAULT_PASS);
    start("at 0s: drop to fe80::1");
    cr_assert_eq(sent(17, 0), FAULT_PASS);
    start("after 1 packet of send to ::ffff:127.0.0.2: drop");
    cr_assert_eq(sent(17, 0), FAULT_PASS);
    cr_assert_eq(sent(17, 1), FAULT_DROP);
}

Test(fault_script, verbs)
{
    static const struct {
        const char *what;
        enum fault_action action;
    } t[] = {{"drop", FAULT_DROP},         {"duplicate 1", FAULT_DUPLICATE}, {"corrupt", FAULT_CORRUPT},
             {"truncate", FAULT_TRUNCATE}, {"dup=100%", FAULT_DUPLICATE},    {"drop=send", FAULT_DROP}};

    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        char script[64];

        snprintf(script, sizeof(script), "at 1s: %s for 1s", t[i].what);
        start(script);
        cr_assert_eq(sent(17, 0), FAULT_PASS, "%s", script);
        at(1 * S);
        cr_assert_eq(sent(17, 1), t[i].action, "%s", script);
        at(2 * S);
        cr_assert_eq(sent(17, 2), FAULT_PASS, "%s", script);
    }
    start("at 0s: mark 1");
    cr_assert(about(17, 0, OP_SEND_ONLY).ce);
    cr_assert(!about(17, 1, OP_SEND_ONLY).ce);
    start("at 0s: delay 1 of send by 3ms");
    cr_assert_eq(about(17, 0, OP_SEND_ONLY).delay_ns, 3 * MS);
    cr_assert_eq(about(17, 1, OP_SEND_ONLY).delay_ns, 0);
}

Test(fault_script, refuse)
{
    start("at 1s: refuse 2 of send for 1s");
    cr_assert(!refused(0));
    at(1 * S);
    cr_assert(refused(1));
    cr_assert(refused(1));
    cr_assert(!refused(1));
    cr_assert_eq(sent(17, 0), FAULT_PASS);
}

Test(fault_script, from_until)
{
    start("from 1s until 2s: loss=100%");
    cr_assert_eq(sent(17, 0), FAULT_PASS);
    at(1 * S);
    cr_assert_eq(sent(17, 1), FAULT_DROP);
    at(2 * S);
    cr_assert_eq(sent(17, 2), FAULT_PASS);
}

Test(fault_script, a_message)
{
    start("message 2 of send: drop");
    cr_assert_eq(sent(17, 0), FAULT_PASS);
    cr_assert_eq(about(17, 1, OP_SEND_FIRST).action, FAULT_DROP);
    cr_assert_eq(about(17, 2, OP_SEND_LAST).action, FAULT_DROP);
    cr_assert_eq(about(17, 1, OP_SEND_FIRST).action, FAULT_PASS);
}

Test(fault_script, link)
{
    start("at 1s: link down for 2s\nat 2s: link up for 500ms\nat 10s: link down\nat 11s: link up");
    static const struct {
        uint64_t ms;
        bool down;
    } t[] = {{0, false},   {1000, true},  {1999, true},  {2000, false}, {2499, false},  {2500, true},
             {2999, true}, {3000, false}, {10000, true}, {10999, true}, {11000, false}, {99000, false}};
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        at(t[i].ms * MS);
        cr_assert_eq(fault_link_down(&state), t[i].down, "at %lu ms", (unsigned long)t[i].ms);
    }
    start("after 2 packets: link down for 1s");
    cr_assert_eq(sent(17, 0), FAULT_PASS);
    cr_assert_eq(sent(17, 1), FAULT_PASS);
    cr_assert(!fault_link_down(&state));
    cr_assert_eq(sent(17, 2), FAULT_DROP);
    cr_assert(fault_link_down(&state));
    at(1 * S);
    cr_assert(!fault_link_down(&state));
}

Test(fault_script, kill)
{
    start("at 3s: kill");
    at(3 * S - 1);
    cr_assert(!fault_daemon_ends(&state));
    at(3 * S);
    cr_assert(fault_daemon_ends(&state));
}

/* The latest line that applies decides, and lines go before the rules of --fault. */
Test(fault_script, order)
{
    start_with("at 1s: corrupt\nat 2s: truncate of send\nat 3s: nothing for 1s", 0, "dup=100%");
    static const enum fault_action wanted[] = {FAULT_DUPLICATE, FAULT_CORRUPT, FAULT_TRUNCATE, FAULT_PASS,
                                               FAULT_TRUNCATE};
    for (uint32_t i = 0; i < 5; i++) {
        at(i * S);
        cr_assert_eq(sent(17, i), wanted[i], "at %u s", i);
    }
    cr_assert_eq(about(17, 9, OP_WRITE_ONLY).action, FAULT_CORRUPT);
}

Test(fault_script, hosts)
{
    const char *script = "at 0s host 1: drop\nat 0s: duplicate of ack\nafter 1 packet of send host 0: corrupt";

    start_with(script, 1, "");
    cr_assert_eq(sent(17, 0), FAULT_DROP);
    start_with(script, 2, "");
    cr_assert_eq(sent(17, 0), FAULT_PASS);
    cr_assert_eq(about(17, 0, OP_ACK).action, FAULT_DUPLICATE);
    start_with(script, 0, "");
    cr_assert_eq(sent(17, 0), FAULT_PASS);
    cr_assert_eq(sent(17, 1), FAULT_CORRUPT);
}

/* A line for a host that the lab does not have would never act. */
Test(fault_script, hosts_of_the_lab)
{
    struct fault_spec spec = {.n = 0};
    char why[FAULT_WHY_MAX];

    cr_assert_eq(fault_script_parse("at 0s host 1: drop", 0, 2, &spec, why, sizeof(why)), 0, "%s", why);
    cr_assert_neq(fault_script_parse("at 0s host 1: drop", 0, 1, &spec, why, sizeof(why)), 0);
}

struct text {
    char script[80];
    char why[110];
};

ParameterizedTestParameters(fault_script, errors)
{
    static struct text t[] = {
        {"\n\nat 2s link down", "line 3, column 1: no colon with a blank behind it"},
        {"at 2: drop", "line 1, column 4: '2': expected a time with its unit"},
        {"at 1s: drop\n  at 2s: dorp", "line 2, column 10: 'dorp': expected drop, duplicate"},
        {"at 2s:", "line 1, column 7: the line ends here: expected drop"},
        {"in 2s: drop", "column 1: 'in': expected at T, from T until T"},
        {"after 0 packets: drop", "column 7: '0': expected a number from 1"},
        {"after 5 frames: drop", "column 9: 'frames': expected packets"},
        {"after 5 packets of QP 7: drop", "column 20: 'QP': expected qp N, or a class of packets"},
        {"after 5 packets of qp x: drop", "'x': expected a QP number"},
        {"after 5 packets to qp 1 to qp 2: drop", "the QP is given twice"},
        {"after 5 packets of send of ack: drop", "column 28: the class is given twice"},
        {"after 5 packets to 1.2.3.4 to ::1: drop", "the address is given twice"},
        {"after 5 packets to localhost: drop", "'localhost': expected qp N, or an IPv4 or IPv6 address"},
        {"after 5 packets of send: drop of ack", "already named before the colon"},
        {"after 5 packets of send: only=ack,loss=1%", "already named before the colon"},
        {"at 1s host: drop", "the line ends here: expected the number of a host"},
        {"at 1s host 2: drop", "column 12: there is no host 2: the lab has 2, and the first one is host 0"},
        {"at 1s server 3: drop", "'server': expected host N, or the colon"},
        {"from 2s till 3s: drop", "'till': expected until"},
        {"from 3s until 2s: drop", "until must be later than from"},
        {"from 1s until 3s: drop for 1s", "give either for or until"},
        {"at 1s: drop 3 for ever", "'ever': expected a time"},
        {"at 1s: drop three", "'three': expected the end of the line, or: for T"},
        {"at 1s: delay by 11s", "'11s': expected a time up to 10s"},
        {"at 1s: delay 3", "the line ends here: expected by"},
        {"at 1s: link sideways", "'sideways': expected down or up"},
        {"at 1s: loss=1%,after=3", "in a script, times and numbers stand before the colon"},
        {"at 1s: loss=200%", "line 1, column 13: loss: invalid value \"200%\""},
        {"message 3: drop 7", "message=N names the packets"},
        {"at 1s: refuse of qp 3", "rnr is for packets that arrive"},
    };
    return cr_make_param_array(struct text, t, sizeof(t) / sizeof(t[0]));
}

ParameterizedTest(struct text *t, fault_script, errors)
{
    struct fault_spec spec = {.n = 0};
    char why[FAULT_WHY_MAX] = "";

    cr_assert_neq(fault_script_parse(t->script, 0, 2, &spec, why, sizeof(why)), 0, "%s was accepted", t->script);
    cr_assert_not_null(strstr(why, t->why), "%s: \"%s\" does not say \"%s\"", t->script, why, t->why);
    cr_assert_eq(spec.n, 0u);
    cr_assert_neq(fault_script_parse(t->script, 77, 2, &spec, NULL, 0), 0, "lines of other hosts are read, too");
}

Test(fault_script, too_long)
{
    static char script[65 * 12 + 1];
    struct fault_spec spec = {.n = 0};
    char why[FAULT_WHY_MAX];

    for (int i = 0; i < 65; i++)
        memcpy(script + 12 * i, "at 1s: drop\n", 13);
    cr_assert_neq(fault_script_parse(script, 0, 0, &spec, why, sizeof(why)), 0);
    cr_assert_str_eq(why, "line 65, column 1: too many lines for one host: at most 64, with the rules of --fault");
    script[64 * 12] = 0;
    cr_assert_eq(fault_script_parse(script, 0, 0, &spec, why, sizeof(why)), 0);
    cr_assert_eq(spec.n, 64u);
}
