// SPDX-License-Identifier: BSD-2-Clause
/* Which rule of a fault specification is in force (daemon/fault/fault_match.h), and what it does: classes of packets, messages,
 * times and counts, refused messages, the link and the daemon. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>

#include "daemon/fault/fault.h"
#include "wire/cm_msg.h"
#include "wire/pkt.h"
#include "wire/syndrome.h"
#include "wire/tmh.h"

#define MS 1000000ull
#define S (1000 * MS)

static const uint8_t gid_a[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
static const uint8_t gid_b[16] = {[10] = 0xff, 0xff, 127, 0, 0, 2};

static struct fault state;
static uint64_t now;

static void start(const char *text)
{
    struct fault_spec spec;
    char why[FAULT_WHY_MAX];

    now = 7 * S; /* the times of rules begin here */
    cr_assert_eq(fault_parse(text, &spec, why, sizeof(why)), 0, "%s: %s", text, why);
    fault_init(&state, &spec, 1, now, now);
}

static struct fault_pkt packet(uint32_t qpn, uint32_t psn, uint8_t opcode)
{
    return (struct fault_pkt){
        .src_gid = gid_a, .dst_gid = gid_b, .dest_qpn = qpn, .src_qpn = qpn + 100, .psn = psn, .opcode = opcode};
}

static enum fault_action about(struct fault_pkt p)
{
    struct fault_verdict v;

    fault_decide(&state, &p, now, &v);
    return v.action;
}

static bool lost(uint32_t qpn, uint32_t psn, uint8_t opcode)
{
    return about(packet(qpn, psn, opcode)) == FAULT_DROP;
}

static void at(uint64_t ns) /* after the start */
{
    now = 7 * S + ns;
    if (fault_deadline(&state) <= now)
        fault_advance(&state, now);
}

/* --- classes ------------------------------------------------------------------------------------ */

/* x: the packets that each class has. */
Test(fault_match, opcodes)
{
    static const uint8_t opcodes[] = {OP_SEND_FIRST,
                                      OP_SEND_ONLY_IMM,
                                      OP_WRITE_ONLY,
                                      OP_READ_REQUEST,
                                      OP_READ_RESP_ONLY,
                                      OP_ACK,
                                      OP_FETCH_ADD,
                                      OP_FLUSH,
                                      OP_SERVICE_UC | OP_SEND_FIRST,
                                      OP_SERVICE_UD | OP_SEND_ONLY,
                                      OP_SERVICE_XRC | OP_SEND_FIRST,
                                      OP_CNP};
    static const struct {
        const char *class, *hits;
    } t[] = {
        {"any", "xxxxxxxxxxxx"},
        {"send-first", "x.......x.x."},
        {"SEND_First", "x.......x.x."},
        {"rc-send-first", "x..........."},
        {"xrc-send-first", "..........x."},
        {"ud-send-only", ".........x.."},
        {"send-only-with-immediate", ".x.........."},
        {"write-only", "..x........."},
        {"rdma-write-only", "..x........."},
        {"read-request", "...x........"},
        {"read-response-only", "....x......."},
        {"acknowledge", ".....x......"},
        {"fetchadd", "......x....."},
        {"flush", ".......x...."},
        {"cnp", "...........x"},
        {"uc", "........x..."},
        {"ud", ".........x.."},
        {"xrc", "..........x."},
        {"rc", "xxxxxxxx...."},
    };

    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        char spec[64];

        snprintf(spec, sizeof(spec), "drop=%s", t[i].class);
        start(spec);
        for (size_t j = 0; j < sizeof(opcodes); j++)
            cr_expect_eq(lost(17, 0, opcodes[j]), t[i].hits[j] == 'x', "%s: %s %s", spec, op_service_name(opcodes[j]),
                         op_table[opcodes[j]].name);
    }
}

Test(fault_match, naks)
{
    struct fault_pkt ack = packet(17, 0, OP_ACK), rnr = ack, nak = ack, data = packet(17, 0, OP_SEND_ONLY);

    ack.syndrome = AETH_ACK | AETH_NO_CREDITS;
    rnr.syndrome = AETH_RNR | 3;
    nak.syndrome = NAK_PSN_SEQUENCE;
    data.syndrome = NAK_PSN_SEQUENCE; /* it has no AETH */
    start("drop=nak");
    cr_assert_eq(about(ack), FAULT_PASS);
    cr_assert_eq(about(rnr), FAULT_DROP);
    cr_assert_eq(about(nak), FAULT_DROP);
    cr_assert_eq(about(data), FAULT_PASS);
    start("drop=rnr-nak");
    cr_assert_eq(about(ack), FAULT_PASS);
    cr_assert_eq(about(rnr), FAULT_DROP);
    cr_assert_eq(about(nak), FAULT_PASS);
}

Test(fault_match, tag_matching)
{
    static const char *const spec[] = {"drop=tm-no-tag", "drop=tm-rndv", "drop=tm-fin", "drop=tm-eager", "drop=tm"};
    struct fault_pkt p = packet(17, 0, OP_SEND_ONLY);

    for (unsigned i = 0; i < 5; i++) {
        start(spec[i]);
        for (unsigned op = TMH_NO_TAG; op <= TMH_EAGER; op++) {
            p.tm = (uint8_t)(1 + op);
            cr_assert_eq(about(p), op == i || i == 4 ? FAULT_DROP : FAULT_PASS, "%s: %u", spec[i], op);
        }
        p.tm = 0;
        cr_assert_eq(about(p), FAULT_PASS, "%s", spec[i]);
    }
}

/* The fields that are read from the bytes of a packet. */
Test(fault_match, reading_packets)
{
    uint8_t p[64] = {OP_SEND_ONLY, 0, 0xff, 0xff, 0, 0, 0, 17, 0, 0, 1, 5, TMH_RNDV};
    struct fault_pkt f = {0};

    fault_pkt_read(&f, p, BTH_LEN + TMH_LEN + ICRC_LEN);
    cr_assert_eq(f.opcode, OP_SEND_ONLY);
    cr_assert_eq(f.dest_qpn, 17u);
    cr_assert_eq(f.psn, 0x105u);
    cr_assert_eq(f.tm, 1 + TMH_RNDV);
    fault_pkt_read(&f, p, BTH_LEN + TMH_LEN + ICRC_LEN - 1);
    cr_assert_eq(f.tm, 0, "too short for the header");
    p[BTH_LEN] = 77;
    fault_pkt_read(&f, p, sizeof(p));
    cr_assert_eq(f.tm, 0, "no operation of tag matching");
    p[0] = OP_SEND_LAST;
    p[BTH_LEN] = TMH_FIN;
    fault_pkt_read(&f, p, sizeof(p));
    cr_assert_eq(f.tm, 0, "the end of a message");
    p[0] = OP_ACK;
    p[BTH_LEN] = NAK_REMOTE_ACCESS;
    fault_pkt_read(&f, p, BTH_LEN + AETH_LEN + ICRC_LEN);
    cr_assert_eq(f.syndrome, NAK_REMOTE_ACCESS);
    cr_assert_eq(f.tm, 0);
}

Test(fault_match, source_qp)
{
    start("src-qpn=117,loss=100%");
    cr_assert(lost(17, 0, OP_SEND_ONLY));
    cr_assert(!lost(18, 0, OP_SEND_ONLY));
}

/* --- numbers ------------------------------------------------------------------------------------ */

Test(fault_match, after_and_count)
{
    start("qpn=0x11,after=1000,count=3,loss=100%");
    for (uint32_t i = 1; i <= 1010; i++) {
        cr_assert_eq(lost(17, i, OP_SEND_ONLY), i > 1000 && i <= 1003, "packet %u", i);
        cr_assert(!lost(18, i, OP_SEND_ONLY), "packets of other QPs don't count");
    }
    start("after=2,loss=100%");
    for (uint32_t i = 1; i <= 100; i++)
        cr_assert_eq(lost(17, i, OP_SEND_ONLY), i > 2);
}

/* Sends the packets of a message of n packets again from one of them on. Returns how many were lost. */
static unsigned message(uint32_t qpn, uint32_t psn, unsigned n, unsigned from)
{
    unsigned hits = 0;

    for (unsigned i = from; i < n; i++)
        hits += lost(qpn, psn + i,
                     n == 1       ? OP_WRITE_ONLY
                     : i == 0     ? OP_WRITE_FIRST
                     : i == n - 1 ? OP_WRITE_LAST
                                  : OP_WRITE_MIDDLE);
    return hits;
}

Test(fault_match, each_packet_of_the_nth_message_once)
{
    start("message=3,loss=100%");
    cr_assert_eq(message(17, 0xfffffd, 2, 0), 0u);
    cr_assert_eq(message(17, 0xfffffd, 2, 0), 0u, "a retransmission is no further message");
    cr_assert_eq(message(18, 50, 4, 0), 0u);
    cr_assert_eq(message(17, 0xffffff, 4, 0), 4u);
    cr_assert_eq(message(17, 0xffffff, 4, 0), 0u, "its retransmission passes");
    cr_assert_eq(message(17, 3, 1, 0), 0u);
    cr_assert_eq(state.counters.fault_dropped, 4u);
}

/* The message goes back while it is sent, and another QP sends in between. ACKs are no messages. */
Test(fault_match, a_message_with_repetitions)
{
    start("message=2,loss=100%");
    cr_assert(!lost(17, 0, OP_SEND_ONLY));
    cr_assert(!lost(18, 70, OP_ACK));
    cr_assert(lost(17, 1, OP_SEND_FIRST));
    cr_assert(lost(17, 2, OP_SEND_MIDDLE));
    cr_assert(!lost(18, 0, OP_SEND_FIRST));
    cr_assert(!lost(17, 1, OP_SEND_FIRST));
    cr_assert(!lost(17, 2, OP_SEND_MIDDLE));
    cr_assert(lost(17, 3, OP_SEND_LAST));
    cr_assert(!lost(18, 1, OP_SEND_LAST));
    cr_assert(!lost(17, 3, OP_SEND_LAST));
    cr_assert(!lost(17, 4, OP_SEND_ONLY));
}

Test(fault_match, the_nth_message_of_a_qp)
{
    start("qpn=18,only=write,message=2,dup=100%");
    cr_assert_eq(about(packet(18, 0, OP_WRITE_ONLY)), FAULT_PASS);
    cr_assert_eq(about(packet(17, 0, OP_WRITE_ONLY)), FAULT_PASS);
    cr_assert_eq(about(packet(18, 1, OP_SEND_ONLY)), FAULT_PASS);
    cr_assert_eq(about(packet(18, 2, OP_WRITE_ONLY)), FAULT_DUPLICATE);
    cr_assert_eq(about(packet(18, 2, OP_WRITE_ONLY)), FAULT_PASS);
    cr_assert_eq(about(packet(18, 3, OP_WRITE_ONLY)), FAULT_PASS);
}

/* --- times -------------------------------------------------------------------------------------- */

Test(fault_match, time_windows)
{
    start("from=2s,until=2.5s,loss=100%;from=2.2s,for=1s,dup=100%");
    static const struct {
        uint64_t ms;
        enum fault_action action;
    } t[] = {{0, FAULT_PASS},         {1999, FAULT_PASS},      {2000, FAULT_DROP}, {2499, FAULT_DROP},
             {2500, FAULT_DUPLICATE}, {3199, FAULT_DUPLICATE}, {3200, FAULT_PASS}, {99999, FAULT_PASS}};
    for (uint32_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        at(t[i].ms * MS);
        cr_assert_eq(about(packet(17, i, OP_SEND_ONLY)), t[i].action, "at %lu ms", (unsigned long)t[i].ms);
    }
    cr_assert_eq(fault_deadline(&state), UINT64_MAX, "nothing happens without a packet");
}

/* The time begins with the packet, and packets before `from` do not count. */
Test(fault_match, packets_and_times)
{
    start("from=1s,after=2,for=10ms,loss=100%");
    for (uint32_t i = 0; i < 5; i++)
        cr_assert(!lost(17, i, OP_SEND_ONLY));
    at(1 * S);
    cr_assert(!lost(17, 10, OP_SEND_ONLY));
    cr_assert(!lost(17, 11, OP_SEND_ONLY));
    at(5 * S);
    cr_assert(lost(17, 12, OP_SEND_ONLY));
    at(5 * S + 10 * MS - 1);
    cr_assert(lost(17, 13, OP_SEND_ONLY));
    at(5 * S + 10 * MS);
    cr_assert(!lost(17, 14, OP_SEND_ONLY));
}

/* --- truncation --------------------------------------------------------------------------------- */

Test(fault_match, truncation_leaves_a_part)
{
    bool seen[64] = {false};

    start("truncate=100%");
    for (uint32_t i = 0; i < 5000; i++) {
        struct fault_pkt p = packet(17, i, OP_SEND_ONLY);
        struct fault_verdict v;

        fault_decide(&state, &p, now, &v);
        cr_assert_eq(v.action, FAULT_TRUNCATE);
        size_t left = fault_truncated_len(&v, 64);
        cr_assert(left >= BTH_LEN + ICRC_LEN && left < 64, "%zu", left);
        seen[left] = true;
        cr_assert_eq(fault_truncated_len(&v, BTH_LEN + ICRC_LEN), (size_t)BTH_LEN + ICRC_LEN);
        cr_assert_eq(fault_truncated_len(&v, 3), 3u);
    }
    for (unsigned i = BTH_LEN + ICRC_LEN; i < 64; i++)
        cr_assert(seen[i], "no packet was cut to %u bytes", i);
    cr_assert_eq(state.counters.fault_truncated, 5000u);
}

/* --- receiving ---------------------------------------------------------------------------------- */

static bool refused(uint32_t psn, uint8_t opcode)
{
    struct fault_pkt p = {.src_gid = gid_b, .dst_gid = gid_a, .dest_qpn = 17, .psn = psn, .opcode = opcode};

    return fault_refuses(&state, &p, now);
}

Test(fault_match, rnr_refuses_what_needs_a_receive_request)
{
    start("loss=100%");
    cr_assert(!fault_receives(&state));
    start("rnr=100%");
    cr_assert(fault_receives(&state));
    cr_assert(!lost(17, 0, OP_SEND_ONLY), "packets that leave are not concerned");
    cr_assert(refused(0, OP_SEND_ONLY));
    cr_assert(refused(1, OP_SEND_FIRST));
    cr_assert(!refused(2, OP_SEND_MIDDLE));
    cr_assert(!refused(3, OP_SEND_LAST));
    cr_assert(!refused(4, OP_WRITE_ONLY));
    cr_assert(refused(5, OP_WRITE_LAST_IMM));
    cr_assert(refused(6, OP_SERVICE_XRC | OP_SEND_ONLY));
    cr_assert(!refused(7, OP_SERVICE_UC | OP_SEND_ONLY), "UC has no RNR NAK");
    cr_assert(!refused(8, OP_SERVICE_UD | OP_SEND_ONLY));
    cr_assert(!refused(9, OP_READ_REQUEST));
    cr_assert_eq(state.counters.fault_refused, 4u);
}

Test(fault_match, an_rnr_storm_ends)
{
    start("from=1s,rnr=100%,count=3");
    cr_assert(!refused(0, OP_SEND_ONLY));
    at(1 * S);
    for (unsigned i = 0; i < 6; i++)
        cr_assert_eq(refused(1, OP_SEND_ONLY), i < 3);
    start("rnr=50%");
    unsigned tries = 0;
    for (uint32_t psn = 0; psn < 1000; psn++) {
        unsigned n = 1;

        while (refused(psn, OP_SEND_ONLY))
            cr_assert_lt(++n, 40u, "PSN %u is refused again and again", psn);
        tries += n;
    }
    cr_assert(tries > 1800 && tries < 2200, "%u", tries);
}

Test(fault_match, rnr_knows_its_peer)
{
    start("peer=127.0.0.2,rnr=100%");
    cr_assert(refused(0, OP_SEND_ONLY));
    start("peer=127.0.0.1,rnr=100%");
    cr_assert(!refused(0, OP_SEND_ONLY));
}

/* --- link and daemon ---------------------------------------------------------------------------- */

Test(fault_match, link_goes_down_and_up)
{
    start("link=down,from=2s,for=500ms;loss=0%");
    cr_assert(!fault_link_down(&state));
    cr_assert_eq(fault_deadline(&state), 9 * S);
    at(2 * S);
    cr_assert(fault_link_down(&state));
    cr_assert_eq(fault_deadline(&state), 9 * S + 500 * MS);
    cr_assert(lost(17, 0, OP_SEND_ONLY));
    cr_assert_eq(state.counters.fault_link_dropped, 1u);
    at(2 * S + 500 * MS);
    cr_assert(!fault_link_down(&state));
    cr_assert(!lost(17, 1, OP_SEND_ONLY));
    cr_assert_eq(fault_deadline(&state), UINT64_MAX);
}

/* The first rule for the link that is in force decides. */
Test(fault_match, link_up_ends_an_earlier_rule)
{
    start("link=up,from=3s,until=4s;link=down");
    cr_assert(fault_link_down(&state));
    at(3 * S);
    cr_assert(!fault_link_down(&state));
    at(4 * S);
    cr_assert(fault_link_down(&state));
    start("");
    cr_assert(!fault_link_down(&state), "new faults end it");
}

Test(fault_match, a_packet_takes_the_link_down)
{
    start("link=down,qpn=17,after=2,for=10ms");
    cr_assert_eq(fault_deadline(&state), UINT64_MAX);
    at(3 * S);
    cr_assert(!lost(17, 0, OP_SEND_ONLY));
    cr_assert(!lost(17, 1, OP_SEND_ONLY));
    cr_assert(!lost(18, 1, OP_SEND_ONLY));
    cr_assert(lost(17, 2, OP_SEND_ONLY));
    cr_assert(fault_link_down(&state));
    cr_assert(lost(18, 2, OP_SEND_ONLY));
    cr_assert_eq(fault_deadline(&state), 10 * S + 10 * MS);
    at(3 * S + 10 * MS);
    cr_assert(!fault_link_down(&state));
    for (uint32_t i = 3; i < 100; i++)
        cr_assert(!lost(17, i, OP_SEND_ONLY), "once");
}

Test(fault_match, the_daemon_dies)
{
    start("daemon=killed,from=1s");
    cr_assert(!fault_daemon_ends(&state));
    cr_assert_eq(fault_deadline(&state), 8 * S);
    at(1 * S);
    cr_assert(fault_daemon_ends(&state));
    start("daemon=killed,only=REP#2");
    struct fault_pkt rep = packet(1, 0, OP_SERVICE_UD | OP_SEND_ONLY);
    rep.cm_attribute = CM_REP;
    cr_assert_eq(about(rep), FAULT_PASS);
    cr_assert(!fault_daemon_ends(&state));
    cr_assert_eq(about(rep), FAULT_DROP);
    cr_assert(fault_daemon_ends(&state));
}

/* --- the text ----------------------------------------------------------------------------------- */

struct text {
    char spec[80];
    char why[110];
};

ParameterizedTestParameters(fault_match, errors)
{
    static struct text t[] = {
        {"loss=1%, lost=1%", "column 10: unknown fault 'lost': expected one of loss, ack-loss"},
        {"loss=1%;dup=x", "column 13: dup: invalid value \"x\": expected a percentage"},
        {"link=sideways", "column 6: link: invalid value \"sideways\": expected down or up"},
        {"daemon=dead", "column 8: daemon: invalid value \"dead\": expected killed"},
        {"drop=send-frist", "expected a class of packets, such as request, send, read-request"},
        {"after=0,loss=1%", "after: invalid value \"0\": expected a number from 1 to 1000000000"},
        {"count=1000000001,loss=1%", "expected a number from 1"},
        {"message=x", "expected a number from 1"},
        {"from=2,loss=1%", "from: invalid value \"2\": expected a time with its unit"},
        {"for=0s,loss=1%", "for: invalid value \"0s\": expected a time"},
        {"until=1000001s", "expected a time with its unit (ns, us, ms, s), such as 1.5s, at most 1000000s"},
        {"until=2s,from=2s,loss=1%", "column 1: until must be later than from"},
        {"for=2s,until=3s,loss=1%", "give either for or until"},
        {"drop=REP#1,after=7", "give no after or count with it"},
        {"loss=1%;message=1,count=2,loss=1%", "column 9: message=N names the packets"},
        {"rnr=1%,loss=1%", "column 8: rnr, link and daemon need a rule of their own"},
        {"link=down,daemon=killed", "put a semicolon instead of the comma"},
        {"link=down,count=3", "link and daemon act once"},
        {"src-qpn=3,rnr=1%", "give peer or qpn"},
        {"peer=\xc3\xa4,lo=1%", "column 6: peer"},
    };
    return cr_make_param_array(struct text, t, sizeof(t) / sizeof(t[0]));
}

ParameterizedTest(struct text *t, fault_match, errors)
{
    struct fault_spec spec;
    char why[FAULT_WHY_MAX] = "";

    cr_assert_neq(fault_parse(t->spec, &spec, why, sizeof(why)), 0, "%s was accepted", t->spec);
    cr_assert_not_null(strstr(why, t->why), "%s: \"%s\" does not say \"%s\"", t->spec, why, t->why);
    cr_assert_lt(strlen(why), sizeof(why) - 1, "%s", why);
    cr_assert_eq(spec.n, 0u);
}

Test(fault_match, at_most_64_rules)
{
    struct fault_spec spec;
    char text[65 * 8 + 1], why[FAULT_WHY_MAX];

    for (int i = 0; i < 65; i++)
        memcpy(text + 8 * i, "loss=1%;", 9);
    cr_assert_neq(fault_parse(text, &spec, why, sizeof(why)), 0);
    cr_assert_str_eq(why, "column 513: too many rules: at most 64 are allowed");
    text[64 * 8] = 0;
    cr_assert_eq(fault_parse(text, &spec, why, sizeof(why)), 0);
}
