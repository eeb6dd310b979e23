// SPDX-License-Identifier: BSD-2-Clause
/* The attributes that a QP needs for its next state, as ib_cm_init_qp_attr and rdma_init_qp_attr of Linux give them. */
#include <errno.h>
#include <string.h>

#include "daemon/core/cm/cm_id.h"

#define PORT 1 /* each device has one */

/* IDs without a connection, and those of datagrams: QPs only need INIT, whatever state is asked for. */
static void write_plain(const struct cm_id *id, struct cm_qp_attr *out)
{
    out->mask = QPA_STATE | QPA_PKEY_INDEX | QPA_PORT;
    out->attr.port = PORT;
    if (id->qp_type == QPT_UD) {
        out->mask |= QPA_QKEY;
        out->attr.qkey = id->qkey ? id->qkey : CM_UDP_QKEY;
    } else {
        out->mask |= QPA_ACCESS_FLAGS; /* none yet */
    }
}

static void write_init(const struct cm_id *id, struct cm_qp_attr *out)
{
    out->mask = QPA_STATE | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX | QPA_PORT;
    out->attr.port = PORT;
    out->attr.access = ACCESS_REMOTE_WRITE;
    if (id->responder_resources)
        out->attr.access |= ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
}

static void write_rtr(const struct cm_id *id, struct cm_qp_attr *out)
{
    struct qp_attr *a = &out->attr;
    out->mask = QPA_STATE | QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN;
    memcpy(a->av.dgid, id->dst.gid, sizeof(a->av.dgid));
    a->av.sgid_index = id->route.sgid_index;
    a->av.traffic_class = id->route.traffic_class;
    a->av.hop_limit = id->route.hop_limit;
    a->port = PORT; /* of the address handle */
    a->path_mtu = id->route.path_mtu;
    a->dest_qpn = id->remote_qpn;
    a->rq_psn = id->rq_psn;
    if (id->qp_type == QPT_RC || id->qp_type == QPT_XRC_RECV) {
        out->mask |= QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER;
        a->max_dest_rd_atomic = id->responder_resources;
        a->min_rnr_timer = 0;
    }
}

static void write_rts(const struct cm_id *id, struct cm_qp_attr *out)
{
    struct qp_attr *a = &out->attr;
    out->mask = QPA_STATE | QPA_SQ_PSN;
    a->sq_psn = id->sq_psn;
    if (id->qp_type == QPT_RC || id->qp_type == QPT_XRC_SEND) {
        out->mask |= QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC;
        a->retry_cnt = id->retry_count;
        a->rnr_retry = id->rnr_retry_count;
        a->max_rd_atomic = id->initiator_depth;
    }
    if (id->qp_type == QPT_RC || id->qp_type == QPT_XRC_SEND || id->qp_type == QPT_XRC_RECV) {
        out->mask |= QPA_TIMEOUT;
        a->timeout = id->ack_timeout_set ? id->ack_timeout : id->ack_timeout_code;
    }
}

int cm_init_qp_attr(const struct cm_id *id, uint8_t qp_state, struct cm_qp_attr *out)
{
    bool has_peer = id->state == CM_ID_REQ_RECEIVED || id->state == CM_ID_REP_SENT || id->state == CM_ID_REP_RECEIVED ||
                    id->state == CM_ID_ESTABLISHED;
    memset(out, 0, sizeof(*out));
    out->attr.state = qp_state;
    if (id->route.device == CM_NO_DEVICE)
        return -EINVAL;
    if (!id->has_comm || id->qp_type == QPT_UD) {
        write_plain(id, out);
        return 0;
    }
    if (qp_state == QPS_INIT && (has_peer || id->state == CM_ID_REQ_SENT))
        write_init(id, out);
    else if (qp_state == QPS_RTR && has_peer)
        write_rtr(id, out);
    else if (qp_state == QPS_RTS && has_peer)
        write_rts(id, out);
    else
        return -EINVAL;
    return 0;
}
