// SPDX-License-Identifier: BSD-2-Clause
/* Runs of a batch (tx_run_length). One GSO send carries packets that are adjacent, of equal length except for the last
 * one, to one destination, within the limits of the owner. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/core/base/tx_batch.h"

#define RUN_BYTES 65000u
#define RUN_PKTS 64u

static struct av here = {.dgid = {1}}, also_here = {.dgid = {1}}, there = {.dgid = {2}};
static struct tx_batch b;

static void start(void)
{
    b.n = 0;
    b.gso = (struct gso_run){.bytes = RUN_BYTES, .pkts = RUN_PKTS};
}

/* The length of the run that begins with packet i. */
static uint32_t run(uint32_t i)
{
    return tx_run_length(&b, i, b.n);
}

static void add(const struct av *av, uint32_t len)
{
    struct tx_pkt *p = &b.pkt[b.n];
    *p = (struct tx_pkt){.av = av, .len = len, .off = b.n ? p[-1].off + p[-1].len : 0};
    b.n++;
}

TestSuite(tx_run, .init = start);

Test(tx_run, first_leaves_before_the_middles)
{
    add(&here, 4128); /* a FIRST packet has a RETH */
    for (int i = 0; i < 14; i++)
        add(&here, 4112);
    add(&here, 100);
    cr_assert_eq(run(0), 2, "the first MIDDLE is a shorter last one");
    cr_assert_eq(run(2), 14, "the others and LAST");
}

Test(tx_run, equal_lengths_go_together)
{
    for (int i = 0; i < 10; i++)
        add(&here, 4112);
    add(&here, 64);
    add(&here, 4112);
    cr_assert_eq(run(0), 11, "the shorter one is the last");
    cr_assert_eq(run(11), 1);
}

Test(tx_run, a_longer_packet_ends_the_run)
{
    add(&here, 80);
    add(&here, 80);
    add(&here, 96);
    cr_assert_eq(run(0), 2);
}

Test(tx_run, one_destination)
{
    add(&here, 80);
    add(&also_here, 80);
    add(&there, 80);
    cr_assert_eq(run(0), 2, "the same address is the same, whose vector it is");
}

Test(tx_run, an_owner_without_gso_sends_each_packet_alone)
{
    add(&here, 80);
    add(&here, 80);
    b.gso = (struct gso_run){0};
    cr_assert_eq(run(0), 1);
}

Test(tx_run, the_end_counts)
{
    for (int i = 0; i < 5; i++)
        add(&here, 80);
    cr_assert_eq(tx_run_length(&b, 1, 3), 2);
}

Test(tx_run, source_traffic_class_and_hop_limit_count)
{
    struct av tc = here, hops = here, source = here;

    source.sgid_index = 1;
    add(&here, 80);
    add(&source, 80);
    cr_assert_eq(run(0), 1);
    start();
    tc.traffic_class = 8;
    hops.hop_limit = 3;
    add(&here, 80);
    add(&tc, 80);
    cr_assert_eq(run(0), 1);
    start();
    add(&here, 80);
    add(&hops, 80);
    cr_assert_eq(run(0), 1);
    start();
    add(&here, 80);
    add(&here, 80);
    b.pkt[1].cnp = true; /* its traffic class may differ */
    cr_assert_eq(run(0), 1);
}

Test(tx_run, a_gap_ends_the_run)
{
    add(&here, 80);
    add(&here, 80);
    b.pkt[1].off += 4;
    cr_assert_eq(run(0), 1);
}

Test(tx_run, kernel_bounds)
{
    for (unsigned i = 0; i < TX_BATCH_PKTS; i++)
        add(&here, 80);
    cr_assert_eq(run(0), RUN_PKTS);
    start();
    for (unsigned i = 0; i < 20; i++)
        add(&here, 4112);
    cr_assert_eq(run(0), RUN_BYTES / 4112);
}

/* The spans of any batch cover it without a gap, and each span can be sent. */
Test(tx_run, spans_cover_any_batch)
{
    uint32_t x = 1;

    for (int round = 0; round < 1000; round++) {
        start();
        while (b.n < 64) {
            x = x * 1664525 + 1013904223;
            add(x >> 30 ? &here : &there, (x >> 24) % 3 * 1000 + 64);
        }
        for (unsigned i = 0, span; i < b.n; i += span) {
            uint32_t bytes = 0;

            span = run(i);
            cr_assert(span >= 1 && span <= b.n - i && span <= RUN_PKTS);
            for (unsigned j = i; j < i + span; j++) {
                cr_assert(b.pkt[j].av == b.pkt[i].av);
                cr_assert(j == i + span - 1 ? b.pkt[j].len <= b.pkt[i].len : b.pkt[j].len == b.pkt[i].len);
                bytes += b.pkt[j].len;
            }
            cr_assert(bytes <= RUN_BYTES);
        }
    }
}
