// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/connect/connect.h"

#include <string.h>

#include "src/check/base/finding.h"
#include "src/check/base/report.h"
#include "src/check/connect/asked.h"
#include "src/check/connect/peers.h"
#include "src/check/connect/port.h"
#include "src/check/connect/tables.h"

#define GIVES_UP_MS 10.0 /* a QP that gives up earlier is taken for a mistake */

static unsigned mtu_bytes(enum ibv_mtu mtu)
{
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

/* --- rules ------------------------------------------------------------------------------------- */

/* Without a GRH, or with a GID that nobody has chosen. */
static void check_address(struct ibv_context *context, const struct ibv_ah_attr *ah, const char *what,
                          const struct trace *where)
{
    struct ibv_port_attr port;

    if (rule_is_on(RULE_GRH) && !ah->is_global && port_query(context, ah->port_num, &port) == 0 &&
        port.link_layer == IBV_LINK_LAYER_ETHERNET)
        finding_add(RULE_GRH, FINDING_AT(where),
                    "the address of %s has no GRH (is_global is 0), which each packet of RoCE needs: set is_global, "
                    "the GID of the peer and sgid_index",
                    what);
    if (rule_is_on(RULE_GID_INDEX) && ah->is_global && !asked_has_chosen(context, ah->grh.sgid_index))
        finding_add(RULE_GID_INDEX, FINDING_AT(where),
                    "the address of %s has sgid_index %u, but the program has not looked for a GID of the right type "
                    "(ibv_query_gid_ex, ibv_query_gid_table), and no user gave that number: on another device, the "
                    "GID may be one of RoCE v1, or link-local",
                    what, ah->grh.sgid_index);
}

static void check_mtu(struct ibv_context *context, const struct ibv_qp_attr *a, uint8_t port_num,
                      const struct trace *where)
{
    struct ibv_port_attr port;

    if (port_query(context, port_num, &port) != 0)
        return;
    if (!mtu_bytes(a->path_mtu))
        finding_add(RULE_MTU, FINDING_AT(where),
                    "path_mtu is %d, which is no value of enum ibv_mtu, such as IBV_MTU_1024", (int)a->path_mtu);
    else if (a->path_mtu > port.active_mtu)
        finding_add(RULE_MTU, FINDING_AT(where),
                    "path_mtu is %u bytes, but the port sends no more than %u (active_mtu)", mtu_bytes(a->path_mtu),
                    mtu_bytes(port.active_mtu));
    else if (a->path_mtu > IBV_MTU_1024 && !asked_has_port(context))
        finding_add(RULE_MTU, FINDING_AT(where),
                    "path_mtu is %u bytes, but the program has not asked for the port's active_mtu (ibv_query_port): "
                    "it is 1024 on an Ethernet without jumbo frames",
                    mtu_bytes(a->path_mtu));
}

static void check_timeout(const struct ibv_qp *qp, const struct ibv_qp_attr *a, int mask, const struct trace *where)
{
    if (!(mask & IBV_QP_TIMEOUT))
        return;
    double ms = 4.096e-3 * (double)(1ull << (a->timeout & 31)) * (a->retry_cnt + 1);

    if (a->timeout == 0)
        finding_add(RULE_TIMEOUT, FINDING_AT(where),
                    "QP 0x%x: timeout is 0, so it waits for ever: if a packet or the peer is lost, its requests never "
                    "complete",
                    qp->qp_num);
    else if ((mask & IBV_QP_RETRY_CNT) && ms < GIVES_UP_MS)
        finding_add(RULE_TIMEOUT, FINDING_AT(where),
                    "QP 0x%x: with timeout %u and retry_cnt %u, it gives up after %.2f ms without an answer, though a "
                    "busy network or peer may take longer",
                    qp->qp_num, a->timeout, a->retry_cnt, ms);
}

/* --- changes ----------------------------------------------------------------------------------- */

static void note(struct qp_record *q, const struct ibv_qp_attr *a, int mask, const struct trace *where)
{
    struct connection *c = &q->connection;

    if (mask & IBV_QP_ACCESS_FLAGS) {
        c->access = a->qp_access_flags;
        c->access_at = where;
    }
    if (mask & IBV_QP_PORT)
        q->port = a->port_num;
    if (mask & IBV_QP_PATH_MTU)
        c->path_mtu = a->path_mtu;
    if (mask & IBV_QP_RQ_PSN)
        c->rq_psn = a->rq_psn & 0xffffff;
    if (mask & IBV_QP_SQ_PSN)
        c->sq_psn = a->sq_psn & 0xffffff;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        c->rd_atomic = a->max_rd_atomic;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        c->dest_rd_atomic = a->max_dest_rd_atomic;
    if (mask & IBV_QP_RNR_RETRY)
        c->rnr_retry = a->rnr_retry;
    if ((mask & IBV_QP_STATE) && a->qp_state == IBV_QPS_RTR) {
        c->since = peers_now();
        c->where = where;
    }
    if ((mask & IBV_QP_STATE) && a->qp_state == IBV_QPS_RTS && !c->ready_at)
        c->ready_at = where;
    if ((mask & IBV_QP_AV) && (mask & IBV_QP_DEST_QPN)) {
        c->peer = a->dest_qp_num;
        c->peer_gid = a->ah_attr.grh.dgid;
        port_gid(q->qp->context, a->ah_attr.port_num, a->ah_attr.grh.sgid_index, &c->gid);
    }
}

/* The other end may see this one from now on. */
static void publish(struct qp_record *q)
{
    const struct connection *c = &q->connection;

    if (!c->peer)
        return;
    if (!q->own)
        q->own = peers_add(&c->gid, q->qp->qp_num);
    if (q->own)
        q->own->rnr_retry = c->rnr_retry;
    tables_connection(q);
}

static void check(struct ibv_qp *qp, const struct ibv_qp_attr *a, int mask, const struct trace *where)
{
    if (mask & IBV_QP_AV)
        check_address(qp->context, &a->ah_attr, "a connection", where);
    if ((mask & IBV_QP_PATH_MTU) && rule_is_on(RULE_MTU))
        check_mtu(qp->context, a, mask & IBV_QP_AV ? a->ah_attr.port_num : 1, where);
    if (rule_is_on(RULE_TIMEOUT))
        check_timeout(qp, a, mask, where);
}

void connect_reset(struct qp_record *q)
{
    peers_remove(q->own);
    q->own = NULL;
    q->other = NULL;
    q->receives_posted = 0;
    q->connection = (struct connection){0};
}

void connect_modified(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask, int rc, const struct trace *where)
{
    /* The attributes of librdmacm come from the kernel, which has looked at the devices. */
    bool chosen = where && report_is_of_library(where->at[0], "librdmacm");

    if (!chosen)
        check(qp, attr, mask, where);
    records_lock();
    struct qp_record *q = record_find(KIND_QP, qp, where ? where->at[0] : NULL);
    if (q && rc == 0) {
        note(q, attr, mask, where);
        if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
            connect_reset(q);
        else if (mask & (IBV_QP_STATE | IBV_QP_ACCESS_FLAGS))
            publish(q);
    }
    records_unlock();
}

void connect_made_ah(struct ibv_context *context, const struct ibv_ah_attr *attr, const struct trace *where)
{
    if (where && (report_is_of_library(where->at[0], "librdmacm") || report_is_of_library(where->at[0], "libibverbs")))
        return;
    check_address(context, attr, "an address handle", where);
}
