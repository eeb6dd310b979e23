// SPDX-License-Identifier: BSD-2-Clause
/* Each packet that leaves has the IP ID that its ICRC covers in its BTH. */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/net/udp.h"
#include "wire/bth.h"
#include "wire/icrc.h"
#include "wire/pkt.h"

#define LEN 64u
#define MOST GSO_MAX_SEGMENTS

static struct udp *from, *to;
static struct io_counters counters;
static struct av av;
static uint8_t buf[MOST * LEN];

static struct udp *open_at(int last)
{
    struct udp *u = malloc(sizeof(*u));
    char text[32], why[ERROR_TEXT_MAX];
    union addr addr;

    /* Tests run in parallel, so the addresses depend on the process. */
    snprintf(text, sizeof(text), "127.%d.%d.%d", 192 + (getpid() >> 15 & 63), getpid() >> 7 & 255,
             (getpid() & 127) * 2 + last);
    cr_assert_eq(addr_parse(text, &addr), 0);
    udp_init(u, &addr, &counters);
    u->ifindex = 1;
    cr_assert_eq(udp_open(u, 1u << 20, why), 0, "%s", why);
    return u;
}

static void setup(void)
{
    from = open_at(0);
    to = open_at(1);
    addr_to_gid(&to->first.own, av.dgid);
    memset(buf, 0x3f, sizeof(buf)); /* also in the place of the ID: whatever was there does not matter */
}
static void teardown(void)
{
    udp_close(from);
    udp_close(to);
    free(from);
    free(to);
}
TestSuite(icrc_ids, .init = setup, .fini = teardown);

/* Sends the packets first … first + n of buf together. They arrive with the IDs 0, 1, 2 and so on, and no other ID makes
 * their ICRC right. */
static void check_sent(unsigned first, unsigned n)
{
    struct tx_pkt pkt[MOST];
    struct pollfd p = {to->first.fd, POLLIN, 0};
    struct udp_datagram dg;

    for (unsigned i = 0; i < n; i++)
        pkt[i] = (struct tx_pkt){.av = &av, .off = (first + i) * LEN, .len = LEN};
    cr_assert_not_null(udp_add(from, buf, pkt, n, false));
    cr_assert_eq(udp_flush(from), 0);
    cr_assert_eq(poll(&p, 1, 1000), 1);
    cr_assert_eq(udp_recv(to, to->first.fd), 1);
    udp_datagram(to, 0, &to->first.rx_peers, &dg);
    cr_assert_eq(dg.len, n * LEN);
    for (unsigned i = 0; i < n; i++) {
        const uint8_t *bth = dg.data + i * LEN;
        uint16_t id;

        cr_expect_eq(bth_icrc_id(bth), i);
        cr_expect_eq(bth[BTH_UNCOVERED_BYTE] & ~BTH_ICRC_ID_MAX, 0, "FECN and BECN are left alone");
        cr_assert(icrc_check_any_id(&dg.peer->icrc, 0, bth, LEN, &id));
        cr_expect_eq(id, i);
    }
}

Test(icrc_ids, packets_of_one_send_and_single_ones)
{
    check_sent(0, MOST);
    check_sent(5, 3);
    check_sent(7, 1);
    cr_expect_eq(counters.tx_gso_sends, 2, "the loopback interface takes GSO");
}

/* Packets that are left out of a send have no ID. */
Test(icrc_ids, a_send_with_gaps)
{
    struct tx_pkt pkt[8];
    struct pollfd p = {to->first.fd, POLLIN, 0};
    struct udp_datagram dg;

    for (unsigned i = 0; i < 8; i++) {
        pkt[i] = (struct tx_pkt){.av = &av, .off = i * LEN, .len = LEN, .apart = i == 2 || i == 5 || i == 6};
        memset(buf + i * LEN, (int)i, LEN);
    }
    cr_assert_eq(udp_add(from, buf, pkt, 8, false), buf);
    cr_assert_eq(udp_flush(from), 0);
    cr_assert_eq(poll(&p, 1, 1000), 1);
    cr_assert_eq(udp_recv(to, to->first.fd), 1);
    udp_datagram(to, 0, &to->first.rx_peers, &dg);
    cr_assert_eq(dg.len, 5 * LEN);
    for (unsigned i = 0; i < 5; i++) {
        static const uint8_t sent[] = {0, 1, 3, 4, 7};
        uint16_t id;

        cr_expect_eq(dg.data[i * LEN + LEN / 2], sent[i]);
        cr_assert(icrc_check_any_id(&dg.peer->icrc, 0, dg.data + i * LEN, LEN, &id));
        cr_expect_eq(id, i);
    }
    cr_expect_eq(counters.tx_gso_sends, 1);
    cr_expect_eq(counters.tx_packets, 5);
    cr_expect_eq(counters.tx_bytes, 5 * LEN);
}

/* The kernel refuses a send of so many packets. They leave one by one, without those that are left out. */
Test(icrc_ids, a_send_with_gaps_that_is_refused)
{
    enum { MANY = 200, GAP = 50 };
    struct tx_pkt pkt[MANY];
    uint8_t *many = malloc(MANY * LEN);
    unsigned arrived = 0;

    memset(many, 0x11, MANY * LEN);
    for (unsigned i = 0; i < MANY; i++)
        pkt[i] = (struct tx_pkt){.av = &av, .off = i * LEN, .len = LEN, .apart = i == GAP};
    cr_assert_not_null(udp_add(from, many, pkt, MANY, false));
    cr_assert_eq(udp_flush(from), 0);
    cr_expect(from->gso_refused);
    cr_expect_eq(counters.tx_packets, MANY - 1);
    cr_expect_eq(counters.tx_datagrams, MANY - 1);
    for (struct pollfd p = {to->first.fd, POLLIN, 0}; poll(&p, 1, 100) == 1;) {
        int n = udp_recv(to, to->first.fd);

        for (int k = 0; k < n; k++) {
            struct udp_datagram dg;
            uint16_t id;

            udp_datagram(to, (unsigned)k, &to->first.rx_peers, &dg);
            for (size_t off = 0; off < dg.len; off += LEN, arrived++) {
                cr_assert(icrc_check_any_id(&dg.peer->icrc, 0, dg.data + off, LEN, &id));
                cr_expect_eq(id, 0);
            }
        }
    }
    cr_expect_eq(arrived, MANY - 1);
    free(many);
}
