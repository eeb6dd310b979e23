// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/control/qp_modify.h"

#include <errno.h>

#include "daemon/core/control/qp_life.h"
#include "daemon/core/qp/error_report.h"
#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/qp_check.h"
#include "daemon/core/qp/qp_fail.h"
#include "daemon/core/qp/qp_traffic.h"
#include "daemon/core/qp/resource.h"
#include "daemon/core/requester/retire.h"

enum type_column { /* of struct transition */
                   RC,
                   UC,
                   UD,
                   XRC_SEND, /* a requester's attributes */
                   XRC_RECV, /* a responder's attributes */
                   TYPES,
};
struct transition {
    uint8_t from, to;
    struct masks {
        uint32_t required, optional;
    } of[TYPES];
};

/* Sets of attributes that go together. */
#define RIGHTS (QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS)
#define PATH (QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN)
#define RESPONDS (QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER)
#define RETRIES (QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY)
#define MIGRATION (QPA_PATH_MIG_STATE | QPA_ALT_PATH)
#define RUNNING (QPA_CUR_STATE | QPA_ACCESS_FLAGS | MIGRATION)
#define DRAINED (QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS | QPA_AV | MIGRATION)

/* clang-format off */
static const struct transition transitions[] = {
    /* not listed: RESET and ERR can follow any state. They need no attribute, and allow only QPA_CUR_STATE */
    {QPS_RESET, QPS_INIT, {
        [RC]       = {RIGHTS,                                        0},
        [UC]       = {RIGHTS,                                        0},
        [UD]       = {QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY,          0},
        [XRC_SEND] = {RIGHTS,                                        0},
        [XRC_RECV] = {RIGHTS,                                        0}}},
    {QPS_INIT, QPS_INIT, {
        [RC]       = {0,                                             RIGHTS},
        [UC]       = {0,                                             RIGHTS},
        [UD]       = {0,                                             QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY},
        [XRC_SEND] = {0,                                             RIGHTS},
        [XRC_RECV] = {0,                                             RIGHTS}}},
    {QPS_INIT, QPS_RTR, {
        [RC]       = {PATH | RESPONDS,                               QPA_ACCESS_FLAGS | QPA_PKEY_INDEX | QPA_ALT_PATH},
        [UC]       = {PATH,                                          QPA_ACCESS_FLAGS | QPA_PKEY_INDEX | QPA_ALT_PATH},
        [UD]       = {0,                                             QPA_PKEY_INDEX | QPA_QKEY},
        [XRC_SEND] = {PATH,                                          QPA_ACCESS_FLAGS | QPA_PKEY_INDEX | QPA_ALT_PATH},
        [XRC_RECV] = {PATH | RESPONDS,                               QPA_ACCESS_FLAGS | QPA_PKEY_INDEX | QPA_ALT_PATH}}},
    {QPS_RTR, QPS_RTS, {
        [RC]       = {RETRIES | QPA_SQ_PSN | QPA_MAX_RD_ATOMIC,      RUNNING | QPA_MIN_RNR_TIMER},
        [UC]       = {QPA_SQ_PSN,                                    RUNNING},
        [UD]       = {QPA_SQ_PSN,                                    QPA_CUR_STATE | QPA_QKEY},
        [XRC_SEND] = {RETRIES | QPA_SQ_PSN | QPA_MAX_RD_ATOMIC,      RUNNING},
        [XRC_RECV] = {QPA_TIMEOUT | QPA_SQ_PSN,                      RUNNING | QPA_MIN_RNR_TIMER}}},
    {QPS_RTS, QPS_RTS, {
        [RC]       = {0,                                             RUNNING | QPA_MIN_RNR_TIMER},
        [UC]       = {0,                                             RUNNING},
        [UD]       = {0,                                             QPA_CUR_STATE | QPA_QKEY},
        [XRC_SEND] = {0,                                             RUNNING},
        [XRC_RECV] = {0,                                             RUNNING | QPA_MIN_RNR_TIMER}}},
    {QPS_RTS, QPS_SQD, {
        [RC]       = {0,                                             QPA_EN_SQD_ASYNC_NOTIFY},
        [UC]       = {0,                                             QPA_EN_SQD_ASYNC_NOTIFY},
        [UD]       = {0,                                             QPA_EN_SQD_ASYNC_NOTIFY},
        [XRC_SEND] = {0,                                             QPA_EN_SQD_ASYNC_NOTIFY},
        [XRC_RECV] = {0,                                             QPA_EN_SQD_ASYNC_NOTIFY}}},
    {QPS_SQD, QPS_RTS, {
        [RC]       = {0,                                             RUNNING | QPA_MIN_RNR_TIMER},
        [UC]       = {0,                                             RUNNING},
        [UD]       = {0,                                             QPA_CUR_STATE | QPA_QKEY},
        [XRC_SEND] = {0,                                             RUNNING},
        [XRC_RECV] = {0,                                             RUNNING | QPA_MIN_RNR_TIMER}}},
    {QPS_SQD, QPS_SQD, {
        [RC]       = {0,                                             DRAINED | RETRIES | QPA_MAX_RD_ATOMIC | RESPONDS},
        [UC]       = {0,                                             DRAINED},
        [UD]       = {0,                                             QPA_PKEY_INDEX | QPA_QKEY},
        [XRC_SEND] = {0,                                             DRAINED | RETRIES | QPA_MAX_RD_ATOMIC},
        [XRC_RECV] = {0,                                             DRAINED | QPA_TIMEOUT | RESPONDS}}},
    {QPS_SQE, QPS_RTS, {/* no other type has the state SQE */
        [UC]       = {0,                                             QPA_CUR_STATE | QPA_ACCESS_FLAGS},
        [UD]       = {0,                                             QPA_CUR_STATE | QPA_QKEY}}},
};
/* clang-format on */

static const struct masks *find_transition(uint8_t type, uint8_t from, uint8_t to)
{
    static const struct masks always = {0, QPA_CUR_STATE};
    static const uint8_t column[] = {
        [QPT_RC] = RC, [QPT_UC] = UC, [QPT_UD] = UD, [QPT_XRC_SEND] = XRC_SEND, [QPT_XRC_RECV] = XRC_RECV};
    if (to == QPS_RESET || to == QPS_ERR)
        return &always;
    for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++)
        if (transitions[i].from == from && transitions[i].to == to)
            return &transitions[i].of[column[type]];
    return NULL;
}

/* Attributes of the half that an XRC QP does not have. The caller may give them, and they are ignored: programs give
 * the attributes of both halves to either QP, and Linux allows that. */
static uint32_t ignored_attributes(uint8_t type)
{
    switch (type) {
    case QPT_XRC_SEND:
        return QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER;
    case QPT_XRC_RECV:
        return QPA_MAX_RD_ATOMIC | QPA_RETRY_CNT | QPA_RNR_RETRY;
    default:
        return 0;
    }
}

/* Checks each attribute's own bounds. Returns a text about the first wrong one, or NULL. */
static const char *check_values(const struct qp *qp, const struct qp_attr *a, uint32_t mask)
{
    const struct engine_config *cfg = &qp->e->cfg;
    uint32_t grants = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC |
                      ACCESS_MW_BIND | ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT;
    if (mask & QPA_CUR_STATE && a->cur_state != qp->attr.state)
        return "cur_qp_state is not the QP's state";
    if (mask & QPA_PKEY_INDEX && a->pkey_index != 0)
        return "pkey_index: the table has one entry";
    if (mask & QPA_PORT && a->port != 1)
        return "port_num: the device has one port, 1";
    if (mask & QPA_ACCESS_FLAGS && a->access & ~grants)
        return "qp_access_flags: unknown flags";
    if (mask & QPA_PATH_MTU && (a->path_mtu < 1 || a->path_mtu > cfg->active_mtu))
        return "path_mtu is beyond the port's active_mtu";
    if (mask & QPA_DEST_QPN && a->dest_qpn > QPN_MASK)
        return "dest_qp_num has more than 24 bits";
    if (mask & QPA_MAX_RD_ATOMIC && a->max_rd_atomic > ENGINE_MAX_RD_ATOMIC)
        return "max_rd_atomic is beyond the device's limit";
    if (mask & QPA_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic > ENGINE_MAX_RD_ATOMIC)
        return "max_dest_rd_atomic is beyond the device's limit";
    if (mask & QPA_MIN_RNR_TIMER && a->min_rnr_timer > 31)
        return "min_rnr_timer is beyond 31";
    if (mask & QPA_TIMEOUT && a->timeout > 31)
        return "timeout is beyond 31";
    if (mask & QPA_RETRY_CNT && a->retry_cnt > 7)
        return "retry_cnt is beyond 7";
    if (mask & QPA_RNR_RETRY && a->rnr_retry > 7)
        return "rnr_retry is beyond 7";
    if (mask & QPA_ALT_PATH)
        return "alternate paths are not supported";
    if (mask & QPA_AV && a->av.sgid_index >= cfg->num_gids)
        return "sgid_index is beyond the GID table";
    return NULL;
}

static const char *check(const struct qp *qp, const struct qp_attr *a, uint32_t mask, uint8_t to)
{
    const struct masks *t = find_transition(qp->type, qp->attr.state, to);
    if (!t)
        return "no such transition of the QP's state";
    if ((mask & t->required) != t->required)
        return "an attribute that this transition needs is missing";
    if (mask & ~(t->required | t->optional | QPA_STATE))
        return "an attribute that this transition does not allow was given";
    return check_values(qp, a, mask);
}

/* Copies the attributes that the mask names. PSNs are cut to 24 bits, as hardware does. */
static void assign(struct qp_attr *to, const struct qp_attr *a, uint32_t mask)
{
    if (mask & QPA_EN_SQD_ASYNC_NOTIFY)
        to->sqd_async_notify = a->sqd_async_notify;
    if (mask & QPA_ACCESS_FLAGS)
        to->access = a->access;
    if (mask & QPA_PKEY_INDEX)
        to->pkey_index = a->pkey_index;
    if (mask & QPA_PORT)
        to->port = a->port;
    if (mask & QPA_AV)
        to->av = a->av;
    if (mask & QPA_PATH_MTU)
        to->path_mtu = a->path_mtu;
    if (mask & QPA_TIMEOUT)
        to->timeout = a->timeout;
    if (mask & QPA_RETRY_CNT)
        to->retry_cnt = a->retry_cnt;
    if (mask & QPA_RNR_RETRY)
        to->rnr_retry = a->rnr_retry;
    if (mask & QPA_RQ_PSN)
        to->rq_psn = a->rq_psn & PSN_MASK;
    if (mask & QPA_SQ_PSN)
        to->sq_psn = a->sq_psn & PSN_MASK;
    if (mask & QPA_MAX_RD_ATOMIC)
        to->max_rd_atomic = a->max_rd_atomic;
    if (mask & QPA_MAX_DEST_RD_ATOMIC)
        to->max_dest_rd_atomic = a->max_dest_rd_atomic;
    if (mask & QPA_MIN_RNR_TIMER)
        to->min_rnr_timer = a->min_rnr_timer;
    if (mask & QPA_DEST_QPN)
        to->dest_qpn = a->dest_qpn;
    if (mask & QPA_QKEY)
        to->qkey = a->qkey;
}

/* The QP has a new destination, so it changes to the window of that address. Its bytes in flight move with it. */
static void connect_peer(struct qp *qp)
{
    if (qp->peer) {
        uint64_t inflight = qp->req->inflight;
        sched_stop_waiting(&qp->sched);
        qp_release(qp, inflight);
        peer_window_put(qp->peer);
        qp->peer = peer_window_get(&qp->e->peers, qp->attr.av.dgid);
        qp_charge(qp, inflight);
    } else {
        qp->peer = peer_window_get(&qp->e->peers, qp->attr.av.dgid);
    }
}

/* The requester and the responder follow the new state and the new attributes. Those of a QP without traffic do so when
 * they are set up (qp_traffic_begin). */
static void apply(struct qp *qp, uint8_t from, uint32_t mask)
{
    uint8_t to = qp->attr.state;
    if (from == QPS_INIT && to == QPS_RTR)
        qp_start_responder(qp);
    if (from == QPS_RTR && to == QPS_RTS)
        qp_start_requester(qp);
    if (mask & QPA_MAX_DEST_RD_ATOMIC)
        resp_set_resources(qp, qp->attr.max_dest_rd_atomic);
    if (mask & QPA_RETRY_CNT)
        qp->req->retries_left = qp->attr.retry_cnt;
    if (mask & QPA_RNR_RETRY)
        qp->req->rnr_left = qp->attr.rnr_retry;
    if (to == QPS_SQD && from != QPS_SQD) {
        if (!(mask & QPA_EN_SQD_ASYNC_NOTIFY))
            qp->attr.sqd_async_notify = false; /* the program must ask for the event each time */
        qp->sq_drained_reported = false;
        req_drained(qp);
    }
    qp_schedule(qp);
}

int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask, const char **why)
{
    uint8_t from = qp->attr.state;
    uint8_t to = mask & QPA_STATE ? attr->state : from;
    mask &= ~ignored_attributes(qp->type);
    const char *wrong = check(qp, attr, mask, to);
    if (why)
        *why = wrong;
    if (wrong)
        return -EINVAL;
    if (to == QPS_RESET) {
        qp_reset(qp);
        return 0;
    }
    if (to > QPS_RTS)
        qp_wake(qp);
    assign(&qp->attr, attr, mask);
    if (to == QPS_ERR) {
        qp->resp->closed = qp->resp->closed || (from >= QPS_RTR && from != QPS_ERR);
        qp_fail(qp);
        return 0;
    }
    qp->attr.state = to;
    if (from == QPS_SQE)
        report_forget(qp);
    if (mask & QPA_AV)
        connect_peer(qp);
    if (from == QPS_INIT && to == QPS_RTR) {
        if (qp->type == QPT_UD)
            /* The port's MTU, because the path of a datagram is not known before it is sent. */
            qp->attr.path_mtu = qp->e->cfg.active_mtu;
        qp->mtu = 128u << qp->attr.path_mtu;
    }
    if (qp->awake)
        apply(qp, from, mask);
    QP_CHECK(qp);
    return 0;
}
