// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/qp_status.h"

#include <infiniband/verbs.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/json.h"
#include "daemon/monitor/counter_names.h"
#include "daemon/monitor/error_log.h"
#include "daemon/net/address.h"
#include "daemon/objects/cq.h"
#include "daemon/objects/pd.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/objects/srq/srq.h"
#include "daemon/objects/xrcd.h"
#include "daemon/session/session.h"

static const char *state_name(uint8_t state)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

    return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

/* Null: there is no deadline. */
static json_t *time_left(uint64_t deadline, uint64_t now)
{
    return deadline == NEVER ? json_null() : json_us_between(now, deadline);
}

/* The state of the requester's packets, in the words of the usnic transport. */
static const char *requester_state(const struct qp_info *i)
{
    if (i->next_psn != i->max_psn)
        return "on re-send list";
    if (i->una_psn != i->max_psn)
        return "in hotel";
    return i->sq_posted ? "queued" : "free";
}

/* The messages for which the peer has receive requests, or a word. */
static json_t *credits(const struct qp_info *i)
{
    if (i->credit_state == CREDITS_LIMITED)
        return json_number(i->credits);
    return json_string(i->credit_state == CREDITS_UNKNOWN ? "unknown" : "unlimited");
}

/* Why the requester sends nothing now. */
static void add_waits(json_t *o, const struct qp_info *i)
{
    json_object_set_new(o, "rate", i->rate ? json_number(i->rate) : json_null());
    json_object_set_new(o, "waiting_rate", json_boolean(i->waiting_rate));
    json_object_set_new(o, "waiting_rnr", json_boolean(i->waiting_rnr));
    json_object_set_new(o, "waiting_srqn", i->waiting_srqn ? json_number(i->waiting_srqn) : json_null());
    json_object_set_new(o, "credits", credits(i));
    json_object_set_new(o, "waiting_credit", json_boolean(i->waiting_credit));
    json_object_set_new(o, "credit_us", i->credit_until ? time_left(i->credit_until, clock_ns()) : json_null());
    json_object_set_new(o, "waiting_fence", json_boolean(i->waiting_fence));
    json_object_set_new(o, "waiting_reads", json_boolean(i->waiting_reads));
    json_object_set_new(o, "waiting_window", json_boolean(i->waiting_window));
    json_object_set_new(o, "waiting_peer", json_boolean(i->waiting_peer));
    json_object_set_new(o, "waiting_drain", json_boolean(i->waiting_drain));
}

static void add_protocol(json_t *o, const struct qp_info *i)
{
    json_t *counters = json_object();
    uint64_t now = clock_ns();

    json_object_set_new(o, "requester", json_string(requester_state(i)));
    json_object_set_new(o, "sq_posted", json_number(i->sq_posted));
    json_object_set_new(o, "rq_posted", json_number(i->rq_posted));
    json_object_set_new(o, "una_psn", json_number(i->una_psn));
    json_object_set_new(o, "next_psn", json_number(i->next_psn));
    json_object_set_new(o, "max_psn", json_number(i->max_psn));
    json_object_set_new(o, "epsn", json_number(i->epsn));
    json_object_set_new(o, "msn", json_number(i->msn));
    json_object_set_new(o, "retries_left", json_number(i->retries_left));
    json_object_set_new(o, "rnr_retries_left", json_number(i->rnr_retries_left));
    json_object_set_new(o, "reads_outstanding", json_number(i->reads_outstanding));
    json_object_set_new(o, "deadline_us", time_left(i->deadline, now));
    json_object_set_new(o, "srtt_us", json_real((double)i->srtt_ns / 1e3));
    json_object_set_new(o, "window_bytes", json_number(i->window_bytes));
    json_object_set_new(o, "inflight_bytes", json_number(i->inflight_bytes));
    add_waits(o, i);
    json_object_set_new(o, "probing", json_boolean(i->probing));
    json_object_set_new(o, "retransmitting", json_boolean(i->retransmitting));
    json_object_set_new(o, "probes", json_number(i->probes));
    json_object_set_new(o, "backoff", json_number(i->backoff));
    json_object_set_new(o, "probe_us", i->probe_ns ? json_real((double)i->probe_ns / 1e3) : json_null());
    json_object_set_new(o, "silent_us", i->progress_at ? json_us_between(i->progress_at, now) : json_null());
    json_object_set_new(o, "rnr_us", i->rnr_until ? time_left(i->rnr_until, now) : json_null());
    json_object_set_new(o, "timeout_us", i->timeout_ns ? json_real((double)i->timeout_ns / 1e3) : json_null());
    json_object_set_new(o, "failure", i->failure.kind == REPORT_NONE ? json_null() : report_json(&i->failure));
    counter_add_engine(counters, &i->counters, false);
    json_object_set_new(o, "counters", counters);
    counter_name_add(o, &i->counters, NULL, false);
}

/* --- taking ------------------------------------------------------------------------------------ */

/* An XRC target belongs to no session. It has openers, or none. */
static void take_owner(const struct client_qp *q, struct qp_status *out)
{
    const struct session *s = q->session;
    const struct target_open *t;

    out->has_session = s != NULL;
    out->num_openers = 0;
    if (s) {
        out->session = s->number;
        out->pid = s->cred.pid;
        memcpy(out->comm, s->comm, sizeof(out->comm));
        return;
    }
    TAILQ_FOREACH (t, &q->openers, client_qp_link) {
        if (out->num_openers == QP_STATUS_OPENERS)
            break;
        out->opener[out->num_openers++] = t->session->number;
    }
}

void qp_status_take(const struct client_qp *q, struct qp_status *out)
{
    take_owner(q, out);
    qp_query(q->qp, &out->attr);
    qp_info(q->qp, &out->info);
    out->qpn = q->qpn;
    out->type = client_qp_type_name(q);
    out->is_datagram = q->type == IBV_QPT_UD;
    out->pd = q->pd ? (int64_t)q->pd->number : -1;
    out->send_cq = q->send_cq ? (int64_t)q->send_cq->handle : -1;
    out->recv_cq = q->recv_cq ? (int64_t)q->recv_cq->handle : -1;
    out->srq = q->srq ? (int64_t)q->srq->handle : -1;
    out->xrcd = q->xrcd ? (int64_t)q->xrcd->number : -1;
    memcpy(out->comp_cntr, q->comp_cntr, sizeof(out->comp_cntr));
    out->sq_max = q->caps.max_send_wr;
    out->rq_max = q->caps.max_recv_wr;
    out->sq_ring = ring_waiting(&q->sq);
    out->rq_ring = ring_waiting(&q->rq);
    out->broken = q->broken;
    out->unreachable = q->unreachable;
}

/* --- as JSON ----------------------------------------------------------------------------------- */

static void add_owner(json_t *o, const struct qp_status *q)
{
    if (q->has_session) {
        json_object_set_new(o, "session", json_number(q->session));
        json_object_set_new(o, "pid", json_integer(q->pid));
        json_object_set_new(o, "comm", json_string(q->comm));
        return;
    }
    json_t *openers = json_array();
    for (unsigned i = 0; i < q->num_openers; i++)
        json_array_append_new(openers, json_number(q->opener[i]));
    json_object_set_new(o, "session", json_null());
    json_object_set_new(o, "openers", openers);
}

/* Null: no completion counter is attached. */
static json_t *comp_cntrs(const struct qp_status *q)
{
    static const char *const names[CNTR_OPS] = {
        [CNTR_SEND] = "send",   [CNTR_RECV] = "recv",
        [CNTR_READ] = "read",   [CNTR_REMOTE_READ] = "remote_read",
        [CNTR_WRITE] = "write", [CNTR_REMOTE_WRITE] = "remote_write",
    };
    json_t *o = NULL;

    for (unsigned op = 0; op < CNTR_OPS; op++) {
        if (q->comp_cntr[op] && (o || (o = json_object())))
            json_object_set_new(o, names[op], json_number(q->comp_cntr[op]));
    }
    return o ? o : json_null();
}

/* A number; null if it is negative. */
static json_t *number_or_null(int64_t n)
{
    return n < 0 ? json_null() : json_integer(n);
}

json_t *qp_status_json(const struct qp_status *q)
{
    char gid[ADDR_TEXT_MAX];
    const struct qp_attr *attr = &q->attr;
    const struct qp_info *info = &q->info;
    json_t *o = json_object();

    json_object_set_new(o, "qpn", json_number(q->qpn));
    add_owner(o, q);
    json_object_set_new(o, "type", json_string(q->type));
    json_object_set_new(o, "state", json_string(state_name(info->state)));
    json_object_set_new(o, "dest_qpn", json_number(info->dest_qpn));
    json_object_set_new(o, "dgid", json_string(gid_text(attr->av.dgid, gid)));
    json_object_set_new(o, "retry_cnt", json_number(attr->retry_cnt));
    json_object_set_new(o, "rnr_retry", json_number(attr->rnr_retry));
    json_object_set_new(o, "max_rd_atomic", json_number(attr->max_rd_atomic));
    json_object_set_new(o, "path_mtu", json_number(attr->path_mtu ? 128u << attr->path_mtu : 0));
    json_object_set_new(o, "pd", number_or_null(q->pd));
    json_object_set_new(o, "send_cq", number_or_null(q->send_cq));
    json_object_set_new(o, "recv_cq", number_or_null(q->recv_cq));
    json_object_set_new(o, "srq", number_or_null(q->srq));
    json_object_set_new(o, "comp_cntrs", comp_cntrs(q));
    json_object_set_new(o, "xrcd", number_or_null(q->xrcd));
    json_object_set_new(o, "sq_max", json_number(q->sq_max));
    json_object_set_new(o, "rq_max", json_number(q->rq_max));
    json_object_set_new(o, "sq_ring", number_or_null(q->sq_ring));
    json_object_set_new(o, "rq_ring", number_or_null(q->rq_ring));
    json_object_set_new(o, "broken", q->broken ? json_string(q->broken) : json_null());
    json_object_set_new(o, "unreachable", q->unreachable ? json_string(q->unreachable) : json_null());
    add_protocol(o, info);
    return o;
}
