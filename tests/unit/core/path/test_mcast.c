// SPDX-License-Identifier: BSD-2-Clause
/* Multicast groups. */
#include <errno.h>

#include "tests/unit/core/core_fixture.h"

static struct fixture fix;
static struct qp *qp[3];
static uint32_t key;
static uint8_t payload[64];

static const uint8_t group_v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 224, [15] = 9};
static const uint8_t other_v4[16] = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [15] = 9};
static const uint8_t group_v6[16] = {0xff, 0x12, [15] = 9};

static void setup(void)
{
    fix_init(&fix);
    struct mr_init mr = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};
    mr.access = ACCESS_LOCAL_WRITE;
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    for (int i = 0; i < 3; i++) {
        qp[i] = fix_qp_of(&fix, QPT_UD);
        fix_bring(qp[i], QPS_RTS);
        for (uint32_t k = 0; k < 3; k++) {
            struct sge sge = {FIX_VA + 100 * k, 100, key};
            struct recv_wr wr = {.wr_id = 10u * (uint32_t)i + k, .num_sge = 1};
            cr_assert_eq(qp_post_recv(qp[i], &wr, &sge), 0);
        }
    }
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(mcast, .init = setup, .fini = teardown);

/* Returns the QPs that got a copy, one bit for each. */
static unsigned send(const uint8_t gid[16], uint8_t from, uint32_t src_qpn)
{
    struct rx_meta meta = {.src_gid = {[15] = from}};
    struct pkt p = {.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                    .migreq = true,
                    .pkey = PKEY_DEFAULT,
                    .dest_qpn = QPN_MULTICAST,
                    .deth = {.qkey = 0x1234, .src_qpn = src_qpn},
                    .payload = payload,
                    .payload_len = 20};
    unsigned got = 0;
    memcpy(meta.dst_gid, gid, 16);
    engine_rx(fix.e, &p, &meta, fix.now);
    while (engine_peek_completion(fix.e)) {
        struct completion c = fix_take(&fix);
        for (int i = 0; i < 3; i++) {
            if (c.qpn == qp_number(qp[i])) {
                cr_expect_not(got >> i & 1, "one copy each");
                got |= 1u << i;
            }
        }
        cr_expect_eq(c.byte_len, 60u);
    }
    return got;
}

Test(mcast, each_member_gets_one_copy)
{
    cr_expect_eq(send(group_v4, 2, 5), 0u, "nobody has joined");
    cr_expect_eq(mcast_attach(qp[0], group_v4), 0);
    cr_expect_eq(mcast_attach(qp[0], group_v4), 0, "joining twice counts once");
    cr_expect_eq(mcast_attach(qp[2], group_v4), 0);
    cr_expect_eq(mcast_attach(qp[1], other_v4), 0);
    cr_expect_eq(send(group_v4, 2, 5), 5u);
    cr_expect_eq(send(other_v4, 2, 5), 2u);
    cr_expect_eq(send(group_v6, 2, 5), 0u);
    cr_expect_eq(mcast_detach(qp[0], group_v4), 0);
    cr_expect_eq(mcast_detach(qp[0], group_v4), -ENOENT);
    cr_expect_eq(send(group_v4, 2, 5), 4u);
}

Test(mcast, the_sender_gets_no_copy_of_its_own)
{
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(mcast_attach(qp[i], group_v6), 0);
    }
    cr_expect_eq(send(group_v6, 1, qp_number(qp[1])), 5u, "but the device's other QPs do");
    cr_expect_eq(send(group_v6, 2, qp_number(qp[1])), 7u, "a QP of that number elsewhere is another one");
}

Test(mcast, each_member_checks_for_itself)
{
    struct qp_attr a = {.qkey = 99};
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(mcast_attach(qp[i], group_v4), 0);
    }
    cr_assert_eq(qp_modify(qp[0], &a, QPA_QKEY, NULL), 0);
    fix_bring(qp[1], QPS_ERR);
    cr_expect_eq(send(group_v4, 2, 5), 4u);
}

Test(mcast, other_services_have_no_groups)
{
    struct qp *rc = fix_qp(&fix);
    struct rx_meta meta = {.src_gid = {[15] = 2}};
    struct pkt p = {.opcode = OP_SERVICE_RC | OP_SEND_ONLY, .pkey = PKEY_DEFAULT, .dest_qpn = QPN_MULTICAST};
    cr_expect_eq(mcast_attach(rc, group_v4), -EINVAL);
    cr_expect_eq(mcast_detach(rc, group_v4), -EINVAL);
    cr_assert_eq(mcast_attach(qp[0], group_v4), 0);
    memcpy(meta.dst_gid, group_v4, 16);
    engine_rx(fix.e, &p, &meta, fix.now);
    cr_expect_null(engine_peek_completion(fix.e));
}

Test(mcast, multicast_addresses_are_recognized)
{
    uint8_t gid[16] = {[10] = 0xff, [11] = 0xff};
    for (unsigned first = 0; first < 256; first++) {
        gid[12] = (uint8_t)first;
        cr_expect_eq(mcast_attach(qp[0], gid) == 0, first >= 224 && first < 240, "%u", first);
    }
    memset(gid, 0, sizeof gid);
    for (unsigned first = 0; first < 256; first++) {
        gid[0] = (uint8_t)first;
        cr_expect_eq(mcast_attach(qp[0], gid) == 0, first == 255, "%u", first);
    }
    memset(gid, 0, sizeof gid);
    gid[12] = 224; /* not an IPv4-mapped address */
    cr_expect_eq(mcast_attach(qp[0], gid), -EINVAL);
}

Test(mcast, a_destroyed_qp_has_left)
{
    cr_assert_eq(mcast_attach(qp[0], group_v4), 0);
    cr_assert_eq(mcast_attach(qp[0], group_v6), 0);
    cr_assert_eq(mcast_attach(qp[1], group_v4), 0);
    qp_destroy(qp[0]);
    memset(fix.qpmem[0], 0xdb, 256);
    qp[0] = qp[2];
    cr_expect_eq(send(group_v4, 2, 5), 2u);
    cr_expect_eq(send(group_v6, 2, 5), 0u);
}

Test(mcast, memberships_are_limited_and_can_be_reused)
{
    uint8_t gid[16];
    memcpy(gid, group_v6, 16);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < fix.cfg.max_mcast; i++) {
            gid[14] = (uint8_t)(i >> 8);
            gid[15] = (uint8_t)i;
            cr_assert_eq(mcast_attach(qp[round], gid), 0, "%u", i);
        }
        cr_expect_eq(mcast_attach(qp[2], group_v4), -ENOMEM);
        cr_expect_eq(mcast_detach(qp[round], gid), 0);
        cr_expect_eq(mcast_attach(qp[2], group_v4), 0);
        cr_expect_eq(mcast_detach(qp[2], group_v4), 0);
        cr_expect_eq(mcast_attach(qp[round], gid), 0);
        qp_destroy(qp[round]);
    }
}
