// SPDX-License-Identifier: BSD-2-Clause
/* GSO (daemon/net/gso.h). One send carries packets that are adjacent, of equal length except for the last one, to one
 * destination, within the kernel's limits. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/net/gso.h"

static struct av here = {.dgid = {1}}, also_here = {.dgid = {1}}, there = {.dgid = {2}};
static struct tx_pkt pkt[TX_BATCH_PKTS];
static unsigned n;

static void start(void)
{
    n = 0;
}

static void add(const struct av *av, uint32_t len)
{
    pkt[n] = (struct tx_pkt){.av = av, .len = len, .off = n ? pkt[n - 1].off + pkt[n - 1].len : 0};
    n++;
}

TestSuite(gso, .init = start);

Test(gso, first_leaves_before_the_middles)
{
    add(&here, 4128); /* a FIRST packet has a RETH */
    for (int i = 0; i < 14; i++)
        add(&here, 4112);
    add(&here, 100);
    cr_assert_eq(gso_span(pkt, n), 2, "the first MIDDLE is a shorter last one");
    cr_assert_eq(gso_span(pkt + 2, n - 2), 14, "the others and LAST");
}

Test(gso, equal_lengths_go_together)
{
    for (int i = 0; i < 10; i++)
        add(&here, 4112);
    add(&here, 64);
    add(&here, 4112);
    cr_assert_eq(gso_span(pkt, n), 11, "the shorter one is the last");
    cr_assert_eq(gso_span(pkt + 11, n - 11), 1);
}

Test(gso, a_longer_packet_ends_the_run)
{
    add(&here, 80);
    add(&here, 80);
    add(&here, 96);
    cr_assert_eq(gso_span(pkt, n), 2);
}

Test(gso, one_destination)
{
    add(&here, 80);
    add(&also_here, 80);
    add(&there, 80);
    cr_assert_eq(gso_span(pkt, n), 2, "the same address is the same, whose vector it is");
}

Test(gso, traffic_class_and_hop_limit_count)
{
    struct av tc = here, hops = here;

    tc.traffic_class = 8;
    hops.hop_limit = 3;
    add(&here, 80);
    add(&tc, 80);
    cr_assert_eq(gso_span(pkt, n), 1);
    start();
    add(&here, 80);
    add(&hops, 80);
    cr_assert_eq(gso_span(pkt, n), 1);
    start();
    add(&here, 80);
    add(&here, 80);
    pkt[1].cnp = true; /* its traffic class may differ */
    cr_assert_eq(gso_span(pkt, n), 1);
}

Test(gso, a_gap_ends_the_run)
{
    add(&here, 80);
    add(&here, 80);
    pkt[1].off += 4;
    cr_assert_eq(gso_span(pkt, n), 1);
}

Test(gso, kernel_bounds)
{
    for (unsigned i = 0; i < TX_BATCH_PKTS; i++)
        add(&here, 80);
    cr_assert_eq(gso_span(pkt, n), GSO_MAX_SEGMENTS);
    start();
    for (unsigned i = 0; i < 20; i++)
        add(&here, 4112);
    cr_assert_eq(gso_span(pkt, n), GSO_MAX_BYTES / 4112);
}

/* The spans of any batch cover it without a gap, and each span can be sent. */
Test(gso, spans_cover_any_batch)
{
    uint32_t x = 1;

    for (int round = 0; round < 1000; round++) {
        start();
        while (n < 64) {
            x = x * 1664525 + 1013904223;
            add(x >> 30 ? &here : &there, (x >> 24) % 3 * 1000 + 64);
        }
        for (unsigned i = 0, span; i < n; i += span) {
            uint32_t bytes = 0;

            span = gso_span(pkt + i, n - i);
            cr_assert(span >= 1 && span <= n - i && span <= GSO_MAX_SEGMENTS);
            for (unsigned j = i; j < i + span; j++) {
                cr_assert(pkt[j].av == pkt[i].av);
                cr_assert(j == i + span - 1 ? pkt[j].len <= pkt[i].len : pkt[j].len == pkt[i].len);
                bytes += pkt[j].len;
            }
            cr_assert(bytes <= GSO_MAX_BYTES);
        }
    }
}
