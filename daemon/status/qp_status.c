// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/qp_status.h"

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
#include "daemon/status/object_status.h"

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

/* Why the requester sends nothing now. */
static void add_waits(json_t *o, const struct qp_info *i)
{
    json_object_set_new(o, "rate", i->rate ? json_number(i->rate) : json_null());
    json_object_set_new(o, "waiting_rate", json_boolean(i->waiting_rate));
    json_object_set_new(o, "waiting_rnr", json_boolean(i->waiting_rnr));
    json_object_set_new(o, "waiting_srqn", i->waiting_srqn ? json_number(i->waiting_srqn) : json_null());
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

/* An XRC target belongs to no session. It has openers, or none. */
static void add_owner(json_t *o, const struct client_qp *q)
{
    const struct session *s = q->session;
    const struct target_open *t;

    if (s) {
        json_object_set_new(o, "session", json_number(s->number));
        json_object_set_new(o, "pid", json_integer(s->cred.pid));
        json_object_set_new(o, "comm", json_string(s->comm));
        return;
    }
    json_t *openers = json_array();
    TAILQ_FOREACH (t, &q->openers, client_qp_link)
        json_array_append_new(openers, json_number(t->session->number));
    json_object_set_new(o, "session", json_null());
    json_object_set_new(o, "openers", openers);
}

/* Null: no completion counter is attached. */
static json_t *comp_cntrs(const struct client_qp *q)
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

json_t *qp_status(const struct client_qp *q)
{
    char gid[ADDR_TEXT_MAX];
    struct qp_attr attr;
    struct qp_info info;
    json_t *o = json_object();

    qp_query(q->qp, &attr);
    qp_info(q->qp, &info);
    json_object_set_new(o, "qpn", json_number(q->qpn));
    add_owner(o, q);
    json_object_set_new(o, "type", json_string(client_qp_type_name(q)));
    json_object_set_new(o, "state", json_string(state_name(info.state)));
    json_object_set_new(o, "dest_qpn", json_number(info.dest_qpn));
    json_object_set_new(o, "dgid", json_string(gid_text(attr.av.dgid, gid)));
    json_object_set_new(o, "retry_cnt", json_number(attr.retry_cnt));
    json_object_set_new(o, "rnr_retry", json_number(attr.rnr_retry));
    json_object_set_new(o, "max_rd_atomic", json_number(attr.max_rd_atomic));
    json_object_set_new(o, "path_mtu", json_number(attr.path_mtu ? 128u << attr.path_mtu : 0));
    json_object_set_new(o, "pd", q->pd ? json_number(q->pd->number) : json_null());
    json_object_set_new(o, "send_cq", q->send_cq ? json_number(q->send_cq->handle) : json_null());
    json_object_set_new(o, "recv_cq", q->recv_cq ? json_number(q->recv_cq->handle) : json_null());
    json_object_set_new(o, "srq", q->srq ? json_number(q->srq->handle) : json_null());
    json_object_set_new(o, "comp_cntrs", comp_cntrs(q));
    json_object_set_new(o, "xrcd", q->xrcd ? json_number(q->xrcd->number) : json_null());
    json_object_set_new(o, "sq_max", json_number(q->caps.max_send_wr));
    json_object_set_new(o, "rq_max", json_number(q->caps.max_recv_wr));
    json_object_set_new(o, "sq_ring", ring_status(&q->sq));
    json_object_set_new(o, "rq_ring", ring_status(&q->rq));
    json_object_set_new(o, "broken", q->broken ? json_string(q->broken) : json_null());
    json_object_set_new(o, "unreachable", q->unreachable ? json_string(q->unreachable) : json_null());
    add_protocol(o, &info);
    return o;
}
