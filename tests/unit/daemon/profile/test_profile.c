// SPDX-License-Identifier: BSD-2-Clause
/* The profiles of devices: their limits, and what the daemon refuses of a client that does not keep to them. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <infiniband/verbs.h>
#include <limits.h>

#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;

Test(profile, no_limit_is_above_those_of_pumice)
{
    for (int id = 0; id < PROFILES; id++) {
        struct device_limits l;

        profile_limits((enum profile_id)id, &l);
        cr_expect_leq(l.max_qp, DEVICE_MAX_QP, "%s", profile_name((enum profile_id)id));
        cr_expect(l.max_qp_wr <= l.max_queue_wr && l.max_queue_wr <= 32768u);
        cr_expect_leq(l.max_srq_wr, 32768u);
        cr_expect(l.max_sge <= ENGINE_MAX_SGE && l.max_srq_sge <= ENGINE_MAX_SGE);
        cr_expect_leq(l.max_inline, ENGINE_MAX_INLINE);
        cr_expect(l.max_rd_atomic <= ENGINE_MAX_RD_ATOMIC && l.max_init_rd_atomic <= ENGINE_MAX_RD_ATOMIC);
        cr_expect(l.max_cq <= DEVICE_MAX_CQ && l.max_cqe <= DEVICE_MAX_CQE);
        cr_expect(l.max_mr <= DEVICE_MAX_MR && l.max_mw <= DEVICE_MAX_MW && l.max_pd <= DEVICE_MAX_PD);
        cr_expect(l.max_srq <= DEVICE_MAX_SRQ && l.max_xrcd <= DEVICE_MAX_XRCD);
        cr_expect(l.max_mcast_grp <= DEVICE_MAX_MCAST_GRP && l.max_mcast_qp <= DEVICE_MAX_MCAST_QP);
        cr_expect_leq(l.max_res_rd_atom, (uint32_t)INT_MAX);
    }
}

Test(profile, limits_of_what_is_absent_are_zero)
{
    for (int id = 0; id < PROFILES; id++) {
        struct device_limits l;

        profile_limits((enum profile_id)id, &l);
        cr_expect_eq(l.max_srq == 0, !!(l.absent & PM_ABSENT_SRQ));
        cr_expect_eq(l.max_xrcd == 0, !!(l.absent & PM_ABSENT_XRC));
        cr_expect_eq(l.max_mcast_grp == 0, !!(l.absent & PM_ABSENT_MCAST));
        cr_expect_eq(l.max_dm_kb == 0, !!(l.absent & PM_ABSENT_DM));
        cr_expect_eq(l.atomic_cap == IBV_ATOMIC_NONE, !!(l.absent & PM_ABSENT_ATOMICS));
        cr_expect_eq(!(l.cap_flags & IBV_DEVICE_XRC), !!(l.absent & PM_ABSENT_XRC));
        cr_expect_eq(l.absent & PM_ABSENT_FLUSH ? l.cap_flags >> 38 : 0, 0u);
    }
}

Test(profile, tag_matching_follows_the_profile_or_its_own_option)
{
    struct device_limits l;
    enum tm_profile_id id;

    profile_limits(PROFILE_DEFAULT, &l);
    cr_assert(profile_tag_matching(&l, TM_CHOICE_AUTO, &id) && id == TM_PROFILE_GENEROUS);
    cr_assert(profile_tag_matching(&l, TM_CHOICE_MLX5, &id) && id == TM_PROFILE_MLX5);
    profile_limits(PROFILE_CONNECTX_6, &l);
    cr_assert(profile_tag_matching(&l, TM_CHOICE_AUTO, &id) && id == TM_PROFILE_MLX5);
    cr_assert(profile_tag_matching(&l, TM_CHOICE_GENEROUS, &id) && id == TM_PROFILE_GENEROUS);
    profile_limits(PROFILE_E810, &l);
    cr_assert_null(profile_tag_matching(&l, TM_CHOICE_AUTO, &id));
    cr_assert(profile_tag_matching(&l, TM_CHOICE_MLX5, &id) && id == TM_PROFILE_MLX5);
}

/* A client may leave out the checks of the library. */
Test(profile, the_daemon_itself_refuses)
{
    struct fixture_cq cq;

    cr_assert(fixture_start(&f));
    f.settings.profile = PROFILE_E810;
    profile_limits(PROFILE_E810, &f.device->limits);
    struct session *s = fixture_session(&f);
    uint32_t pd = fixture_pd(&f, s);
    cr_assert_eq(fixture_cq(&f, s, 8, 0, &cq), 0);
    const struct pm_create_qp_req good = {.pd = pd,
                                          .send_cq = cq.rep.handle,
                                          .recv_cq = cq.rep.handle,
                                          .type = IBV_QPT_RC,
                                          .max_send_wr = 4063,
                                          .max_recv_wr = 1,
                                          .max_send_sge = 13,
                                          .max_recv_sge = 13,
                                          .max_inline = 101};
    struct pm_create_qp_req bad[6] = {good, good, good, good, good, good};
    struct pm_create_srq_req srq = {.pd = pd, .max_wr = 1, .max_sge = 1};
    struct pm_open_xrcd_req xrcd = {.oflags = 0100};
    struct pm_reg_mr_req mr = {.pd = pd, .va = (uintptr_t)&f, .length = 1, .access = IBV_ACCESS_ON_DEMAND};

    bad[0].max_send_wr = 32769;
    bad[1].max_send_sge++;
    bad[2].max_recv_sge++;
    bad[3].max_inline++;
    bad[4].type = IBV_QPT_UC;
    bad[5].type = IBV_QPT_XRC_SEND;
    for (int i = 0; i < 6; i++)
        cr_expect_eq(fixture_call(&f, s, PM_OP_CREATE_QP, &bad[i], sizeof(bad[i]), NULL, 0),
                     i < 4 ? -EINVAL : -EOPNOTSUPP, "%d", i);
    cr_expect_eq(fixture_call(&f, s, PM_OP_CREATE_QP, &good, sizeof(good), NULL, 0), 0);
    fixture_close_fds(&f);
    cr_expect_eq(fixture_call(&f, s, PM_OP_CREATE_SRQ, &srq, sizeof(srq), NULL, 0), -EOPNOTSUPP);
    cr_expect_eq(fixture_call(&f, s, PM_OP_OPEN_XRCD, &xrcd, sizeof(xrcd), NULL, 0), -EOPNOTSUPP);
    cr_expect_eq(fixture_call(&f, s, PM_OP_REG_MR, &mr, sizeof(mr), NULL, 0), -EOPNOTSUPP);
    fixture_end(&f);
}
