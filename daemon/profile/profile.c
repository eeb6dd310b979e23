// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/profile/profile.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>

#include "daemon/core/base/wqe_queue.h"
#include "pumice/abi.h"

static const struct device_limits default_limits = {
    .vendor_id = 0xffffff, /* no vendor, as for other software devices */
    .vendor_part_id = 1,
    .cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                 IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
                 IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_XRC | IBV_DEVICE_MEM_MGT_EXTENSIONS | DEVICE_FLUSH_GLOBAL |
                 DEVICE_ATOMIC_WRITE,
    .max_mr_size = UINT64_MAX,
    .page_size_cap = ~UINT64_C(0xfff) & UINT32_MAX,
    .max_qp = DEVICE_MAX_QP,
    .max_qp_wr = DEVICE_MAX_QP_WR,
    .max_sge = ENGINE_MAX_SGE,
    .max_sge_rd = ENGINE_MAX_SGE,
    .max_inline = ENGINE_MAX_INLINE,
    .max_cq = DEVICE_MAX_CQ,
    .max_cqe = DEVICE_MAX_CQE,
    .max_mr = DEVICE_MAX_MR,
    .max_mw = DEVICE_MAX_MW,
    .max_pd = DEVICE_MAX_PD,
    .max_ah = 65536,
    .max_rd_atomic = DEVICE_MAX_RD_ATOMIC,
    .max_init_rd_atomic = DEVICE_MAX_RD_ATOMIC,
    .max_res_rd_atom = DEVICE_MAX_RD_ATOMIC * DEVICE_MAX_QP,
    .atomic_cap = IBV_ATOMIC_HCA,
    .max_srq = DEVICE_MAX_SRQ,
    .max_srq_wr = DEVICE_MAX_QP_WR,
    .max_srq_sge = ENGINE_MAX_SGE,
    .max_xrcd = DEVICE_MAX_XRCD,
    .max_mcast_grp = DEVICE_MAX_MCAST_GRP,
    .max_mcast_qp = DEVICE_MAX_MCAST_QP,
    .max_pkeys = 1,
    .ack_delay = 15,
    .max_dm_kb = 1024,
    .max_cq_period = UINT16_MAX,
    .max_msg = DEVICE_MAX_MSG,
    .port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
    .type_error = -EOPNOTSUPP,
};

/* The most that Pumice can do, where the default profile has less. 0: no limit, because the value is only reported. */
#define MOST_QP_WR QUEUE_MAX_WR
#define MOST_AH 0

const char *profile_name(enum profile_id id)
{
    return adapters[id].name;
}

/* Takes a value of a profile, if it has one. most: what Pumice can do; 0: any value. */
static void take(uint32_t *to, uint32_t from, uint32_t most)
{
    if (from == ADAPTER_NONE)
        *to = 0;
    else if (from)
        *to = most && from > most ? most : from;
}

static void take_counts(struct device_limits *l, const struct device_limits *from)
{
    take(&l->max_qp, from->max_qp, DEVICE_MAX_QP);
    take(&l->max_qp_wr, from->max_qp_wr, MOST_QP_WR);
    l->max_queue_wr = l->max_qp_wr;
    take(&l->max_queue_wr, from->max_queue_wr, MOST_QP_WR);
    take(&l->max_sge, from->max_sge, ENGINE_MAX_SGE);
    take(&l->max_sge_rd, from->max_sge_rd, ENGINE_MAX_SGE);
    take(&l->max_inline, from->max_inline, ENGINE_MAX_INLINE);
    take(&l->max_cq, from->max_cq, DEVICE_MAX_CQ);
    take(&l->max_cqe, from->max_cqe, DEVICE_MAX_CQE);
    take(&l->max_mr, from->max_mr, DEVICE_MAX_MR);
    take(&l->max_mw, from->max_mw, DEVICE_MAX_MW);
    take(&l->max_pd, from->max_pd, DEVICE_MAX_PD);
    take(&l->max_ah, from->max_ah, MOST_AH);
    take(&l->max_rd_atomic, from->max_rd_atomic, DEVICE_MAX_RD_ATOMIC);
    take(&l->max_init_rd_atomic, from->max_init_rd_atomic, DEVICE_MAX_RD_ATOMIC);
    take(&l->max_srq, from->max_srq, DEVICE_MAX_SRQ);
    take(&l->max_srq_wr, from->max_srq_wr, MOST_QP_WR);
    take(&l->max_srq_sge, from->max_srq_sge, ENGINE_MAX_SGE);
    take(&l->max_mcast_qp, from->max_mcast_qp, DEVICE_MAX_MCAST_QP);
    take(&l->max_dm_kb, from->max_dm_kb, default_limits.max_dm_kb);
    take(&l->max_cq_period, from->max_cq_period, UINT16_MAX);
    take(&l->max_msg, from->max_msg, DEVICE_MAX_MSG);
    l->max_res_rd_atom = l->max_rd_atomic * l->max_qp;
    take(&l->max_res_rd_atom, from->max_res_rd_atom, 0);
}

static void take_identity(struct device_limits *l, const struct device_limits *from)
{
    take(&l->vendor_id, from->vendor_id, 0);
    take(&l->vendor_part_id, from->vendor_part_id, 0);
    take(&l->hw_ver, from->hw_ver, 0);
    take(&l->max_pkeys, from->max_pkeys, 0);
    take(&l->ack_delay, from->ack_delay, 0);
    take(&l->atomic_cap, from->atomic_cap, 0);
    take(&l->port_cap_flags, from->port_cap_flags, 0);
    if (from->max_mr_size)
        l->max_mr_size = from->max_mr_size;
    if (from->page_size_cap)
        l->page_size_cap = from->page_size_cap;
    /* A device of Pumice does not have the adapters' features for other protocols, such as raw packets. */
    if (from->cap_flags)
        l->cap_flags &= from->cap_flags;
}

/* Clears the limits of what the device does not have. */
static void leave_out(struct device_limits *l)
{
    if (l->absent & PM_ABSENT_SRQ)
        l->max_srq = l->max_srq_wr = l->max_srq_sge = 0;
    if (l->absent & PM_ABSENT_XRC)
        l->max_xrcd = 0;
    if (l->absent & PM_ABSENT_MCAST)
        l->max_mcast_grp = l->max_mcast_qp = 0;
    if (l->absent & PM_ABSENT_DM)
        l->max_dm_kb = 0;
    if (l->absent & PM_ABSENT_CQ_MODERATION)
        l->max_cq_period = 0;
    if (l->absent & PM_ABSENT_ATOMICS)
        l->atomic_cap = IBV_ATOMIC_NONE;
}

void profile_limits(enum profile_id id, struct device_limits *l)
{
    const struct device_limits *from = &adapters[id].limits;

    *l = default_limits;
    take_identity(l, from);
    take_counts(l, from);
    l->odp_rc = from->odp_rc;
    l->odp_uc = from->odp_uc;
    l->odp_ud = from->odp_ud;
    l->odp_xrc = from->odp_xrc;
    l->gid_tbl_len = from->gid_tbl_len;
    l->gid_v1 = from->gid_v1;
    l->absent = from->absent;
    l->queue_rule = from->queue_rule;
    l->tm_strict = from->tm_strict;
    if (from->type_error)
        l->type_error = from->type_error;
    leave_out(l);
}

const struct tm_profile *profile_tag_matching(const struct device_limits *l, enum tm_choice choice,
                                              enum tm_profile_id *id)
{
    if (choice == TM_CHOICE_AUTO && l->absent & PM_ABSENT_TM)
        return NULL;
    bool strict = choice == TM_CHOICE_AUTO ? l->tm_strict : choice == TM_CHOICE_MLX5;
    *id = strict ? TM_PROFILE_MLX5 : TM_PROFILE_GENEROUS;
    return tm_profile(*id);
}

bool profile_has_type(const struct device_limits *l, uint32_t qp_type)
{
    switch (qp_type) {
    case IBV_QPT_UC:
        return !(l->absent & PM_ABSENT_UC);
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return !(l->absent & PM_ABSENT_XRC);
    default:
        return true;
    }
}
