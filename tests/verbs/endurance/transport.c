// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <stdio.h>

#include "tests/verbs/endurance/endurance.h"

const char *const transport_name[TRANSPORT_MAX] = {"RC", "SRQ", "XRC", "UC"};

static struct ibv_qp_cap caps(void)
{
    return (struct ibv_qp_cap){.max_send_wr = par.depth * 2,
                               .max_recv_wr = st.srq ? 0 : par.depth,
                               .max_send_sge = MAX_SGE,
                               .max_recv_sge = st.srq ? 0 : MAX_SGE,
                               .max_inline_data = 64};
}

/* Creates an XRC domain that no other process knows. */
static void domain_create(void)
{
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    struct ibv_srq_init_attr_ex init = {
        .attr = {.max_wr = par.depth, .max_sge = MAX_SGE},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
        .srq_type = IBV_SRQT_XRC,
        .pd = st.pd,
        .cq = st.cq,
    };

    if ((st.xrcd = ibv_open_xrcd(st.ctx, &domain)) == NULL)
        die("XRC domain");
    init.xrcd = st.xrcd;
    if ((st.srq = ibv_create_srq_ex(st.ctx, &init)) == NULL)
        die("XRC shared receive queue");
}

static void xrc_create(void)
{
    struct ibv_qp_init_attr_ex target = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD};
    struct ibv_qp_init_attr_ex sender = {
        .qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = st.pd, .send_cq = st.cq};

    domain_create();
    target.xrcd = st.xrcd;
    if ((st.target = ibv_create_qp_ex(st.ctx, &target)) == NULL)
        die("XRC target");
    sender.cap = caps();
    if ((st.qp = ibv_create_qp_ex(st.ctx, &sender)) == NULL)
        die("XRC initiator");
    st.inline_max = sender.cap.max_inline_data;
}

static void plain_create(void)
{
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = par.depth, .max_sge = MAX_SGE}};
    struct ibv_qp_init_attr init = {
        .send_cq = st.cq, .recv_cq = st.cq, .qp_type = par.transport == TRANSPORT_UC ? IBV_QPT_UC : IBV_QPT_RC};

    if (par.transport == TRANSPORT_SRQ && (st.srq = ibv_create_srq(st.pd, &shared)) == NULL)
        die("shared receive queue");
    init.cap = caps();
    init.srq = st.srq;
    if ((st.qp = ibv_create_qp(st.pd, &init)) == NULL)
        die("queue pair");
    st.inline_max = init.cap.max_inline_data;
}

void transport_create(int access)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = (unsigned)access & ~(unsigned)IBV_ACCESS_LOCAL_WRITE};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

    if (par.transport == TRANSPORT_XRC)
        xrc_create();
    else
        plain_create();
    if (ibv_modify_qp(st.qp, &attr, mask) != 0 || (st.target && ibv_modify_qp(st.target, &attr, mask) != 0))
        die("modify to INIT");
}

static enum ibv_mtu mtu_enum(uint32_t bytes)
{
    return bytes >= 4096   ? IBV_MTU_4096
           : bytes >= 2048 ? IBV_MTU_2048
           : bytes >= 1024 ? IBV_MTU_1024
           : bytes >= 512  ? IBV_MTU_512
                           : IBV_MTU_256;
}

/* Only what takes requests needs the attributes of a responder, only what sends them those of a requester. */
static void connect_one(struct ibv_qp *qp, uint32_t peer, bool sends, bool receives)
{
    bool reliable = par.transport != TRANSPORT_UC;
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_enum(par.mtu),
        .dest_qp_num = peer,
        .rq_psn = st.remote.psn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1,
                    .port_num = 1,
                    .grh = {.dgid = st.remote.gid, .sgid_index = (uint8_t)opt.gid_index, .hop_limit = 64}},
    };
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS,
        .timeout = (uint8_t)opt.timeout,
        .retry_cnt = (uint8_t)opt.retries,
        .rnr_retry = 7,
        .sq_psn = st.local.psn,
        .max_rd_atomic = 4,
    };
    int rtr_mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                   (reliable && receives ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
    int rts_mask = IBV_QP_STATE | IBV_QP_SQ_PSN | (reliable ? IBV_QP_TIMEOUT : 0) |
                   (reliable && sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0);

    if (ibv_modify_qp(qp, &rtr, rtr_mask) != 0)
        die("modify to RTR");
    if (ibv_modify_qp(qp, &rts, rts_mask) != 0)
        die("modify to RTS");
}

void transport_connect(void)
{
    connect_one(st.qp, st.remote.qpn, true, st.target == NULL);
    if (st.target)
        connect_one(st.target, st.remote.sender, false, true);
}

void transport_destroy(void)
{
    if (ibv_destroy_qp(st.qp) || (st.target && ibv_destroy_qp(st.target)) || (st.srq && ibv_destroy_srq(st.srq)) ||
        (st.xrcd && ibv_close_xrcd(st.xrcd)))
        die("destroy");
}
