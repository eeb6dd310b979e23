// SPDX-License-Identifier: BSD-2-Clause
/* The attributes that connection management gives to QPs. */
#include "tests/unit/core/cm/cm_fixture.h"

TestSuite(qp_attr, .init = net_setup, .fini = net_teardown);

static const struct qp_attr *get(const struct cm_id *id, uint8_t state, uint32_t mask)
{
    static struct cm_qp_attr out;
    cr_assert_eq(cm_init_qp_attr(id, state, &out), 0);
    cr_assert_eq(out.mask, mask, "mask %#x, expected %#x", out.mask, mask);
    cr_assert_eq(out.attr.state, state);
    return &out.attr;
}
static int refused(const struct cm_id *id, uint8_t state)
{
    struct cm_qp_attr out;
    return cm_init_qp_attr(id, state, &out);
}

#define PLAIN (QPA_STATE | QPA_PKEY_INDEX | QPA_PORT)
#define RTR (QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN)
#define RTS (QPA_STATE | QPA_SQ_PSN)

Test(qp_attr, before_the_connection)
{
    struct cm_id *id = routed(A, B, CM_PS_TCP, QPT_RC), *wild = new_id(A, CM_PS_TCP, QPT_RC);
    const struct qp_attr *a = get(id, QPS_INIT, PLAIN | QPA_ACCESS_FLAGS);
    cr_assert_eq(a->access, 0);
    cr_assert_eq(a->port, 1);
    cr_assert_eq(refused(wild, QPS_INIT), -EINVAL);
}

Test(qp_attr, rc)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(0x222);
    param.responder_resources = 2;
    param.initiator_depth = 1;
    param.rnr_retry_count = 5;
    get(p.active, QPS_INIT, PLAIN | QPA_ACCESS_FLAGS);
    cr_assert_eq(refused(p.active, QPS_RTR), -EINVAL);
    const struct qp_attr *a = get(p.passive, QPS_RTR, RTR | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER);
    cr_assert_eq(a->max_dest_rd_atomic, 3);
    cr_assert_eq(cm_accept(p.passive, &param, NULL, net.now), 0);
    settle();

    a = get(p.passive, QPS_INIT, PLAIN | QPA_ACCESS_FLAGS);
    cr_assert_eq(a->access, ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC);
    a = get(p.passive, QPS_RTR, RTR | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER);
    cr_assert_eq(a->max_dest_rd_atomic, 2);
    cr_assert_eq(a->dest_qpn, 0x111);
    cr_assert_eq(a->path_mtu, 3);
    cr_assert_arr_eq(a->av.dgid, A->addr.gid, 16);
    cr_assert_eq(a->av.hop_limit, 64);
    uint32_t passive_rq = a->rq_psn;
    a = get(p.passive, QPS_RTS, RTS | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC);
    cr_assert_eq(a->max_rd_atomic, 1);
    cr_assert_eq(a->timeout, 19);
    cr_assert_eq(a->retry_cnt, 7);
    cr_assert_eq(a->rnr_retry, 6);
    uint32_t passive_sq = a->sq_psn;

    a = get(p.active, QPS_RTR, RTR | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER);
    cr_assert_eq(a->max_dest_rd_atomic, 1);
    cr_assert_eq(a->dest_qpn, 0x222);
    cr_assert_eq(a->rq_psn, passive_sq);
    a = get(p.active, QPS_RTS, RTS | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC);
    cr_assert_eq(a->max_rd_atomic, 2);
    cr_assert_eq(a->sq_psn, passive_rq);
    cr_assert_neq(a->sq_psn, passive_sq);
    cr_assert_eq(a->rnr_retry, 5);
    cr_assert_eq(a->timeout, 19);
    cr_assert_eq(refused(p.active, QPS_ERR), -EINVAL);
    cm_reject(p.active, 0, NULL, 0, net.now);
    cr_assert_eq(refused(p.active, QPS_INIT), -EINVAL);
}

Test(qp_attr, uc_has_no_retries)
{
    struct pair p = request(CM_PS_IB, QPT_UC);
    struct cm_conn_param param = param_of(0x222);
    cm_accept(p.passive, &param, NULL, net.now);
    get(p.passive, QPS_RTR, RTR);
    get(p.passive, QPS_RTS, RTS);
    settle();
    get(p.active, QPS_RTS, RTS);
}

Test(qp_attr, xrc_has_half_of_each_side)
{
    struct pair p = request(CM_PS_IB, QPT_XRC_SEND);
    struct cm_conn_param param = param_of(0x222);
    struct cm_id_info info;
    cm_id_query(p.passive, &info);
    cr_assert_eq(info.qp_type, QPT_XRC_RECV);
    cr_assert_eq(net.last[CM_REQ & 0x1f].req.retry_count, 0);
    cm_accept(p.passive, &param, NULL, net.now);
    settle();
    cr_assert_eq(net.last[CM_REP & 0x1f].rep.local_qpn, 0);
    cr_assert(net.last[CM_REP & 0x1f].rep.srq);
    cr_assert_eq(next_event(A, CM_EVENT_CONNECT_RESPONSE).param.qp_num, 0x222);
    get(p.passive, QPS_RTR, RTR | QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER);
    get(p.passive, QPS_RTS, RTS | QPA_TIMEOUT);
    cr_assert_eq(get(p.active, QPS_RTR, RTR)->dest_qpn, 0x222);
    get(p.active, QPS_RTS, RTS | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC);
    cm_accept(p.active, NULL, NULL, net.now);
    settle();
    next_event(B, CM_EVENT_ESTABLISHED);
    cm_id_destroy(p.passive, net.now); /* the target may serve others: the initiator disconnects */
    settle();
    no_event(A);
    cm_disconnect(p.active, net.now);
    settle();
    next_event(A, CM_EVENT_DISCONNECTED);
}

Test(qp_attr, ud_has_a_qkey_in_each_state)
{
    struct cm_id *id = routed(A, B, CM_PS_UDP, QPT_UD);
    cr_assert_eq(get(id, QPS_INIT, PLAIN | QPA_QKEY)->qkey, 0x01234567);
    get(id, QPS_RTS, PLAIN | QPA_QKEY);
}

Test(qp_attr, the_program_sets_the_ack_timeout)
{
    struct pair p = {.listener = listen_on(B, CM_PS_TCP, QPT_RC)};
    struct cm_conn_param param = param_of(1);
    p.active = routed(A, B, CM_PS_TCP, QPT_RC);
    cr_assert_eq(cm_set_option(p.active, CM_OPTION_ACK_TIMEOUT, 32), -EINVAL);
    cr_assert_eq(cm_set_option(p.active, CM_OPTION_ACK_TIMEOUT, 14), 0);
    cm_connect(p.active, &param, NULL, net.now);
    settle();
    cm_accept(requested(B), &param, NULL, net.now);
    settle();
    cr_assert_eq(get(p.active, QPS_RTS, RTS | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC)->timeout,
                 14);
}
