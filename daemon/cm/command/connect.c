// SPDX-License-Identifier: BSD-2-Clause
/* Connecting, accepting and disconnecting. */
#include <errno.h>
#include <string.h>

#include "daemon/cm/command/command.h"
#include "daemon/cm/host/ucma_event.h"
#include "daemon/core/cm/cm.h"

#define BACKLOG_MAX 1024u /* Linux's net.rdma_ucm.max_backlog */

/* The QP number is a claim, as in Linux: packets of the peer only reach a QP that the program has connected to the peer
 * itself. The Q_Key counts with AF_IB only, as in Linux. */
static void copy_param(const struct ucma_id *id, const struct rdma_ucm_conn_param *from, struct cm_conn_param *to)
{
    *to = (struct cm_conn_param){
        .qp_num = from->qp_num & 0xffffff,
        .qkey = id->is_ib ? from->qkey : 0,
        .responder_resources = from->responder_resources,
        .initiator_depth = from->initiator_depth,
        .flow_control = from->flow_control,
        .retry_count = from->retry_count,
        .rnr_retry_count = from->rnr_retry_count,
        .srq = from->srq,
        .private_data_len = from->private_data_len,
    };
    memcpy(to->private_data, from->private_data, from->private_data_len);
}

int command_connect(struct command *c)
{
    const struct rdma_ucm_connect *in = &c->in.connect;
    struct cm_ece ece = {in->ece.vendor_id, in->ece.attr_mod};
    struct cm_conn_param param;
    struct ucma_id *id;

    if (!in->conn_param.valid)
        return -EINVAL;
    int rc = command_id(c, in->id, &id);
    if (rc)
        return rc;
    copy_param(id, &in->conn_param, &param);
    return cm_connect(id->cm, &param, &ece, c->now);
}

int command_listen(struct command *c)
{
    uint32_t backlog = c->in.listen.backlog;
    struct ucma_id *id;
    int rc = command_id(c, c->in.listen.id, &id);

    if (rc)
        return rc;
    backlog = backlog && backlog < BACKLOG_MAX ? backlog : BACKLOG_MAX;
    rc = cm_listen(id->cm, backlog);
    if (rc == 0)
        id->backlog = backlog;
    return rc;
}

int command_accept(struct command *c)
{
    const struct rdma_ucm_accept *in = &c->in.accept;
    struct cm_ece ece = {in->ece.vendor_id, in->ece.attr_mod};
    struct cm_conn_param param;
    struct ucma_id *id;

    int rc = command_id(c, in->id, &id);
    if (rc || !in->conn_param.valid)
        return rc ? rc : cm_accept(id->cm, NULL, &ece, c->now);
    copy_param(id, &in->conn_param, &param);
    rc = cm_accept(id->cm, &param, &ece, c->now);
    if (rc == 0)
        id->uid = in->uid;
    return rc;
}

int command_reject(struct command *c)
{
    const struct rdma_ucm_reject *in = &c->in.reject;
    uint8_t reason = in->reason ? in->reason : CM_REJ_CONSUMER_DEFINED;
    struct ucma_id *id;

    if (reason != CM_REJ_CONSUMER_DEFINED && reason != CM_REJ_VENDOR_OPTION_NOT_SUPPORTED)
        return -EINVAL;
    int rc = command_id(c, in->id, &id);
    return rc ? rc : cm_reject(id->cm, reason, in->private_data, in->private_data_len, c->now);
}

int command_disconnect(struct command *c)
{
    struct ucma_id *id;
    int rc = command_id(c, c->in.disconnect.id, &id);

    return rc ? rc : cm_disconnect(id->cm, c->now);
}

int command_notify(struct command *c)
{
    struct ucma_id *id;
    int rc = command_id(c, c->in.notify.id, &id);

    return rc ? rc : cm_notify(id->cm, c->in.notify.event, c->now);
}

static void copy_qp_attr(const struct cm_host *h, const struct cm_qp_attr *from, struct ib_uverbs_qp_attr *to)
{
    const struct qp_attr *a = &from->attr;

    memset(to, 0, sizeof(*to));
    to->qp_attr_mask = from->mask;
    to->qp_state = a->state;
    to->cur_qp_state = a->cur_state;
    to->path_mtu = a->path_mtu;
    to->qkey = a->qkey;
    to->rq_psn = a->rq_psn;
    to->sq_psn = a->sq_psn;
    to->dest_qp_num = a->dest_qpn;
    to->qp_access_flags = a->access;
    to->pkey_index = a->pkey_index;
    to->max_rd_atomic = a->max_rd_atomic;
    to->max_dest_rd_atomic = a->max_dest_rd_atomic;
    to->min_rnr_timer = a->min_rnr_timer;
    to->port_num = a->port;
    to->timeout = a->timeout;
    to->retry_cnt = a->retry_cnt;
    to->rnr_retry = a->rnr_retry;
    if (from->mask & QPA_AV)
        ucma_copy_ah(h, &a->av, &to->ah_attr);
}

int command_init_qp_attr(struct command *c)
{
    const struct rdma_ucm_init_qp_attr *in = &c->in.init_qp_attr;
    struct ib_uverbs_qp_attr resp;
    struct cm_qp_attr attr;
    struct ucma_id *id;

    if (c->out_max < sizeof(resp))
        return -ENOSPC;
    if (in->qp_state > QPS_ERR)
        return -EINVAL;
    int rc = command_id(c, in->id, &id);
    if (rc == 0)
        rc = cm_init_qp_attr(id->cm, (uint8_t)in->qp_state, &attr);
    if (rc)
        return rc;
    copy_qp_attr(c->host, &attr, &resp);
    return command_result(c, &resp, sizeof(resp));
}
