// SPDX-License-Identifier: BSD-2-Clause
/* Fault injection (daemon/fault/fault.h). The decisions are a function of seed, flow, packet and attempt. Their
 * frequency is as specified. Errors in the text form are explained. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/fault/fault.h"
#include "wire/cm_msg.h"
#include "wire/pkt.h"

static const uint8_t gid_a[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
static const uint8_t gid_b[16] = {[10] = 0xff, 0xff, 127, 0, 0, 2};

static struct fault state, other;
static uint64_t now; /* ns since the faults were set */

static void start(struct fault *f, const char *text, uint64_t seed)
{
    struct fault_spec spec;
    char why[FAULT_WHY_MAX];

    cr_assert_eq(fault_parse(text, &spec, why, sizeof(why)), 0, "%s: %s", text, why);
    fault_init(f, &spec, seed, 0, 0);
}

static struct fault_verdict ask(struct fault *f, uint32_t qpn, uint32_t psn, uint8_t opcode)
{
    struct fault_pkt p = {.src_gid = gid_a, .dst_gid = gid_b, .dest_qpn = qpn, .psn = psn, .opcode = opcode};
    struct fault_verdict v;

    fault_decide(f, &p, now, &v);
    return v;
}

/* About a message of connection management. Each one has a PSN of its own. */
static enum fault_action ask_message(struct fault *f, uint16_t attribute)
{
    static uint32_t psn;
    struct fault_pkt p = {.src_gid = gid_a,
                          .dst_gid = gid_b,
                          .dest_qpn = MAD_QPN,
                          .psn = psn++,
                          .opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                          .cm_attribute = attribute};
    struct fault_verdict v;

    fault_decide(f, &p, now, &v);
    return v.action;
}

static bool same(struct fault_verdict a, struct fault_verdict b)
{
    return a.action == b.action && a.delay_ns == b.delay_ns && a.random == b.random;
}

/* True if count of n trials is within six standard deviations of the mean of the binomial distribution. */
static bool plausible(uint64_t count, uint64_t n, double p)
{
    return fabs((double)count - (double)n * p) <= 6 * sqrt((double)n * p * (1 - p)) + 1e-9;
}

Test(fault, off_is_off)
{
    start(&state, "", 1);
    cr_assert(!fault_on(&state));
    start(&state, "loss=1%", 1);
    cr_assert(fault_on(&state));
    start(&state, "  ", 1);
    cr_assert(!fault_on(&state));
}

Test(fault, same_seed_same_faults_whatever_is_in_between)
{
    enum { N = 4000 };
    static struct fault_verdict first[N];
    const char *spec = "loss=10%,dup=10%,corrupt=10%,reorder=10%,delay=5us,jitter=20us";
    unsigned differ = 0;

    start(&state, spec, 42);
    for (uint32_t i = 0; i < N; i++)
        first[i] = ask(&state, 17, i, OP_SEND_ONLY);

    /* Between them, packets of other flows fill the table more than once. */
    start(&other, spec, 42);
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t k = 0; k < 2 * FAULT_SETS * FAULT_WAYS / N; k++)
            ask(&other, 18 + k, i * 7, OP_WRITE_ONLY);
        cr_assert(same(first[i], ask(&other, 17, i, OP_SEND_ONLY)), "PSN %u", i);
    }

    start(&other, spec, 43);
    for (uint32_t i = 0; i < N; i++)
        differ += !same(first[i], ask(&other, 17, i, OP_SEND_ONLY));
    cr_assert_gt(differ, N / 2, "another seed must give other faults");
}

Test(fault, each_part_of_the_flow_counts)
{
    enum { N = 2000 };
    unsigned qpn = 0, opcode = 0, direction = 0, attempt = 0;

    start(&state, "loss=50%", 5);
    for (uint32_t i = 0; i < N; i++) {
        struct fault_pkt back = {.src_gid = gid_b, .dst_gid = gid_a, .dest_qpn = 17, .psn = i, .opcode = OP_SEND_ONLY};
        enum fault_action base = ask(&state, 17, i, OP_SEND_ONLY).action;
        struct fault_verdict v;

        fault_decide(&state, &back, now, &v);
        direction += v.action != base;
        qpn += ask(&state, 18, i, OP_SEND_ONLY).action != base;
        opcode += ask(&state, 17, i, OP_ACK).action != base;
        attempt += ask(&state, 17, i, OP_SEND_ONLY).action != base;
    }
    cr_assert(plausible(direction, N, 0.5), "%u", direction);
    cr_assert(plausible(qpn, N, 0.5), "%u", qpn);
    cr_assert(plausible(opcode, N, 0.5), "%u", opcode);
    cr_assert(plausible(attempt, N, 0.5), "%u", attempt);
}

Test(fault, a_lost_packet_gets_through_in_the_end)
{
    uint64_t tries = 0;

    start(&state, "loss=30%", 7);
    for (uint32_t i = 0; i < 10000; i++) {
        unsigned n = 1;

        while (ask(&state, 17, i, OP_SEND_ONLY).action == FAULT_DROP)
            cr_assert_lt(++n, 60u, "PSN %u is lost again and again", i);
        tries += n;
    }
    /* A geometric distribution: mean 1 / 0.7, standard deviation sqrt(0.3) / 0.7 each. */
    cr_assert(fabs((double)tries - 10000 / 0.7) < 6 * 100 * sqrt(0.3) / 0.7, "%lu", (unsigned long)tries);
}

/* As many packets in flight as the table has room for. Each is still known when it is sent again. */
Test(fault, retransmissions_of_many_packets_in_flight)
{
    enum { N = FAULT_SETS * FAULT_WAYS / 4 };
    static enum fault_action first[N];
    unsigned lost_again = 0, lost = 0;

    start(&state, "loss=50%", 11);
    for (uint32_t i = 0; i < N; i++)
        first[i] = ask(&state, 17, i, OP_SEND_ONLY).action;
    for (uint32_t i = 0; i < N; i++) {
        lost += first[i] == FAULT_DROP;
        lost_again += first[i] == FAULT_DROP && ask(&state, 17, i, OP_SEND_ONLY).action == FAULT_DROP;
    }
    cr_assert(plausible(lost_again, lost, 0.5), "%u of %u", lost_again, lost);
}

/* A packet that is sent again so late that the table has forgotten it. It still gets a new decision each time. */
Test(fault, a_forgotten_packet_gets_through_in_the_end)
{
    enum { N = 200, OTHERS = 4 * FAULT_SETS * FAULT_WAYS };
    static uint32_t lost[N];
    uint32_t others = 0;
    unsigned left = 0;

    start(&state, "loss=50%", 13);
    for (uint32_t i = 0; i < N; i++)
        if (ask(&state, 17, i, OP_SEND_ONLY).action == FAULT_DROP)
            lost[left++] = i;
    for (unsigned tries = 0; left; tries++) {
        unsigned again = 0;

        cr_assert_lt(tries, 30u, "%u packets are lost again and again", left);
        for (uint32_t k = 0; k < OTHERS; k++)
            ask(&state, 18 + k % 7, others++ / 7, OP_WRITE_ONLY);
        for (unsigned i = 0; i < left; i++)
            if (ask(&state, 17, lost[i], OP_SEND_ONLY).action == FAULT_DROP)
                lost[again++] = lost[i];
        left = again;
    }
}

struct rate {
    char spec[32];
    double p;
    size_t counter; /* offset in struct fault_counters */
};

ParameterizedTestParameters(fault, rates)
{
    static struct rate t[] = {
        {"loss=1%", 0.01, offsetof(struct fault_counters, fault_dropped)},
        {"loss=0.1%", 0.001, offsetof(struct fault_counters, fault_dropped)},
        {"loss=37.5%", 0.375, offsetof(struct fault_counters, fault_dropped)},
        {"loss=100%", 1, offsetof(struct fault_counters, fault_dropped)},
        {"loss=0%", 0, offsetof(struct fault_counters, fault_dropped)},
        {"dup=2%", 0.02, offsetof(struct fault_counters, fault_duplicated)},
        {"corrupt=3%", 0.03, offsetof(struct fault_counters, fault_corrupted)},
        {"reorder=5%", 0.05, offsetof(struct fault_counters, fault_reordered)},
        {"delay=1us", 1, offsetof(struct fault_counters, fault_delayed)},
        {"ce=4%", 0.04, offsetof(struct fault_counters, fault_marked)},
    };
    return cr_make_param_array(struct rate, t, sizeof(t) / sizeof(t[0]));
}

ParameterizedTest(struct rate *r, fault, rates)
{
    enum { N = 400000 };
    uint64_t count, all = 0;

    start(&state, r->spec, 99);
    for (uint32_t i = 0; i < N; i++)
        ask(&state, 17 + i % 5, i, i % 2 ? OP_WRITE_MIDDLE : OP_ACK);
    memcpy(&count, (const char *)&state.counters + r->counter, sizeof(count));
#define X(name, text) all += state.counters.name;
    FAULT_COUNTERS(X)
#undef X
    cr_assert(plausible(count, N, r->p), "%s: %lu of %d", r->spec, (unsigned long)count, N);
    cr_assert_eq(state.counters.fault_packets, N);
    cr_assert_eq(all, N + count, "%s: another fault was counted", r->spec);
}

Test(fault, faults_are_independent)
{
    enum { N = 400000 };
    unsigned dup_and_late = 0;

    start(&state, "dup=10%,reorder=10%,reorder-by=7us", 3);
    for (uint32_t i = 0; i < N; i++) {
        struct fault_verdict v = ask(&state, 17, i, OP_SEND_ONLY);

        cr_assert(v.delay_ns == 0 || v.delay_ns == 7000);
        dup_and_late += v.action == FAULT_DUPLICATE && v.delay_ns;
    }
    cr_assert(plausible(dup_and_late, N, 0.01), "%u", dup_and_late);
}

Test(fault, delay_and_jitter)
{
    uint64_t least = UINT64_MAX, most = 0;

    start(&state, "delay=50us,jitter=20us", 1);
    for (uint32_t i = 0; i < 20000; i++) {
        struct fault_verdict v = ask(&state, 17, i, OP_SEND_ONLY);

        cr_assert_eq(v.action, FAULT_PASS);
        least = v.delay_ns < least ? v.delay_ns : least;
        most = v.delay_ns > most ? v.delay_ns : most;
    }
    cr_assert(least >= 50000 && least < 50100, "%lu", (unsigned long)least);
    cr_assert(most <= 70000 && most > 69900, "%lu", (unsigned long)most);
}

Test(fault, mask_rotates_per_flow)
{
    const uint64_t mask = 0x8000000000000005ull;

    start(&state, "mask=0x8000000000000005", 1);
    for (uint32_t i = 0; i < 300; i++) {
        /* Each PSN twice, because the mask counts packets, not PSNs. */
        cr_assert_eq(ask(&state, 17, i / 2, OP_SEND_ONLY).action == FAULT_DROP, mask >> i % 64 & 1, "%u", i);
        if (i % 3 == 0)
            cr_assert_eq(ask(&state, 18, i, OP_SEND_ONLY).action == FAULT_DROP, mask >> i / 3 % 64 & 1, "%u", i);
    }
}

Test(fault, ack_loss_stands_in_for_loss)
{
    start(&state, "ack-loss=100%", 1);
    cr_assert_eq(ask(&state, 17, 0, OP_ACK).action, FAULT_DROP);
    cr_assert_eq(ask(&state, 17, 0, OP_ATOMIC_ACK).action, FAULT_DROP);
    cr_assert_eq(ask(&state, 17, 0, OP_READ_RESP_ONLY).action, FAULT_PASS);
    cr_assert_eq(ask(&state, 17, 0, OP_SEND_ONLY).action, FAULT_PASS);
    start(&state, "loss=100%,ack-loss=0%", 1);
    cr_assert_eq(ask(&state, 17, 0, OP_ACK).action, FAULT_PASS);
    cr_assert_eq(ask(&state, 17, 0, OP_SEND_ONLY).action, FAULT_DROP);
}

/* The opcodes of each class, in the order of fault.h. */
Test(fault, classes)
{
    static const uint8_t opcodes[] = {OP_SEND_ONLY_INV, OP_WRITE_FIRST, OP_READ_REQUEST, OP_READ_RESP_LAST,
                                      OP_ACK,           OP_ATOMIC_ACK,  OP_FETCH_ADD,    OP_WRITE_LAST_IMM};
    static const struct {
        const char *spec, *hits;
    } t[] = {
        {"only=request,loss=100%", "xxx...xx"}, {"only=response,loss=100%", "...xxx.."},
        {"only=ack,loss=100%", "....xx.."},     {"only=send,loss=100%", "x......."},
        {"only=write,loss=100%", ".x.....x"},   {"only=read,loss=100%", "..xx...."},
        {"only=atomic,loss=100%", ".....xx."},
    };

    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        start(&state, t[i].spec, 1);
        for (size_t j = 0; j < sizeof(opcodes); j++)
            cr_assert_eq(ask(&state, 17, 0, opcodes[j]).action == FAULT_DROP, t[i].hits[j] == 'x', "%s: %s", t[i].spec,
                         op_table[opcodes[j]].name);
    }
}

/* A message by its name is that message only, cm is any of them, and none is another packet. */
Test(fault, messages_of_connection_management)
{
    for (uint16_t dropped = CM_REQ; dropped <= CM_APR; dropped++) {
        char spec[32];

        snprintf(spec, sizeof(spec), "drop=%s", cm_attribute_name(dropped));
        start(&state, spec, 1);
        for (uint16_t a = CM_REQ; a <= CM_APR; a++)
            cr_assert_eq(ask_message(&state, a), a == dropped ? FAULT_DROP : FAULT_PASS, "%s: %s", spec,
                         cm_attribute_name(a));
        cr_assert_eq(ask(&state, MAD_QPN, 7, OP_SERVICE_UD | OP_SEND_ONLY).action, FAULT_PASS);
        cr_assert_eq(state.counters.fault_packets, 1);
        cr_assert_eq(state.counters.fault_dropped, 1);
    }
    start(&state, "only=cm,dup=100%", 1);
    for (uint16_t a = CM_REQ; a <= CM_APR; a++)
        cr_assert_eq(ask_message(&state, a), FAULT_DUPLICATE);
    cr_assert_eq(ask(&state, 17, 7, OP_SEND_ONLY).action, FAULT_PASS);
}

Test(fault, the_nth_packet_of_a_class)
{
    start(&state, "drop=REP#2", 1);
    for (unsigned i = 1; i <= 4; i++) {
        cr_assert_eq(ask_message(&state, CM_REQ), FAULT_PASS);
        cr_assert_eq(ask_message(&state, CM_REP), i == 2 ? FAULT_DROP : FAULT_PASS, "REP %u", i);
    }
    cr_assert_eq(state.counters.fault_packets, 1, "the rule is asked about one packet");

    start(&state, "drop=REP#2", 1); /* counts from 1 again */
    cr_assert_eq(ask_message(&state, CM_REP), FAULT_PASS);
    cr_assert_eq(ask_message(&state, CM_REP), FAULT_DROP);

    start(&state, "only=write#3,corrupt=100%", 1);
    for (unsigned i = 1; i <= 5; i++)
        cr_assert_eq(ask(&state, 17, 0, OP_WRITE_ONLY).action, i == 3 ? FAULT_CORRUPT : FAULT_PASS, "WRITE %u", i);
}

/* Each rule counts for itself, whatever rule decides. The other limits of a rule say what it counts. */
Test(fault, numbers_in_several_rules)
{
    start(&state, "drop=REQ#1;only=REQ#2,dup=100%;only=cm#3,corrupt=100%;only=REQ,loss=0%", 1);
    cr_assert_eq(ask_message(&state, CM_REQ), FAULT_DROP);
    cr_assert_eq(ask_message(&state, CM_REQ), FAULT_DUPLICATE);
    cr_assert_eq(ask_message(&state, CM_REP), FAULT_CORRUPT);
    cr_assert_eq(ask_message(&state, CM_REQ), FAULT_PASS);

    start(&state, "qpn=18,drop=send#2", 1);
    cr_assert_eq(ask(&state, 18, 0, OP_SEND_ONLY).action, FAULT_PASS);
    cr_assert_eq(ask(&state, 17, 0, OP_SEND_ONLY).action, FAULT_PASS);
    cr_assert_eq(ask(&state, 18, 0, OP_SEND_ONLY).action, FAULT_DROP);
}

Test(fault, first_rule_that_fits_decides)
{
    struct fault_pkt elsewhere = {.src_gid = gid_b, .dst_gid = gid_a, .dest_qpn = 17, .opcode = OP_SEND_ONLY};
    struct fault_verdict v;

    start(&state, "peer=127.0.0.2,qpn=0x11,loss=0% ; peer=127.0.0.2, loss=100%; dup=100%", 1);
    cr_assert_eq(ask(&state, 17, 0, OP_SEND_ONLY).action, FAULT_PASS);
    cr_assert_eq(ask(&state, 18, 0, OP_SEND_ONLY).action, FAULT_DROP);
    fault_decide(&state, &elsewhere, now, &v);
    cr_assert_eq(v.action, FAULT_DUPLICATE);

    start(&state, "peer=::ffff:127.0.0.2,loss=100%", 1);
    cr_assert_eq(ask(&state, 17, 0, OP_SEND_ONLY).action, FAULT_DROP);
    fault_decide(&state, &elsewhere, now, &v);
    cr_assert_eq(v.action, FAULT_PASS);
    cr_assert_eq(state.counters.fault_packets, 1, "packets without a rule are not counted");
}

Test(fault, corrupt_flips_one_bit_that_the_icrc_covers)
{
    static uint8_t p[64], zero[64];
    static bool hit[64];
    unsigned bytes = 0;

    start(&state, "corrupt=100%", 1);
    for (uint32_t i = 0; i < 5000; i++) {
        struct fault_verdict v = ask(&state, 17, i, OP_SEND_ONLY);
        unsigned bits = 0;

        cr_assert_eq(v.action, FAULT_CORRUPT);
        memset(p, 0, sizeof(p));
        fault_corrupt(&v, p, sizeof(p));
        for (unsigned j = 0; j < sizeof(p); j++) {
            bits += (unsigned)__builtin_popcount(p[j]);
            hit[j] |= p[j] != 0;
        }
        cr_assert_eq(bits, 1u);
        fault_corrupt(&v, zero, BTH_LEN + ICRC_LEN - 1);
        cr_assert_eq(zero[0], 0);
    }
    for (unsigned j = 0; j < sizeof(p); j++)
        bytes += hit[j];
    cr_assert(!hit[4], "FECN, BECN and the reserved bits are not covered");
    cr_assert_eq(bytes, sizeof(p) - 1);
}

struct text {
    char spec[160];
    char why[120]; /* a part of the explanation; empty: the specification is valid */
};

ParameterizedTestParameters(fault, texts)
{
    static struct text t[] = {
        {"loss=5%,dup=2%,reorder=5%,delay=50us,jitter=20us,corrupt=0.1%", ""},
        {"loss=.5%", ""},
        {"ce=30%,only=request", ""},
        {"ce=30", "ce: invalid value \"30\": expected a percentage"},
        {"loss=1.%", ""},
        {"delay=10s", ""},
        {"delay=1.5ms", ""},
        {"mask=18446744073709551615", ""},
        {"mask=0xffffffffffffffff", ""},
        {"qpn=0xffffff,loss=1%", ""},
        {"peer=fe80::1,loss=1%", ""},
        {"loss=1%;;dup=1%;", ""},
        {"drop=REP#1", ""},
        {"drop = sidr_req#1000000000; drop=ack", ""},
        {"only=cm,delay=5ms,jitter=1ms", ""},
        {"drop=REP#0", "drop: invalid value \"REP#0\": expected a class of packets, such as request"},
        {"drop=REP#", "or the Nth of them, such as REP#1"},
        {"drop=REP#1000000001", "or the Nth of them"},
        {"drop=REP#x", "or the Nth of them"},
        {"drop=REPS#1", "such as request, send, read-request, nak, tm-fin, cm or REP"},
        {"drop=", "drop: invalid value \"\""},
        {"drop=#1", "expected a class of packets"},
        {"drop=REP,drop=REQ", "'drop' is given twice in one rule"},
        {"only=REQ,drop=REP", "drop=CLASS means only=CLASS,loss=100%: give no only, loss or ack-loss with it"},
        {"drop=REP,loss=5%", "give no only, loss or ack-loss with it in one rule"},
        {"ack-loss=0%,drop=ack", "give no only, loss or ack-loss with it in one rule"},
        {"loss", "'loss' is not NAME=VALUE, for example: loss=1%"},
        {"loss=1%,,dup=1%", "'' is not NAME=VALUE"},
        {"only=send", "column 1: the rule names packets, but no fault: add one, such as loss=100%"},
        {"loss=1%;message=7", "column 9: the rule names packets, but no fault"},
        {"lost=1%", "unknown fault 'lost': expected one of loss, ack-loss, dup"},
        {"loss=1", "loss: invalid value \"1\": expected a percentage from 0% to 100%, such as 1%"},
        {"loss=-1%", "expected a percentage"},
        {"loss=101%", "expected a percentage"},
        {"loss=100.000000001%", "expected a percentage"},
        {"loss=%", "expected a percentage"},
        {"loss=.%", "expected a percentage"},
        {"loss=1e2%", "expected a percentage"},
        {"loss=1.2.3%", "expected a percentage"},
        {"loss=99999999999999999999%", "expected a percentage"},
        {"loss= ", "loss: invalid value \"\": expected a percentage"},
        {"delay=50", "delay: invalid value \"50\": expected a time up to 10s with its unit"},
        {"delay=11s", "expected a time up to 10s"},
        {"delay=10.000000001s", "expected a time up to 10s"},
        {"delay=999999999s", "expected a time up to 10s"},
        {"reorder-by=us", "expected a time"},
        {"mask=0x10000000000000000", "expected 64 bits"},
        {"mask=18446744073709551616", "expected 64 bits"},
        {"mask=0x", "expected 64 bits"},
        {"mask=12g", "expected 64 bits"},
        {"qpn=0x1000000,loss=1%", "expected a QP number"},
        {"peer=localhost,loss=1%", "peer: invalid value \"localhost\": expected an IPv4 or IPv6 address"},
        {"only=reads,loss=1%", "only: invalid value \"reads\": expected a class of packets, such as request"},
        {"loss=1%,loss=2%", "'loss' is given twice in one rule"},
    };
    return cr_make_param_array(struct text, t, sizeof(t) / sizeof(t[0]));
}

ParameterizedTest(struct text *t, fault, texts)
{
    struct fault_spec spec;
    char why[FAULT_WHY_MAX];
    int err = fault_parse(t->spec, &spec, why, sizeof(why));

    if (!t->why[0]) {
        cr_assert_eq(err, 0, "%s: %s", t->spec, why);
        cr_assert_gt(spec.n, 0u);
        return;
    }
    cr_assert_neq(err, 0, "%s was accepted", t->spec);
    cr_assert_eq(spec.n, 0u, "no rules after an error");
    cr_assert_not_null(strstr(why, t->why), "%s: \"%s\" does not say \"%s\"", t->spec, why, t->why);
    cr_assert_neq(fault_parse(t->spec, &spec, NULL, 0), 0);
}

Test(fault, values)
{
    struct fault_spec spec;

    cr_assert_eq(fault_parse("loss=50%,dup=100%,corrupt=0.000000001%,delay=1.5ms,jitter=2.0005us,reorder-by=3ns,"
                             "reorder=0%,mask=0xF0,qpn=300,peer=10.1.2.3,only=read,ack-loss=25%",
                             &spec, NULL, 0),
                 0);
    const struct fault_rule *r = &spec.rule[0];
    const uint8_t peer[16] = {[10] = 0xff, 0xff, 10, 1, 2, 3};

    cr_assert_eq(spec.n, 1u);
    cr_assert_eq(r->loss, FAULT_ALWAYS / 2);
    cr_assert_eq(r->dup, FAULT_ALWAYS);
    cr_assert_eq(r->corrupt, 1u, "never rounded to nothing");
    cr_assert_eq(r->reorder, 0u);
    cr_assert_eq(r->ack_loss, FAULT_ALWAYS / 4);
    cr_assert(r->has_ack_loss);
    cr_assert_eq(r->delay_ns, 1500000u);
    cr_assert_eq(r->jitter_ns, 2000u);
    cr_assert_eq(r->reorder_ns, 3u);
    cr_assert_eq(r->mask, 0xf0u);
    cr_assert(r->has_qpn && r->qpn == 300);
    cr_assert(r->has_peer && memcmp(r->peer, peer, 16) == 0);
    cr_assert_eq(r->only, FAULT_READ);
    cr_assert_eq(r->message, 0);
    cr_assert_eq(r->after, 0u);
    cr_assert_eq(r->count, 0u);

    cr_assert_eq(fault_parse("drop=dreq#0x10;only=cm,loss=0%", &spec, NULL, 0), 0);
    cr_assert_eq(spec.rule[0].loss, FAULT_ALWAYS);
    cr_assert_eq(spec.rule[0].only, FAULT_CM);
    cr_assert_eq(spec.rule[0].message, CM_DREQ);
    cr_assert_eq(spec.rule[0].after, 15u);
    cr_assert_eq(spec.rule[0].count, 1u);
    cr_assert_eq(spec.rule[1].loss, 0u);
    cr_assert_eq(spec.rule[1].message, 0);
}
