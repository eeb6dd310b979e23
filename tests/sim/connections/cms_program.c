// SPDX-License-Identifier: BSD-2-Clause
/* The programs of the hosts: each end acts after its events, at random times. */
#include "tests/sim/connections/cms.h"

#include <errno.h>
#include <string.h>

#define MS 1000000ull

static struct cms_end *new_end(struct cms *s, int host)
{
    cms_require(s, s->ends < CMS_ENDS, "more ends than connects explain");
    struct cms_end *e = &s->end[s->ends++];
    e->host = host;
    e->qpn = s->next_qpn++;
    return e;
}

static int number_of(const struct cms *s, const struct cms_end *e)
{
    return (int)(e - s->end);
}

/* How long a program works on a message whose sender gets an MRA meanwhile. */
static uint64_t think(struct cms *s)
{
    return prng_pick(&s->rng, 0, 0, 1, 20, 400, 3000, 30000, 150000) * MS;
}

/* The same for SIDR_REQs and DREQs, which have no MRA: not as long as their senders wait. */
static uint64_t think_briefly(struct cms *s)
{
    return think(s) % (31000 * MS);
}

void cms_programs(struct cms *s)
{
    struct prng *r = &s->rng;
    int connects = (int)prng_range(r, 1, CMS_CONNECTS);
    for (int i = 0; i < connects; i++) {
        static const struct {
            uint16_t space;
            uint8_t type;
        } kinds[] = {{CM_PS_TCP, QPT_RC}, {CM_PS_TCP, QPT_RC},      {CM_PS_UDP, QPT_UD},
                     {CM_PS_IB, QPT_UC},  {CM_PS_IB, QPT_XRC_SEND}, {CM_PS_TCP, QPT_UC}};
        size_t k = prng_range(r, 0, sizeof kinds / sizeof kinds[0] - 1);
        struct cms_end *e = new_end(s, (int)prng_range(r, 0, (uint64_t)s->hosts - 1));
        e->to = (int)prng_range(r, 0, (uint64_t)s->hosts - 1);
        e->port_space = kinds[k].space;
        e->qp_type = kinds[k].type;
        e->ud = e->qp_type == QPT_UD;
        e->port = prng_chance(r, 50) ? CMS_NO_PORT : CMS_PORT;
        cms_later(s, i, CMS_STEP_CONNECT, prng_range(r, 0, 2000) * MS);
        if (prng_chance(r, 100))
            cms_later(s, i, CMS_STEP_DESTROY, prng_range(r, 0, 10000) * MS);
    }
    if (prng_chance(r, 150))
        cms_later(s, (int)prng_range(r, 0, (uint64_t)s->hosts - 1), CMS_STEP_DIE, prng_range(r, 0, 5000) * MS);
    if (prng_chance(r, 150))
        cms_later(s, (int)prng_range(r, 0, (uint64_t)s->hosts - 1), CMS_STEP_DEAF, prng_range(r, 0, 3000) * MS);
}

/* --- steps -------------------------------------------------------------------------------------- */

static struct cm_conn_param param_of(const struct cms_end *e)
{
    return (struct cm_conn_param){.qp_num = e->qpn, .responder_resources = 3, .initiator_depth = 5, .retry_count = 7};
}

static void begin(struct cms *s, struct cms_end *e)
{
    struct cms_host *h = &s->host[e->host];
    struct cm_addr dst = s->host[e->to].addr;
    dst.port = e->port;
    cms_require(s, cm_id_create(h->cm, e->port_space, e->qp_type, e, &e->id) == 0, "no ID");
    e->phase = CMS_RESOLVING;
    cms_require(s, cm_addr_resolved(e->id, &h->addr, &dst, &h->route) == 0, "the address can't be used");
    cms_require(s, cm_resolve_route(e->id) == 0, "the route can't be used");
}

static void connect_now(struct cms *s, struct cms_end *e)
{
    struct cm_conn_param param = param_of(e);
    e->phase = CMS_CONNECTING;
    cms_say(s, "end %d on host %d connects to %d:%d", number_of(s, e), e->host, e->to, e->port);
    cms_require(s, cm_connect(e->id, &param, NULL, s->now) == 0, "connect fails");
}

/* The program uses an established connection. */
static void live(struct cms *s, struct cms_end *e)
{
    if (e->ud)
        return;
    uint64_t n = prng_range(&s->rng, 0, 9);
    if (n < 4)
        cms_later(s, number_of(s, e), CMS_STEP_DISCONNECT, think(s));
    else if (n < 6)
        cms_later(s, number_of(s, e), CMS_STEP_DESTROY, think(s));
}

static void answer(struct cms *s, struct cms_end *e)
{
    struct cm_conn_param param = param_of(e);
    uint64_t n = prng_range(&s->rng, 0, 99);
    if (n < 10) {
        cms_destroy(s, e);
    } else if (n < 25) {
        e->phase = CMS_REFUSED;
        cms_say(s, "end %d rejects", number_of(s, e));
        cms_require(s, cm_reject(e->id, 0, NULL, 0, s->now) == 0, "reject fails");
    } else if (e->passive) {
        e->phase = e->ud ? CMS_ESTABLISHED : CMS_ACCEPTED;
        cms_say(s, "end %d accepts", number_of(s, e));
        cms_require(s, cm_accept(e->id, &param, NULL, s->now) == 0, "accept fails");
        if (prng_chance(&s->rng, 100))
            cms_later(s, number_of(s, e), CMS_STEP_DESTROY, think(s));
    } else {
        e->phase = CMS_ESTABLISHED;
        cms_say(s, "end %d is ready", number_of(s, e));
        cms_require(s, cm_accept(e->id, NULL, NULL, s->now) == 0, "the active side can't accept");
        for (int i = 0; i < s->ends && prng_chance(&s->rng, 200); i++)
            if (s->end[i].phase == CMS_ACCEPTED && s->end[i].id->remote_comm_id == e->id->local_comm_id &&
                s->end[i].id->local_comm_id == e->id->remote_comm_id)
                cms_later(s, i, CMS_STEP_NOTIFY, prng_range(&s->rng, 0, 2) * MS);
        live(s, e);
    }
}

void cms_destroy(struct cms *s, struct cms_end *e)
{
    if (e->phase == CMS_NONE || e->phase == CMS_GONE)
        return;
    cms_say(s, "end %d is destroyed", number_of(s, e));
    if (e->phase == CMS_ACCEPTED)
        e->left = e->id->local_comm_id;
    e->phase = CMS_GONE;
    cm_id_destroy(e->id, s->now);
}

void cms_close(struct cms *s, int host)
{
    struct cms_host *h = &s->host[host];
    for (int i = 0; i < CMS_LISTENERS; i++) {
        if (h->listener[i])
            cm_id_destroy(h->listener[i], s->now);
        h->listener[i] = NULL;
    }
}

/* The host loses all its state, and starts again. */
static void die(struct cms *s, int host)
{
    cms_say(s, "host %d dies", host);
    s->deaths++;
    for (int i = 0; i < s->ends; i++)
        if (s->end[i].host == host && s->end[i].phase != CMS_NONE)
            s->end[i].phase = CMS_GONE;
    cms_boot(s, host);
}

void cms_step(struct cms *s, int n, enum cms_step step)
{
    struct cms_end *e = &s->end[n];
    switch (step) {
    case CMS_STEP_DIE:
        die(s, n);
        return;
    case CMS_STEP_DEAF:
        cms_say(s, "host %d closes its listeners", n);
        cms_close(s, n);
        return;
    case CMS_STEP_CONNECT:
        if (e->phase == CMS_NONE)
            begin(s, e);
        else if (e->phase == CMS_RESOLVING)
            connect_now(s, e);
        return;
    case CMS_STEP_ANSWER:
        if (e->phase == CMS_REQUESTED || e->phase == CMS_RESPONDED)
            answer(s, e);
        return;
    case CMS_STEP_NOTIFY:
        if (e->phase == CMS_ACCEPTED)
            cms_require(s, cm_notify(e->id, 4, s->now) == 0, "the event of the QP is refused");
        return;
    case CMS_STEP_DISCONNECT:
        if (e->phase == CMS_ESTABLISHED || e->phase == CMS_DISCONNECTED)
            cms_require(s, cm_disconnect(e->id, s->now) == 0, "disconnect fails");
        return;
    case CMS_STEP_DESTROY:
        cms_destroy(s, e);
        return;
    }
}

/* --- events ------------------------------------------------------------------------------------- */

/* A connect is one request, unless the answer to it is lost again and again. */
static void check_new(struct cms *s, int host, const struct cm_id_info *info)
{
    for (int i = 0; i < s->ends && s->loss <= 20 && !s->deaths; i++)
        cms_require(s, !s->end[i].passive || s->end[i].host != host || s->end[i].of != info->remote_comm_id,
                    "a program gets one request twice");
}

static void take_request(struct cms *s, int host, const struct cm_event *ev)
{
    struct cm_id_info info;
    cm_id_query(ev->id, &info);
    check_new(s, host, &info);
    struct cms_end *e = new_end(s, host);
    e->of = info.remote_comm_id;
    e->id = ev->id;
    e->passive = true;
    e->phase = CMS_REQUESTED;
    e->ud = ev->ud;
    cm_id_set_owner(ev->id, e);
    cms_say(s, "end %d on host %d is requested", number_of(s, e), host);
    cms_later(s, number_of(s, e), CMS_STEP_ANSWER, e->ud ? think_briefly(s) : think(s));
}

void cms_event(struct cms *s, int host, const struct cm_event *ev)
{
    if (ev->type == CM_EVENT_CONNECT_REQUEST) {
        take_request(s, host, ev);
        return;
    }
    struct cms_end *e = cm_id_owner(ev->id);
    cms_require(s, e >= s->end && e < s->end + s->ends && e->id == ev->id, "an event of an unknown ID");
    cms_say(s, "end %d gets event %d, status %d", number_of(s, e), ev->type, ev->status);
    cms_check_event(s, e, ev);
    switch (ev->type) {
    case CM_EVENT_ROUTE_RESOLVED:
        cms_later(s, number_of(s, e), CMS_STEP_CONNECT, think(s) % 100);
        break;
    case CM_EVENT_CONNECT_RESPONSE:
        cms_later(s, number_of(s, e), CMS_STEP_ANSWER, think(s));
        break;
    case CM_EVENT_ESTABLISHED:
        live(s, e);
        break;
    case CM_EVENT_DISCONNECTED:
        cms_later(s, number_of(s, e), prng_chance(&s->rng, 500) ? CMS_STEP_DISCONNECT : CMS_STEP_DESTROY,
                  think_briefly(s));
        break;
    default:
        break;
    }
}
