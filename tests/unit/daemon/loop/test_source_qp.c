// SPDX-License-Identifier: BSD-2-Clause
/* QPs of two users on one device: a QP takes packets from its own peer only, although all QPs of the device have the same
 * address. The attacker knows everything: QP number, PSN, key and address. */
#include <criterion/criterion.h>
#include <infiniband/verbs.h>

#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;
static struct session *victim, *attacker;
static struct fixture_cq victim_cq, attacker_cq;
static struct fixture_qp target, peer, hostile;
static uint32_t victim_key, attacker_key;
static uint8_t memory[8192];

/* Where the attacker's data are, and the victim's, and where both write to. */
enum { FORGED = 0, TRUE_DATA = 2048, AIM = 4096, LEN = 64 };

static void setup(enum qp_type type)
{
    uint32_t access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ, pd;

    cr_assert(fixture_start(&f));
    victim = fixture_session(&f);
    attacker = fixture_session(&f);
    cr_assert(victim && attacker);
    victim->cred.uid = 4711;
    attacker->cred.uid = 4712;
    memset(memory + FORGED, 'x', LEN);
    memset(memory + TRUE_DATA, 'v', LEN);

    pd = fixture_pd(&f, victim);
    victim_key = fixture_mr(&f, victim, pd, memory, sizeof(memory), access);
    cr_assert_eq(fixture_cq(&f, victim, 64, 0, &victim_cq), 0);
    cr_assert_eq(fixture_qp_typed(&f, victim, pd, victim_cq.rep.handle, type, 0, 16, &target), 0);
    cr_assert_eq(fixture_qp_typed(&f, victim, pd, victim_cq.rep.handle, type, 0, 16, &peer), 0);

    pd = fixture_pd(&f, attacker);
    attacker_key = fixture_mr(&f, attacker, pd, memory, sizeof(memory), access);
    cr_assert_eq(fixture_cq(&f, attacker, 64, 0, &attacker_cq), 0);
    cr_assert_eq(fixture_qp_typed(&f, attacker, pd, attacker_cq.rep.handle, type, 0, 16, &hostile), 0);
}

/* One WRITE of LEN bytes to AIM. */
static void write_to_aim(struct session *s, struct fixture_qp *qp, uint32_t lkey, size_t from)
{
    struct pm_sge *sge;

    fixture_wqe(qp, WR_RDMA_WRITE, victim_key, memory + from, memory + AIM, LEN);
    sge = (struct pm_sge *)(fixture_send_slot(qp) + 1);
    sge->lkey = lkey;
    fixture_post_send(s, qp);
    fixture_run(&f);
}

static void connect_reliable(struct session *s, const struct fixture_qp *a, const struct fixture_qp *b)
{
    cr_assert_eq(fixture_connect(&f, s, a->rep.qpn, b->rep.qpn), 0, "%s", (char *)f.rp.payload);
}

static void finish(void)
{
    fixture_end(&f);
}

Test(source_qp, a_reliable_qp_takes_writes_of_its_peer_only, .fini = finish)
{
    struct pm_cqe e;

    setup(QPT_RC);
    connect_reliable(victim, &target, &peer);
    connect_reliable(victim, &peer, &target);
    connect_reliable(attacker, &hostile, &target);
    write_to_aim(attacker, &hostile, attacker_key, FORGED);
    cr_expect(fixture_poll(&attacker_cq, &e) && e.status == IBV_WC_RETRY_EXC_ERR, "status %u", e.status);
    for (int i = 0; i < LEN; i++)
        cr_assert_eq(memory[AIM + i], 0, "byte %d was written by another user", i);
    cr_expect_gt(engine_counters(f.device->engine)->rx_bad_source_qp, 0);

    write_to_aim(victim, &peer, victim_key, TRUE_DATA);
    cr_expect(fixture_poll(&victim_cq, &e) && e.status == IBV_WC_SUCCESS, "status %u", e.status);
    cr_expect_arr_eq(memory + AIM, memory + TRUE_DATA, LEN, "the victim's own data did not arrive");
}

/* ACKs, NAKs and CNPs of a stranger do not reach the requester either. */
Test(source_qp, a_stranger_acknowledges_nothing, .fini = finish)
{
    struct pkt p = {.opcode = OP_SERVICE_RC | OP_ACK,
                    .migreq = true,
                    .pkey = PKEY_DEFAULT,
                    .psn = 7,
                    .aeth = {.syndrome = 0x1f, .msn = 1}};
    struct rx_meta meta = {.hop_limit = 64};
    struct pm_cqe e;

    setup(QPT_RC);
    connect_reliable(victim, &peer, &target); /* the target itself stays in RESET and does not answer */
    fixture_wqe(&peer, WR_RDMA_WRITE, victim_key, memory + TRUE_DATA, memory + AIM, LEN);
    fixture_post_send(victim, &peer);
    device_pass(f.device, clock_ns());
    memcpy(meta.src_gid, f.device->gid, 16);
    memcpy(meta.dst_gid, f.device->gid, 16);
    p.dest_qpn = peer.rep.qpn;
    meta.src_qpn = hostile.rep.qpn;
    engine_rx(f.device->engine, &p, &meta, clock_ns());
    device_pass(f.device, clock_ns());
    cr_expect_not(fixture_poll(&victim_cq, &e), "a WRITE that nobody received has completed, status %u", e.status);
    meta.src_qpn = target.rep.qpn;
    engine_rx(f.device->engine, &p, &meta, clock_ns());
    device_pass(f.device, clock_ns());
    cr_expect(fixture_poll(&victim_cq, &e) && e.status == IBV_WC_SUCCESS);
}
