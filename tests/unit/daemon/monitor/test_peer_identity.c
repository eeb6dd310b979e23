// SPDX-License-Identifier: BSD-2-Clause
/* A peer is asked whether it is a Pumice daemon, and its answer, or silence, decides which packets are accepted. */
#include <criterion/criterion.h>

#include "daemon/monitor/peer_identity.h"
#include "tests/unit/daemon/daemon_fixture.h"
#include "wire/pkt.h"
#include "wire/pumice/probe.h"

#define TRY (250 * NS_PER_MS)

static struct fixture f;
static uint8_t peer[16];
static uint64_t now;
static uint8_t packets[65536];
static bool icrc_ids = true; /* of answers */

/* A QP is connected to `peer`. */
static void setup(void)
{
    struct fixture_cq cq;
    struct fixture_qp qp;

    cr_assert(fixture_start(&f));
    struct session *s = fixture_session(&f);
    uint32_t pd = fixture_pd(&f, s);
    cr_assert_eq(fixture_cq(&f, s, 4, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 4, &qp), 0);
    cr_assert_eq(fixture_connect(&f, s, qp.rep.qpn, 1234), 0);
    memcpy(peer, f.device->gid, sizeof(peer));
    now = clock_ns();
}
static void teardown(void)
{
    fixture_end(&f);
}
TestSuite(peer_identity, .init = setup, .fini = teardown);

/* Takes the packets that the device sends. Returns the token of the last probe among them, or 0. */
static uint64_t probed(void)
{
    struct tx_batch b = {.buf = packets, .cap = sizeof(packets)};
    uint64_t token = 0;

    engine_tx(f.device->engine, &b, now);
    for (uint32_t i = 0; i < b.n; i++) {
        struct probe probe;
        struct pkt p;

        cr_assert_eq(pkt_decode(packets + b.pkt[i].off, b.pkt[i].len, &p), PKT_OK);
        if (p.dest_qpn == PROBE_QPN && probe_decode(p.payload, p.payload_len, &probe) && probe.kind == PROBE_ASK)
            token = probe.token;
    }
    return token;
}

static bool answer(const uint8_t from[16], uint64_t token)
{
    struct check c = {.answer = true, .icrc_ids = icrc_ids, .token = token, .size = PROBE_LEN};

    memcpy(c.peer, from, sizeof(c.peer));
    return peer_identity_answer(f.device, &c, now);
}

static void make_stranger(uint8_t gid[16], unsigned number)
{
    memcpy(gid, peer, 16);
    gid[14] ^= (uint8_t)(number >> 8);
    gid[15] ^= (uint8_t)number;
}

/* A datagram QP that only receives has no peer. */
Test(peer_identity, a_stranger_that_answers_is_a_pumice_daemon)
{
    uint8_t stranger[16], another[16];

    make_stranger(stranger, 1);
    make_stranger(another, 2);
    cr_expect_eq(peer_identity_check(f.device, stranger, now), PEER_OTHER, "accepted until it answers");
    uint64_t token = probed();
    cr_assert_neq(token, 0);
    cr_expect_not(answer(another, token), "from another address");
    cr_expect(answer(stranger, token));
    cr_expect_eq(peer_identity_check(f.device, stranger, now), PEER_PUMICE);
    cr_expect_eq(peer_identity_check(f.device, another, now), PEER_OTHER);
}

Test(peer_identity, a_stranger_that_becomes_a_peer_is_still_known)
{
    struct fixture_cq cq;
    struct fixture_qp qp;
    uint8_t gid[16];

    make_stranger(gid, 1);
    peer_identity_check(f.device, gid, now);
    cr_assert(answer(gid, probed()));
    struct session *s = fixture_session(&f);
    uint32_t pd = fixture_pd(&f, s);
    cr_assert_eq(fixture_cq(&f, s, 4, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 4, &qp), 0);
    cr_assert_eq(fixture_connect_to(&f, s, qp.rep.qpn, 1234, gid), 0);
    cr_expect_eq(peer_identity_check(f.device, gid, now), PEER_PUMICE);
}

/* Packets with forged addresses make the device send few probes, and take nothing from its peers. */
Test(peer_identity, many_strangers_are_not_all_asked)
{
    unsigned asked = 0;
    uint8_t gid[16];

    peer_identity_check(f.device, peer, now);
    cr_assert(answer(peer, probed()));
    for (unsigned i = 1; i < 5000; i++) {
        make_stranger(gid, i);
        cr_expect_eq(peer_identity_check(f.device, gid, now), PEER_OTHER);
        asked += probed() != 0;
    }
    cr_expect_eq(asked, 16, "%u", asked);
    make_stranger(gid, 5000);
    peer_identity_check(f.device, gid, now + NS_PER_S);
    cr_expect_neq(probed(), 0, "others later");
    cr_expect_eq(peer_identity_check(f.device, peer, now), PEER_PUMICE);
}

Test(peer_identity, a_peer_that_answers_is_a_pumice_daemon)
{
    uint8_t stranger[16];

    memcpy(stranger, peer, sizeof(stranger));
    stranger[15] ^= 1;
    cr_expect_eq(peer_identity_check(f.device, peer, now), PEER_UNKNOWN);
    uint64_t token = probed();
    cr_assert_neq(token, 0);
    cr_expect_not(answer(peer, token + 1), "a guess");
    cr_expect_not(answer(stranger, token), "from another address");
    cr_expect_eq(peer_identity_check(f.device, peer, now), PEER_UNKNOWN);
    cr_expect_eq(probed(), 0, "not asked twice at once");
    cr_expect(answer(peer, token));
    cr_expect_eq(peer_identity_check(f.device, peer, now + NS_PER_S - 1), PEER_PUMICE);
    cr_expect_eq(probed(), 0);
    cr_expect_eq(peer_identity_check(f.device, peer, now += NS_PER_S), PEER_PUMICE);
    cr_expect_eq(probed(), token, "asked again");
    cr_expect(answer(peer, token));
}

/* The daemon at the address may be replaced by a newer one. */
Test(peer_identity, a_daemon_says_whether_its_packets_have_their_ids)
{
    peer_identity_check(f.device, peer, now);
    uint64_t token = probed();
    icrc_ids = false;
    cr_assert(answer(peer, token));
    cr_expect_eq(peer_identity_check(f.device, peer, now += NS_PER_S), PEER_PUMICE_OLD);
    cr_expect_eq(probed(), token, "asked again");
    icrc_ids = true;
    cr_assert(answer(peer, token));
    cr_expect_eq(peer_identity_check(f.device, peer, now), PEER_PUMICE);
}

/* Another stack took over the address. */
Test(peer_identity, a_peer_that_no_longer_answers_is_another_stack)
{
    unsigned tries = 0;

    peer_identity_check(f.device, peer, now);
    cr_assert(answer(peer, probed()));
    now += NS_PER_S;
    while (peer_identity_check(f.device, peer, now) == PEER_PUMICE) {
        cr_assert_neq(probed(), 0);
        cr_assert_lt(++tries, 100);
        now += TRY;
    }
    cr_expect_eq(tries, 12, "%u", tries);
    cr_expect_eq(peer_identity_check(f.device, peer, now), PEER_OTHER);
}

Test(peer_identity, a_peer_that_does_not_answer_is_asked_again_after_a_minute)
{
    for (unsigned i = 0; i < 4; i++, now += TRY) {
        cr_expect_eq(peer_identity_check(f.device, peer, now), PEER_UNKNOWN);
        cr_expect_neq(probed(), 0);
        cr_expect_eq(peer_identity_check(f.device, peer, now + TRY - 1), PEER_UNKNOWN);
        cr_expect_eq(probed(), 0);
    }
    cr_expect_eq(peer_identity_check(f.device, peer, now), PEER_OTHER);
    cr_expect_eq(peer_identity_check(f.device, peer, now + 59 * NS_PER_S), PEER_OTHER);
    cr_expect_eq(probed(), 0);
    cr_expect_eq(peer_identity_check(f.device, peer, now += 60 * NS_PER_S), PEER_UNKNOWN);
    cr_expect_neq(probed(), 0);
}

/* A flood of probes leaves no room for those of the device. They do not count as unanswered. */
Test(peer_identity, a_probe_that_could_not_be_sent_does_not_count)
{
    struct av av = {.hop_limit = 64};

    memcpy(av.dgid, peer, sizeof(peer));
    while (engine_check(f.device->engine, &av, PROBE_LEN, 1, 1) == 0)
        ;
    for (unsigned i = 0; i < 20; i++)
        cr_expect_eq(peer_identity_check(f.device, peer, now += TRY), PEER_UNKNOWN);
    probed();
    cr_expect_eq(peer_identity_check(f.device, peer, now += TRY), PEER_UNKNOWN);
    cr_expect_neq(probed(), 0);
}
