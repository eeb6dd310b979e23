// SPDX-License-Identifier: BSD-2-Clause
/* Faults and GSO: which packets of a batch leave together when faults lose, delay or double some of them. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/loop/tx.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "wire/cm_msg.h"
#include "wire/pkt.h"

static struct fixture f;
static struct udp *to;
static struct io_counters counters;
static struct av av = {.hop_limit = 64};

/* Tests run in parallel, so the addresses depend on the process. */
static void open_at(struct udp *u, int last, struct io_counters *c)
{
    char text[32], why[ERROR_TEXT_MAX];
    union addr addr;

    snprintf(text, sizeof(text), "127.%d.%d.%d", 64 + (getpid() >> 15 & 63), getpid() >> 7 & 255,
             (getpid() & 127) * 2 + last);
    cr_assert_eq(addr_parse(text, &addr), 0);
    udp_init(u, &addr, c);
    u->ifindex = 1;
    cr_assert_eq(udp_open(u, 1u << 20, why), 0, "%s", why);
}

static void setup(void)
{
    cr_assert(fixture_start(&f));
    udp_close(&f.device->udp);
    open_at(&f.device->udp, 0, &f.device->io);
    to = malloc(sizeof(*to));
    open_at(to, 1, &counters);
    addr_to_gid(&to->first.own, av.dgid);
}
static void teardown(void)
{
    udp_close(to);
    free(to);
    fixture_end(&f);
}
TestSuite(tx_runs, .init = setup, .fini = teardown, .timeout = 60);

static void set_fault(const char *text)
{
    struct fault_spec spec;

    cr_assert_eq(fault_parse(text, &spec, NULL, 0), 0);
    fault_init(&f.device->fault, &spec, 1, 0, 0);
}

/* Queues n messages of one length, with the transaction IDs first, first + 1 and so on. */
static void queue(unsigned first, unsigned n)
{
    uint8_t mad[MAD_LEN];

    for (unsigned i = first; i < first + n; i++) {
        struct cm_msg m = {.attribute = CM_RTU, .transaction_id = i};

        cm_msg_encode(&m, mad);
        cr_assert_eq(engine_send_mad(f.device->engine, &av, mad), 0);
    }
}

/* Sends what is queued or due at this time. Returns the number of sends. */
static unsigned sends(uint64_t now)
{
    uint64_t before = f.device->io.tx_datagrams;

    while (device_tx(f.device, now) != 0)
        ;
    return (unsigned)(f.device->io.tx_datagrams - before);
}

/* The transaction IDs of all packets that have arrived, in their order: "0 1 3". Each has the right ICRC. */
static const char *arrived(void)
{
    static char text[256];
    struct pollfd p = {to->first.fd, POLLIN, 0};
    size_t at = 0;

    text[0] = 0;
    while (poll(&p, 1, 100) == 1) {
        int n = udp_recv(to, to->first.fd);

        for (int k = 0; k < n; k++) {
            struct udp_datagram dg;
            struct cm_msg m;

            udp_datagram(to, (unsigned)k, &to->first.rx_peers, &dg);
            for (size_t off = 0; off < dg.len; off += dg.segment) {
                uint16_t id;

                cr_assert(icrc_check_any_id(&dg.peer->icrc, 0, dg.data + off, dg.segment, &id));
                cr_expect_eq(id, off / dg.segment);
                cr_assert_eq(cm_msg_decode(dg.data + off + dg.segment - ICRC_LEN - MAD_LEN, &m), CM_DECODE_OK);
                at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u", at ? " " : "", (unsigned)m.transaction_id);
            }
        }
    }
    return text;
}

Test(tx_runs, a_lost_packet_cuts_no_run)
{
    set_fault("drop=any#3");
    queue(0, 8);
    cr_expect_eq(sends(clock_ns()), 1);
    cr_expect_str_eq(arrived(), "0 1 3 4 5 6 7");
    cr_expect_eq(f.device->io.tx_packets, 7);
}

Test(tx_runs, lost_packets_at_both_ends)
{
    set_fault("drop=any#1;drop=any#8");
    queue(0, 8);
    cr_expect_eq(sends(clock_ns()), 1);
    cr_expect_str_eq(arrived(), "1 2 3 4 5 6");
}

Test(tx_runs, a_run_of_which_everything_is_lost)
{
    set_fault("loss=100%");
    queue(0, 8);
    cr_expect_eq(sends(clock_ns()), 0);
    cr_expect_str_eq(arrived(), "");
}

Test(tx_runs, a_late_packet_leaves_with_those_after_it)
{
    uint64_t now = clock_ns();

    set_fault("after=2,count=2,delay=1ms");
    queue(0, 6);
    cr_expect_eq(sends(now), 1);
    cr_expect_str_eq(arrived(), "0 1 4 5");
    queue(6, 2);
    cr_expect_eq(sends(now + NS_PER_MS), 1);
    cr_expect_str_eq(arrived(), "2 3 6 7");
    cr_expect_eq(f.device->io.tx_packets, 8);
}

/* The faults were turned off meanwhile. */
Test(tx_runs, late_packets_leave_without_faults_too)
{
    uint64_t now = clock_ns();

    set_fault("after=1,count=2,delay=1ms");
    queue(0, 4);
    cr_expect_eq(sends(now), 1);
    cr_expect_str_eq(arrived(), "0 3");
    set_fault("");
    queue(4, 2);
    cr_expect_eq(sends(now + NS_PER_MS), 2);
    cr_expect_str_eq(arrived(), "1 2 4 5");
}

Test(tx_runs, a_doubled_packet_ends_the_run)
{
    set_fault("after=2,count=1,dup=100%");
    queue(0, 6);
    cr_expect_eq(sends(clock_ns()), 4);
    cr_expect_str_eq(arrived(), "0 1 2 2 3 4 5");
}

Test(tx_runs, a_late_packet_that_is_doubled)
{
    uint64_t now = clock_ns();

    set_fault("after=1,count=1,dup=100%,delay=1ms");
    queue(0, 3);
    cr_expect_eq(sends(now), 1);
    cr_expect_str_eq(arrived(), "0 2");
    cr_expect_eq(sends(now + NS_PER_MS), 2);
    cr_expect_str_eq(arrived(), "1 1");
}

/* The second of three late packets is sent by itself, and must not overtake the first. */
static void three_late_packets(const char *fault, const char *order)
{
    uint64_t now = clock_ns();

    set_fault(fault);
    queue(0, 4);
    cr_expect_eq(sends(now), 1);
    cr_expect_str_eq(arrived(), "3");
    cr_expect_geq(sends(now + NS_PER_MS), 3);
    cr_expect_str_eq(arrived(), order, "%s", fault);
}

Test(tx_runs, late_packets_with_other_faults_stay_in_their_order)
{
    three_late_packets("after=1,count=1,dup=100%,delay=1ms;count=3,delay=1ms", "0 1 1 2");
}

Test(tx_runs, late_packets_that_are_marked_stay_in_their_order)
{
    three_late_packets("after=1,count=1,ce=100%,delay=1ms;count=3,delay=1ms", "0 1 2");
}

/* A sniffer that was opened in a pause sees single packets. */
Test(tx_runs, empty_passes_do_not_look_for_sniffers)
{
    uint64_t now = clock_ns() + 10 * NS_PER_S, before = f.device->udp.gso_checked;

    cr_assert_eq(f.device->udp.gso_mode, GSO_AUTO);
    cr_expect_eq(sends(now), 0);
    cr_expect_eq(f.device->udp.gso_checked, before);
    queue(0, 1);
    cr_expect_eq(sends(now), 1);
    cr_expect_eq(f.device->udp.gso_checked, now);
}
