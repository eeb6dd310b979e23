// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/monitor/status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/monitor/counter_names.h"
#include "daemon/monitor/error_log.h"
#include "daemon/monitor/path_check.h"
#include "daemon/monitor/tm_status.h"
#include "daemon/monitor/usage_status.h"
#include "daemon/objects/channel.h"
#include "daemon/objects/cq.h"
#include "daemon/objects/mr.h"
#include "daemon/objects/mw.h"
#include "daemon/objects/pd.h"
#include "daemon/objects/qp/mcast_group.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/objects/srq/srq.h"
#include "daemon/objects/xrcd.h"
#include "daemon/session/session.h"

static json_t *number(uint64_t v)
{
    return json_integer((json_int_t)v);
}

static json_t *hex(uint64_t v)
{
    char text[24];

    snprintf(text, sizeof(text), "0x%" PRIx64, v);
    return json_string(text);
}

/* --- counters ---------------------------------------------------------------------------------- */

/* all: also counters that are 0. */
static void add_engine_counters(json_t *o, const struct engine_counters *c, bool all)
{
#define X(name, text)                                                                                                  \
    if (all || c->name)                                                                                                \
        json_object_set_new(o, #name, number(c->name));
    ENGINE_COUNTERS(X)
#undef X
}

static json_t *device_counters(const struct device *d)
{
    json_t *o = json_object();

    add_engine_counters(o, engine_counters(d->engine), true);
#define X(name, text) json_object_set_new(o, #name, number(d->io.name));
    IO_COUNTERS(X)
#undef X
#define X(name, text) json_object_set_new(o, #name, number(d->fault.counters.name));
    FAULT_COUNTERS(X)
#undef X
    return o;
}

/* --- objects ----------------------------------------------------------------------------------- */

/* The lists that a session's objects are added to. */
struct lists {
    json_t *sessions, *qps, *srqs, *cqs, *mrs, *mws, *xrcds;
    const struct session *session;
};

static const char *state_name(uint8_t state)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

    return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

static json_t *ring_json(const struct ring *r)
{
    int64_t n = ring_waiting(r);

    return n < 0 ? json_null() : json_integer(n);
}

static json_t *deadline_json(uint64_t deadline)
{
    uint64_t now = clock_ns();

    if (deadline == NEVER)
        return json_null();
    return json_real(deadline > now ? (double)(deadline - now) / 1e3 : 0.0);
}

static json_t *since_json(uint64_t then)
{
    uint64_t now = clock_ns();

    return json_real(now > then ? (double)(now - then) / 1e3 : 0.0);
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

static void add_protocol(json_t *o, const struct qp_info *i)
{
    json_t *counters = json_object();

    json_object_set_new(o, "requester", json_string(requester_state(i)));
    json_object_set_new(o, "sq_posted", number(i->sq_posted));
    json_object_set_new(o, "rq_posted", number(i->rq_posted));
    json_object_set_new(o, "una_psn", number(i->una_psn));
    json_object_set_new(o, "next_psn", number(i->next_psn));
    json_object_set_new(o, "max_psn", number(i->max_psn));
    json_object_set_new(o, "epsn", number(i->epsn));
    json_object_set_new(o, "msn", number(i->msn));
    json_object_set_new(o, "retries_left", number(i->retries_left));
    json_object_set_new(o, "rnr_retries_left", number(i->rnr_retries_left));
    json_object_set_new(o, "reads_outstanding", number(i->reads_outstanding));
    json_object_set_new(o, "deadline_us", deadline_json(i->deadline));
    json_object_set_new(o, "srtt_us", json_real((double)i->srtt_ns / 1e3));
    json_object_set_new(o, "window_bytes", number(i->window_bytes));
    json_object_set_new(o, "inflight_bytes", number(i->inflight_bytes));
    json_object_set_new(o, "rate", i->rate ? number(i->rate) : json_null());
    json_object_set_new(o, "waiting_rate", json_boolean(i->waiting_rate));
    json_object_set_new(o, "waiting_rnr", json_boolean(i->waiting_rnr));
    json_object_set_new(o, "waiting_srqn", i->waiting_srqn ? number(i->waiting_srqn) : json_null());
    json_object_set_new(o, "waiting_fence", json_boolean(i->waiting_fence));
    json_object_set_new(o, "waiting_reads", json_boolean(i->waiting_reads));
    json_object_set_new(o, "waiting_window", json_boolean(i->waiting_window));
    json_object_set_new(o, "waiting_peer", json_boolean(i->waiting_peer));
    json_object_set_new(o, "waiting_drain", json_boolean(i->waiting_drain));
    json_object_set_new(o, "retransmitting", json_boolean(i->retransmitting));
    json_object_set_new(o, "probes", number(i->probes));
    json_object_set_new(o, "silent_us", i->progress_at ? since_json(i->progress_at) : json_null());
    json_object_set_new(o, "rnr_us", i->rnr_until ? deadline_json(i->rnr_until) : json_null());
    json_object_set_new(o, "timeout_us", i->timeout_ns ? json_real((double)i->timeout_ns / 1e3) : json_null());
    json_object_set_new(o, "failure", i->failure.kind == REPORT_NONE ? json_null() : report_json(&i->failure));
    add_engine_counters(counters, &i->counters, false);
    json_object_set_new(o, "counters", counters);
    counter_name_add(o, &i->counters, NULL, false);
}

/* An XRC target belongs to no session. It has openers, or none. */
static void add_owner(json_t *o, const struct client_qp *q, const struct session *s)
{
    const struct target_open *t;
    json_t *openers;

    if (q->session) {
        json_object_set_new(o, "session", number(s->number));
        json_object_set_new(o, "pid", json_integer(s->cred.pid));
        json_object_set_new(o, "comm", json_string(s->comm));
        return;
    }
    openers = json_array();
    TAILQ_FOREACH(t, &q->openers, client_qp_link)
    json_array_append_new(openers, number(t->session->number));
    json_object_set_new(o, "session", json_null());
    json_object_set_new(o, "openers", openers);
}

static void add_qp(void *obj, void *ctx)
{
    const struct client_qp *q = obj;
    struct lists *l = ctx;
    char gid[ADDR_TEXT_MAX];
    struct qp_attr attr;
    struct qp_info info;
    json_t *o = json_object();

    qp_query(q->qp, &attr);
    qp_info(q->qp, &info);
    json_object_set_new(o, "qpn", number(q->qpn));
    add_owner(o, q, l->session);
    json_object_set_new(o, "type", json_string(client_qp_type_name(q)));
    json_object_set_new(o, "state", json_string(state_name(info.state)));
    json_object_set_new(o, "dest_qpn", number(info.dest_qpn));
    json_object_set_new(o, "dgid", json_string(gid_text(attr.av.dgid, gid)));
    json_object_set_new(o, "retry_cnt", number(attr.retry_cnt));
    json_object_set_new(o, "rnr_retry", number(attr.rnr_retry));
    json_object_set_new(o, "max_rd_atomic", number(attr.max_rd_atomic));
    json_object_set_new(o, "path_mtu", number(attr.path_mtu ? 128u << attr.path_mtu : 0));
    json_object_set_new(o, "pd", q->pd ? number(q->pd->number) : json_null());
    json_object_set_new(o, "send_cq", q->send_cq ? number(q->send_cq->handle) : json_null());
    json_object_set_new(o, "recv_cq", q->recv_cq ? number(q->recv_cq->handle) : json_null());
    json_object_set_new(o, "srq", q->srq ? number(q->srq->handle) : json_null());
    json_object_set_new(o, "xrcd", q->xrcd ? number(q->xrcd->number) : json_null());
    json_object_set_new(o, "sq_max", number(q->caps.max_send_wr));
    json_object_set_new(o, "rq_max", number(q->caps.max_recv_wr));
    json_object_set_new(o, "sq_ring", ring_json(&q->sq));
    json_object_set_new(o, "rq_ring", ring_json(&q->rq));
    json_object_set_new(o, "broken", q->broken ? json_string(q->broken) : json_null());
    json_object_set_new(o, "unreachable", q->unreachable ? json_string(q->unreachable) : json_null());
    add_protocol(o, &info);
    json_array_append_new(l->qps, o);
}

static void add_srq(void *obj, void *ctx)
{
    const struct client_srq *q = obj;
    struct lists *l = ctx;
    json_t *o = json_object();

    json_object_set_new(o, "srq", number(q->handle));
    json_object_set_new(o, "session", number(l->session->number));
    json_object_set_new(o, "type", json_string(q->xrcd ? "XRC" : q->list.tm ? "TM" : "basic"));
    json_object_set_new(o, "srqn", q->xrcd ? number(srq_number(q->srq)) : json_null());
    json_object_set_new(o, "xrcd", q->xrcd ? number(q->xrcd->xrcd->number) : json_null());
    json_object_set_new(o, "cq", q->cq ? number(q->cq->handle) : json_null());
    json_object_set_new(o, "pd", number(q->pd->number));
    json_object_set_new(o, "qps", number(q->users));
    json_object_set_new(o, "max", number(q->max_wr));
    json_object_set_new(o, "limit", number(srq_limit(q->srq)));
    json_object_set_new(o, "posted", number(srq_posted(q->srq)));
    json_object_set_new(o, "ring", ring_json(&q->ring));
    json_object_set_new(o, "broken", q->broken ? json_string(q->broken) : json_null());
    json_object_set_new(o, "tm", q->list.tm ? tm_status_summary(q) : json_null());
    json_array_append_new(l->srqs, o);
}

static void add_cq(void *obj, void *ctx)
{
    static const char *const arms[] = {"no", "solicited", "any"};
    const struct cq *cq = obj;
    struct lists *l = ctx;
    uint32_t unread = cq->producer - atomic_load_explicit(&cq->page->consumer, memory_order_relaxed);
    uint32_t arm = atomic_load_explicit(&cq->page->arm, memory_order_relaxed);
    json_t *o = json_object();

    json_object_set_new(o, "cq", number(cq->handle));
    json_object_set_new(o, "session", number(l->session->number));
    json_object_set_new(o, "entries", number(cq->slots));
    json_object_set_new(o, "unread", unread <= cq->slots ? number(unread) : json_null());
    json_object_set_new(o, "overrun", json_boolean(cq->overrun));
    json_object_set_new(o, "armed", arm < 3 ? json_string(arms[arm]) : json_null());
    json_object_set_new(o, "channel", cq->channel ? number(cq->channel->handle) : json_null());
    json_array_append_new(l->cqs, o);
}

static void add_mr(void *obj, void *ctx)
{
    const struct mr *mr = obj;
    struct lists *l = ctx;
    json_t *o = json_object();

    json_object_set_new(o, "key", number(mr->key));
    json_object_set_new(o, "session", number(l->session->number));
    json_object_set_new(o, "pd", number(mr->pd->number));
    json_object_set_new(o, "va", hex(mr->va));
    json_object_set_new(o, "length", number(mr->length));
    json_object_set_new(o, "access", number(mr->access));
    json_array_append_new(l->mrs, o);
}

static void add_mw(void *obj, void *ctx)
{
    const struct mw *mw = obj;
    struct lists *l = ctx;
    json_t *o = json_object();

    json_object_set_new(o, "key", number(mw->key & ~0xffu));
    json_object_set_new(o, "session", number(l->session->number));
    json_object_set_new(o, "pd", number(mw->pd->number));
    json_object_set_new(o, "type", number(mw->type));
    json_object_set_new(o, "max_entries", number(mw->max_entries));
    json_array_append_new(l->mws, o);
}

static void add_xrcd(void *obj, void *ctx)
{
    const struct xrcd *x = obj;
    const struct client_qp *q;
    struct lists *l = ctx;
    unsigned targets = 0;
    json_t *o = json_object();

    TAILQ_FOREACH(q, &x->targets, xrcd_link)
    targets++;
    json_object_set_new(o, "xrcd", number(x->number));
    json_object_set_new(o, "inode", x->fd >= 0 ? number(x->ino) : json_null());
    json_object_set_new(o, "opens", number(x->opens));
    json_object_set_new(o, "srqs", number(x->srqs));
    json_object_set_new(o, "targets", number(targets));
    json_array_append_new(l->xrcds, o);
}

static void add_session(const struct session *s, struct lists *l)
{
    json_t *o = json_object();

    json_object_set_new(o, "session", number(s->number));
    json_object_set_new(o, "pid", json_integer(s->cred.pid));
    json_object_set_new(o, "uid", number(s->cred.uid));
    json_object_set_new(o, "comm", json_string(s->comm));
    json_object_set_new(o, "memory", json_string(client_mem_path_name(s->client_mem->path)));
    json_object_set_new(o, "pds", number(s->pds.count));
    json_object_set_new(o, "mrs", number(s->mrs.count));
    json_object_set_new(o, "mws", number(s->mws.count));
    json_object_set_new(o, "channels", number(s->channels.count));
    json_object_set_new(o, "cqs", number(s->cqs.count));
    json_object_set_new(o, "srqs", number(s->srqs.count));
    json_object_set_new(o, "qps", number(s->qps.count));
    json_object_set_new(o, "xrcds", number(s->xrcds.count));
    json_object_set_new(o, "targets", number(s->num_targets));
    json_array_append_new(l->sessions, o);
    l->session = s;
    handles_each(&s->qps, add_qp, l);
    handles_each(&s->srqs, add_srq, l);
    handles_each(&s->cqs, add_cq, l);
    handles_each(&s->mrs, add_mr, l);
    handles_each(&s->mws, add_mw, l);
}

/* --- the device and the text ------------------------------------------------------------------- */

static json_t *groups_json(const struct device *d)
{
    json_t *list = json_array();
    const struct mcast_group *g;
    char text[ADDR_TEXT_MAX];

    TAILQ_FOREACH(g, &d->groups, link)
    {
        json_t *o = json_object();

        json_object_set_new(o, "gid", json_string(gid_text(g->gid, text)));
        json_object_set_new(o, "members", number(g->members));
        json_array_append_new(list, o);
    }
    return list;
}

json_t *status_device(struct device *d)
{
    struct lists l = {.sessions = json_array(),
                      .qps = json_array(),
                      .srqs = json_array(),
                      .cqs = json_array(),
                      .mrs = json_array(),
                      .mws = json_array(),
                      .xrcds = json_array()};
    char text[ADDR_TEXT_MAX];
    const struct session *s;
    json_t *o = json_object();

    json_object_set_new(o, "name", json_string(d->name));
    json_object_set_new(o, "address", json_string(addr_text(&d->addr, text)));
    json_object_set_new(o, "gid", json_string(gid_text(d->gid, text)));
    json_object_set_new(o, "guid", hex(d->guid));
    json_object_set_new(o, "netdev", json_string(d->netdev.name));
    json_object_set_new(o, "port", json_string(d->netdev.up ? "active" : "down"));
    json_object_set_new(o, "mtu", number(128u << d->active_mtu));
    json_object_set_new(o, "gso", json_string(udp_gso_state(&d->udp)));
    json_object_set_new(o, "loopback", json_string(d->settings->loopback_wire ? "wire" : "engine"));
    json_object_set_new(o, "ecn", json_string(d->settings->ecn ? "on" : "off"));
    json_object_set_new(o, "rcvbuf", number(d->udp.rcvbuf));
    json_object_set_new(o, "sndbuf", number(d->udp.sndbuf));
    json_object_set_new(o, "peer_window", number(d->config.peer_window_bytes));
    json_object_set_new(o, "window_pkts", number(d->config.window_pkts));
    json_object_set_new(o, "use", usage_json(d));
    json_object_set_new(o, "counters", device_counters(d));
    counter_name_add(o, engine_counters(d->engine), &d->io, true);
    TAILQ_FOREACH(s, &d->sessions, link)
    add_session(s, &l);
    l.session = NULL;
    handles_each(&d->targets, add_qp, &l);
    handles_each(&d->xrcds, add_xrcd, &l);
    json_object_set_new(o, "sessions", l.sessions);
    json_object_set_new(o, "qps", l.qps);
    json_object_set_new(o, "srqs", l.srqs);
    json_object_set_new(o, "xrcds", l.xrcds);
    json_object_set_new(o, "cqs", l.cqs);
    json_object_set_new(o, "mrs", l.mrs);
    json_object_set_new(o, "mws", l.mws);
    json_object_set_new(o, "groups", groups_json(d));
    json_object_set_new(o, "connectivity", path_check_json(d));
    return o;
}

/* Collects text before it is written. jansson passes a document in pieces of a few bytes. With one system call for
 * each, the status of two thousand QPs took seconds. */
struct sheet {
    int fd;
    size_t used; /* bytes of text that are not written yet */
    char text[16384];
};

static int sheet_write(struct sheet *s)
{
    const char *text = s->text;

    while (s->used) {
        ssize_t n = write(s->fd, text, s->used);

        if (n < 0)
            return -1;
        text += n;
        s->used -= (size_t)n;
    }
    return 0;
}

static int dump(const char *text, size_t len, void *data)
{
    struct sheet *s = data;

    while (len) {
        size_t n = sizeof(s->text) - s->used;

        if (n > len)
            n = len;
        memcpy(s->text + s->used, text, n);
        s->used += n;
        text += n;
        len -= n;
        if (s->used == sizeof(s->text) && sheet_write(s) != 0)
            return -1;
    }
    return 0;
}

int status_memfd(const json_t *root)
{
    struct sheet s = {.fd = memfd_create("pumice-status", MFD_CLOEXEC)};

    if (s.fd < 0)
        return -errno;
    if (json_dump_callback(root, dump, &s, JSON_COMPACT) != 0 || sheet_write(&s) != 0 ||
        lseek(s.fd, 0, SEEK_SET) != 0) {
        close(s.fd);
        return -ENOMEM;
    }
    return s.fd;
}
