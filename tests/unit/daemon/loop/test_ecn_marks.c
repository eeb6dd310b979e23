// SPDX-License-Identifier: BSD-2-Clause
/* ECN at the socket. Packets are sent as ECN-capable, marks by fault injection arrive, and the traffic class of an
 * address vector keeps its upper six bits. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/net/udp.h"
#include "daemon/options.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "wire/pkt.h"

#define LEN 64u

static struct udp *from, *to;
static struct io_counters counters;
static struct av av;

static struct udp *open_at(int last, bool ecn)
{
    struct udp *u = malloc(sizeof(*u));
    char text[32], why[ERROR_TEXT_MAX];
    union addr addr;

    /* Tests run in parallel, so the addresses depend on the process. */
    snprintf(text, sizeof(text), "127.%d.%d.%d", 128 + (getpid() >> 15 & 63), getpid() >> 7 & 255,
             (getpid() & 127) * 2 + last);
    cr_assert_eq(addr_parse(text, &addr), 0);
    udp_init(u, &addr, &counters);
    u->ecn = ecn;
    u->ifindex = 1;
    cr_assert_eq(udp_open(u, 65536, why), 0, "%s", why);
    return u;
}

static void start(bool ecn)
{
    from = open_at(0, ecn);
    to = open_at(1, true);
    addr_to_gid(&to->first.own, av.dgid);
}

static void finish(void)
{
    udp_close(from);
    udp_close(to);
    free(from);
    free(to);
}

/* Returns the TOS of one packet as it arrives. */
static int tos_of_packet(uint8_t traffic_class, bool ce, bool cnp)
{
    uint8_t buf[LEN] = {0x04};
    struct tx_pkt pkt = {.av = &av, .len = LEN, .cnp = cnp};
    struct pollfd p = {to->first.fd, POLLIN, 0};
    struct udp_datagram dg;

    av.traffic_class = traffic_class;
    cr_assert_not_null(udp_add(from, buf, &pkt, 1, ce));
    cr_assert_eq(udp_flush(from), 0);
    cr_assert_eq(poll(&p, 1, 1000), 1);
    cr_assert_eq(udp_recv(to, to->first.fd), 1);
    udp_datagram(to, 0, &to->first.rx_peers, &dg);
    cr_assert_eq(dg.len, LEN);
    return dg.tos;
}
static int tos_of(uint8_t traffic_class, bool ce)
{
    return tos_of_packet(traffic_class, ce, false);
}

Test(ecn, on, .fini = finish)
{
    start(true);
    cr_assert_eq(tos_of(0, false), 2, "ECT(0)");
    cr_assert_eq(tos_of(0, true), 3, "CE");
    cr_assert_eq(tos_of(0x5c, false), 0x5e);
    cr_assert_eq(tos_of(0x5f, false), 0x5e, "an application does not mark");
    cr_assert_eq(tos_of(0x5c, true), 0x5f);
    cr_assert_eq(tos_of(0, false), 2, "nothing is left behind");
}

Test(ecn, off, .fini = finish)
{
    start(false);
    cr_assert_eq(tos_of(0, false), 0);
    cr_assert_eq(tos_of(0x5c, false), 0x5c);
    cr_assert_eq(tos_of(0, true), 3, "routers of the test mark whatever comes");
}

Test(ecn, cnps_may_have_a_class_of_their_own, .fini = finish)
{
    start(true);
    cr_assert_eq(tos_of_packet(0x5c, false, true), 0x5e, "that of their QP");
    from->cnp_dscp = 48;
    cr_assert_eq(tos_of_packet(0x5c, false, true), 48 << 2 | 2);
    cr_assert_eq(tos_of_packet(0x5c, false, false), 0x5e, "all else as before");
    from->cnp_dscp = 0;
    cr_assert_eq(tos_of_packet(0x5c, false, true), 2);
}

/* --- with an engine behind it ------------------------------------------------------------------ */

static struct fixture f;
static uint8_t memory[65536];

/* Sends traffic that congestion would affect, between two QPs of one device. */
static const struct engine_counters *traffic(const char *ecn, const char *fault)
{
    struct fixture_cq cq;
    struct fixture_qp a, b;
    struct session *s;
    struct pm_cqe e;
    char why[ERROR_TEXT_MAX];
    uint32_t pd, key;

    settings_init(&f.settings);
    cr_assert_eq(settings_add_device(&f.settings, "test0", "127.0.0.1", why), 0);
    cr_assert_eq(options_set(&f.settings, "ecn", ecn, why), 0);
    cr_assert_eq(options_set(&f.settings, "fault", fault, why), 0);
    f.device = aligned_alloc(64, (sizeof(*f.device) + 63) & ~(size_t)63);
    cr_assert_eq(device_init(f.device, &f.settings, 0, why), 0);
    cr_assert_eq(device_make_engine(f.device, why), 0);
    s = fixture_session(&f);
    pd = fixture_pd(&f, s);
    key = fixture_mr(&f, s, pd, memory, sizeof(memory), ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE);
    cr_assert_eq(fixture_cq(&f, s, 64, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &a), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &b), 0);
    cr_assert_eq(fixture_connect_both(&f, s, &a, &b), 0, "%s", (char *)f.rp.payload);
    for (int i = 0; i < 12; i++) {
        struct pm_send_wqe *w = fixture_send_slot(&a);

        memset(w, 0, sizeof(*w));
        w->opcode = WR_RDMA_WRITE;
        w->flags = PM_SEND_SIGNALED;
        w->num_sge = 1;
        w->rkey = key;
        w->remote_addr = (uintptr_t)memory + 32768;
        *(struct pm_sge *)(w + 1) = (struct pm_sge){(uintptr_t)memory, 16384, key};
        fixture_post_send(s, &a);
        fixture_run(&f);
        cr_assert(fixture_poll(&cq, &e) && e.status == WC_SUCCESS);
    }
    return engine_counters(f.device->engine);
}

static void end_device(void)
{
    fixture_end(&f);
}

Test(ecn, marks_are_answered_and_lower_the_rate, .fini = end_device)
{
    const struct engine_counters *c = traffic("on", "ce=50%");

    cr_assert_gt(f.device->fault.counters.fault_marked, 0);
    cr_assert_gt(c->np_ecn_marked_roce_packets, 0);
    cr_assert_gt(c->np_cnp_sent, 0);
    cr_assert_gt(c->rp_cnp_handled, 0);
}

Test(ecn, off_means_off, .fini = end_device)
{
    const struct engine_counters *c = traffic("off", "ce=50%");

    cr_assert_gt(f.device->fault.counters.fault_marked, 0);
    cr_assert_eq(c->np_ecn_marked_roce_packets, 0);
    cr_assert_eq(c->np_cnp_sent, 0);
}
