// SPDX-License-Identifier: BSD-2-Clause
/* Emulated networks (daemon/netem): when packets arrive, which are lost or marked, several senders at one queue, the way from
 * host to host, and errors in the text. tests/sim/emulated has engines that send over such networks. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/netem/netem.h"

#define US 1000ull
#define NOW (5000 * 1000000000ull)

/* --- links -------------------------------------------------------------------------------------- */

static struct netem_queue q;

static void empty(void)
{
    atomic_store(&q.busy_until, 0);
    atomic_store(&q.last_arrival, 0);
}

Test(netem, packets_wait_for_each_other)
{
    const struct netem_link l = {.bits_per_s = 8000000000, .latency_ns = 5 * US}; /* a byte takes 1 ns */

    empty();
    cr_assert_eq(netem_link_pass(&l, &q, 1000, 0, NOW).arrival, NOW + 1000 + 5 * US);
    cr_assert_eq(netem_link_pass(&l, &q, 500, 0, NOW + 200).arrival, NOW + 1500 + 5 * US);
    cr_assert_eq(netem_link_pass(&l, &q, 500, 0, NOW + 9000).arrival, NOW + 9500 + 5 * US, "the link was idle");
}

/* Parts of a nanosecond add up: a million packets of 64 bytes at 400 Gbit/s take 1.28 ns each. */
Test(netem, parts_of_nanoseconds)
{
    const struct netem_link l = {.bits_per_s = 400000000000};
    struct netem_passage p = {0};

    empty();
    for (int i = 0; i < 1000000; i++)
        p = netem_link_pass(&l, &q, 64, 0, NOW);
    uint64_t ns = p.arrival - NOW;
    cr_assert(ns >= 1264000 && ns <= 1281000, "%lu", (unsigned long)ns);
}

Test(netem, tail_drop)
{
    const struct netem_link l = {.bits_per_s = 8000000000, .queue_bytes = 10000};
    unsigned lost = 0;

    empty();
    for (int i = 0; i < 20; i++)
        lost += netem_link_pass(&l, &q, 1000, 0, NOW).lost;
    cr_assert_eq(lost, 10u, "ten packets fit");
    cr_assert(netem_link_pass(&l, &q, 1000, 0, NOW + 999).lost);
    cr_assert(!netem_link_pass(&l, &q, 1000, 0, NOW + 1000).lost, "one was sent");
    cr_assert(netem_link_pass(&l, &q, 1000, 0, NOW + 1000).lost);
    cr_assert(netem_link_pass(&l, &q, 1, 0, NOW + 1000).lost);
}

Test(netem, marks)
{
    const struct netem_link step = {.bits_per_s = 8000000000, .mark_bytes = 3000};
    const struct netem_link ramp = {.bits_per_s = 8000000000, .mark_bytes = 100000, .mark_all_bytes = 300000};
    unsigned marked = 0;
    uint64_t random = 1;

    empty();
    for (int i = 0; i < 10; i++)
        cr_assert_eq(netem_link_pass(&step, &q, 1000, 0, NOW).marked, i >= 3, "%d", i);
    empty();
    for (int i = 0; i < 300; i++, random = random * 6364136223846793005u + 1442695040888963407u) {
        bool m = netem_link_pass(&ramp, &q, 1000, random, NOW).marked;

        cr_assert(!m || i >= 100, "%d", i);
        marked += m;
    }
    cr_assert(marked > 70 && marked < 130, "%u of 200 packets, of which half should be", marked);
    cr_assert(netem_link_pass(&ramp, &q, 1000, random, NOW).marked);
}

Test(netem, jitter_keeps_the_order)
{
    const struct netem_link l = {.latency_ns = 10 * US, .jitter_ns = 5 * US};
    uint64_t last = 0, random = 1, least = UINT64_MAX, most = 0;

    empty();
    for (unsigned i = 0; i < 10000; i++, random = random * 6364136223846793005u + 1442695040888963407u) {
        uint64_t at = NOW + i * 100 * US;
        uint64_t late = netem_link_pass(&l, &q, 64, random >> 20, at).arrival - at;

        least = late < least ? late : least;
        most = late > most ? late : most;
    }
    cr_assert(least >= 10000 && least < 10050, "%lu", (unsigned long)least);
    cr_assert(most > 14950 && most <= 15000, "%lu", (unsigned long)most);
    for (unsigned i = 0; i < 1000; i++, random = random * 6364136223846793005u + 1442695040888963407u) {
        uint64_t at = netem_link_pass(&l, &q, 64, random >> 20, NOW + 2000000 * US + i).arrival;

        cr_assert_geq(at, last);
        last = at;
    }
}

/* Nonsense in the shared file, or the numbers of an earlier boot. */
Test(netem, nonsense_in_the_queue)
{
    const struct netem_link l = {.bits_per_s = 8000000000, .jitter_ns = 1, .queue_bytes = 10000};

    atomic_store(&q.busy_until, UINT64_MAX);
    atomic_store(&q.last_arrival, UINT64_MAX);
    struct netem_passage p = netem_link_pass(&l, &q, 1000, 0, NOW);
    cr_assert(!p.lost);
    cr_assert_eq(p.arrival, NOW + 1000);
}

#define SENDERS 4
#define EACH 100000

static void *sender(void *arg)
{
    const struct netem_link *l = arg;

    for (int i = 0; i < EACH; i++)
        netem_link_pass(l, &q, 100, 0, NOW);
    return NULL;
}

/* No packet is forgotten when several threads send at once. */
Test(netem, senders_share_a_link)
{
    struct netem_link l = {.bits_per_s = 8000000000};
    pthread_t t[SENDERS];

    empty();
    for (int i = 0; i < SENDERS; i++)
        cr_assert_eq(pthread_create(&t[i], NULL, sender, &l), 0);
    for (int i = 0; i < SENDERS; i++)
        pthread_join(t[i], NULL);
    cr_assert_eq(atomic_load(&q.busy_until), (NOW + SENDERS * EACH * 100ull) * NETEM_UNITS);
}

/* --- plans -------------------------------------------------------------------------------------- */

static struct netem_plan plan;

static void parse(const char *text)
{
    char why[NETEM_WHY_MAX];

    cr_assert_eq(netem_plan_parse(text, &plan, why), 0, "%s", why);
}

/* The latencies of the links between two hosts, in us. */
static const char *way(uint32_t from, uint32_t to)
{
    static char text[64];
    struct netem_hop hops[NETEM_HOPS];
    unsigned n = netem_plan_route(&plan, from, to, hops);

    text[0] = 0;
    for (unsigned i = 0; i < n; i++) {
        cr_assert_lt(hops[i].queue, NETEM_QUEUES);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", i ? " " : "",
                 (unsigned)(hops[i].link->latency_ns / US));
    }
    return text;
}

Test(netem, ways)
{
    parse(
        "# a comment\nrack left: 0-1, 4\nrack right: 2,3 # another\nleft -> right: latency 1us\nright -> left: latency "
        "2us\n"
        "default: latency 3us\n0 <-> 2: latency 4us\nfrom each: latency 5us\nfrom 1: latency 6us\nto 3: latency 7us\n");
    cr_assert_str_eq(way(0, 1), "5 3");
    cr_assert_str_eq(way(0, 2), "5 1 4");
    cr_assert_str_eq(way(2, 0), "5 2 4");
    cr_assert_str_eq(way(1, 3), "6 1 3 7");
    cr_assert_str_eq(way(4, 3), "5 1 3 7");
    cr_assert_str_eq(way(9, 3), "5 3 7", "in no rack");
    cr_assert_str_eq(way(3, 3), "", "within a host");
    parse("0 -> 1: latency 8us");
    cr_assert_str_eq(way(0, 1), "8");
    cr_assert_str_eq(way(1, 0), "");
    cr_assert_str_eq(way(NETEM_NOWHERE, 0), "");
}

Test(netem, who_shares_a_queue)
{
    struct netem_hop a[NETEM_HOPS], b[NETEM_HOPS];

    parse("rack x: 0-1\nrack y: 2-3\nx -> y: rate 1Gbit\ndefault: rate 2Gbit\nto each: rate 3Gbit");
    cr_assert_eq(netem_plan_route(&plan, 0, 2, a), 3u);
    cr_assert_eq(netem_plan_route(&plan, 1, 2, b), 3u);
    cr_assert_eq(a[0].queue, b[0].queue, "the racks");
    cr_assert_neq(a[1].queue, b[1].queue, "the pairs");
    cr_assert_eq(a[2].queue, b[2].queue, "the port of host 2");
    cr_assert_eq(netem_plan_route(&plan, 1, 3, b), 3u);
    cr_assert_eq(a[0].queue, b[0].queue);
    cr_assert_neq(a[2].queue, b[2].queue);
    cr_assert_eq(netem_plan_route(&plan, 2, 0, b), 2u, "the racks have a link in one direction");
    cr_assert_neq(a[1].queue, b[0].queue);
}

Test(netem, values)
{
    parse("default: rate 2.5Gbit, latency 1.5ms, jitter 20us, queue 64KiB, mark 10kB to 1MB");
    const struct netem_link *l = &plan.link[0];
    cr_assert_eq(l->bits_per_s, 2500000000u);
    cr_assert_eq(l->latency_ns, 1500000u);
    cr_assert_eq(l->jitter_ns, 20000u);
    cr_assert_eq(l->queue_bytes, 65536u);
    cr_assert_eq(l->mark_bytes, 10000u);
    cr_assert_eq(l->mark_all_bytes, 1000000u);
}

Test(netem, addresses)
{
    static const uint8_t v4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1}, v6[16] = {0xfd, [15] = 1}, other[16] = {1};

    parse("host 7: 10.0.0.1, fd00::1\nhost 255: 10.0.0.2");
    cr_assert_eq(netem_plan_host(&plan, v4), 7u);
    cr_assert_eq(netem_plan_host(&plan, v6), 7u);
    cr_assert_eq(netem_plan_host(&plan, other), NETEM_NOWHERE);
}

struct text {
    char plan[90];
    char why[120];
};

ParameterizedTestParameters(netem, errors)
{
    static struct text t[] = {
        {"\n0 -> 1 rate 1Gbit", "line 2, column 1: no colon"},
        {"0 -> 1: rate 1", "line 1, column 14: '1': expected a bandwidth such as 100Mbit or 25Gbit"},
        {"0 -> 1: rate 0Gbit", "expected a bandwidth"},
        {"0 -> 1: rate 99999Gbit", "expected a bandwidth"},
        {"0 -> 1: speed 1Gbit", "column 9: 'speed': expected rate, latency, jitter, queue or mark"},
        {"0 -> 1: rate 1Gbit latency 1us", "column 20: 'latency 1us': expected a comma"},
        {"0 -> 1: rate 1Gbit, rate 2Gbit", "rate is given twice"},
        {"0 -> 1: latency 11s", "expected a time up to 10s"},
        {"0 -> 1: latency 1us, queue 1MiB", "a link without a rate has no queue"},
        {"0 -> 1: rate 1Gbit, queue 7", "'7': expected a size such as 64KiB"},
        {"0 -> 1: rate 1Gbit, mark 7kB to 7kB", "'7kB': expected a larger size"},
        {"0 -> 1: rate 1Gbit, queue 7kB to 8kB", "expected a comma before the next part"},
        {"0 -> 1:", "the line ends here: expected rate, latency"},
        {"0 -> 256: rate 1Gbit", "'256': expected the number of a host"},
        {"0 -> 0: rate 1Gbit", "from one host to another"},
        {"0 => 1: rate 1Gbit", "'=>': expected rack NAME, host N, default"},
        {"0 -> 1 2: rate 1Gbit", "column 8: '2': expected the colon"},
        {"a -> b: rate 1Gbit", "'a': expected two hosts, or two racks that earlier lines describe"},
        {"rack a: 0\na -> b: rate 1Gbit", "line 2, column 6: 'b': expected two hosts, or two racks"},
        {"rack a: 0\na -> a: rate 1Gbit", "from one rack to another"},
        {"rack a: 0\nrack a: 1", "this rack is described twice"},
        {"rack a: 0-3\nrack b: 3", "line 2, column 9: host 3 is already in a rack"},
        {"rack a: 3-0", "expected hosts in their order"},
        {"rack to: 3", "'to': expected a name of letters"},
        {"rack a b: 3", "expected a name"},
        {"0 <-> 1: latency 1us\n1 -> 0: latency 1us", "line 2, column 1: this link is described twice"},
        {"default: latency 1us\ndefault: latency 1us", "described twice"},
        {"to 300: latency 1us", "expected the number of a host"},
        {"host 1: 10.0.0.1\nhost 2: 10.0.0.1", "the address is given twice"},
        {"host 1: 10.0.0.1\n1 -> 9: latency 1us",
         "line 2, column 6: there is no host 9: pumice run --hosts N has the hosts 0 to N-1"},
        {"rack a: 0-2\nhost 0: 10.0.0.1\nhost 1: 10.0.0.2", "line 1, column 9: there is no host 2"},
        {"host 1: 10.0.0.1\nto 3: rate 1Gbit", "line 2, column 4: there is no host 3"},
        {"host 1: server", "'server': expected an IPv4 or IPv6 address"},
    };
    return cr_make_param_array(struct text, t, sizeof(t) / sizeof(t[0]));
}

ParameterizedTest(struct text *t, netem, errors)
{
    char why[NETEM_WHY_MAX];

    cr_assert_neq(netem_plan_parse(t->plan, &plan, why), 0, "%s was accepted", t->plan);
    cr_assert_not_null(strstr(why, t->why), "%s: \"%s\" does not say \"%s\"", t->plan, why, t->why);
}

/* --- files -------------------------------------------------------------------------------------- */

Test(netem, two_daemons_share_the_queues)
{
    static const uint8_t a[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1}, b[16] = {[10] = 0xff, 0xff, 10, 0, 0, 2};
    char path[64], state[80], why[ERROR_TEXT_MAX];
    struct netem *one, *two;
    struct netem_trip trip;

    snprintf(path, sizeof(path), "/tmp/test_netem_%d", (int)getpid());
    snprintf(state, sizeof(state), "%s.state", path);
    FILE *f = fopen(path, "w");
    fputs("host 0: 10.0.0.1\nhost 1: 10.0.0.2\n0 -> 1: rate 8Gbit", f);
    fclose(f);
    cr_assert_eq(netem_open(path, &one, why), 0, "%s", why);
    cr_assert_eq(netem_open(path, &two, why), 0, "%s", why);
    netem_begin(one, a, b, &trip);
    cr_assert_eq(trip.hops, 1);
    cr_assert_eq(netem_pass(one, &trip, 1000, false, 0, NOW).arrival, NOW + 1000 + NETEM_OVERHEAD_V4);
    netem_begin(two, a, b, &trip);
    cr_assert_eq(netem_pass(two, &trip, 1000, true, 0, NOW).arrival,
                 NOW + 2000 + NETEM_OVERHEAD_V4 + NETEM_OVERHEAD_V6);
    netem_begin(two, b, a, &trip);
    cr_assert_eq(trip.hops, 0);
    netem_close(one);
    netem_close(two);
    netem_close(NULL);
    unlink(state);
    f = fopen(path, "w");
    fputs("0 -> 1: rate", f);
    fclose(f);
    cr_assert_neq(netem_open(path, &one, why), 0);
    cr_assert_str_eq(why, "net: line 1, column 13: the line ends here: expected a bandwidth such as 100Mbit or 25Gbit");
    unlink(path);
    cr_assert_neq(netem_open(path, &one, why), 0);
    cr_assert_not_null(strstr(why, "No such file"), "%s", why);
}
