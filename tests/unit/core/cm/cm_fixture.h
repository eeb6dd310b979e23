// SPDX-License-Identifier: BSD-2-Clause
/* Two hosts, each with an instance of connection management and one device, joined by a pipe that may lose messages.
 * Time stands still until the test moves it. */
#ifndef PUMICE_TESTS_UNIT_CORE_CM_CM_FIXTURE_H
#define PUMICE_TESTS_UNIT_CORE_CM_CM_FIXTURE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/cm/cm.h"
#include "wire/gid.h"

#define MS 1000000ull
#define PORT 7471
#define EVENTS 32
#define OWNER(n) ((void *)(uintptr_t)(n))

struct host {
    struct cm *cm;
    void *mem;
    struct cm_addr addr; /* port 0 */
    struct cm_route route;
    struct cm_event ev[EVENTS]; /* that were reported, oldest first */
    unsigned num_ev;
};
struct pipe {
    struct host h[2];
    uint64_t now;
    /* Messages to lose. attribute 0: any. */
    uint16_t lose;
    unsigned lose_count;
    unsigned sent[0x20]; /* by the low 5 bits of the attribute, lost ones included */
    struct cm_msg last[0x20]; /* of each kind */
};

static struct pipe net;
#define A (&net.h[0])
#define B (&net.h[1])

static inline struct cm_addr addr_of(unsigned n, uint16_t port)
{
    struct cm_addr a = {.port = port};
    gid_from_v4(a.gid, (const uint8_t[4]){10, 0, 0, (uint8_t)(1 + n)});
    return a;
}

static inline void net_setup_with(uint32_t max_ids)
{
    struct cm_config cfg;
    memset(&net, 0, sizeof(net));
    net.now = 1000 * MS;
    for (unsigned i = 0; i < 2; i++) {
        struct host *h = &net.h[i];
        cm_config_defaults(&cfg);
        cfg.max_ids = max_ids;
        cfg.secret = (struct permute_secret){{0x1234567890abcdef + i, 0xfedcba0987654321}};
        h->mem = calloc(1, cm_size(&cfg));
        h->cm = cm_init(h->mem, &cfg);
        h->addr = addr_of(i, 0);
        h->route = (struct cm_route){.path_mtu = 3, .node_guid = 0x0200000000000001 + i, .hop_limit = 64};
    }
}
static inline void net_setup(void)
{
    net_setup_with(64);
}
static inline void net_teardown(void)
{
    free(A->mem);
    free(B->mem);
}

static inline bool is_lost(uint16_t attribute)
{
    if (!net.lose_count || (net.lose && net.lose != attribute))
        return false;
    net.lose_count--;
    return true;
}

/* Which host has the address. */
static inline struct host *host_of(const uint8_t gid[16])
{
    for (unsigned i = 0; i < 2; i++)
        if (memcmp(net.h[i].addr.gid, gid, 16) == 0)
            return &net.h[i];
    return NULL;
}

/* Turns an outgoing datagram into an incoming one. */
static inline struct cm_datagram turned(const struct cm_datagram *d)
{
    struct cm_datagram in = *d;
    memcpy(in.local_gid, d->remote_gid, 16);
    memcpy(in.remote_gid, d->local_gid, 16);
    return in;
}

static inline void give(struct host *to, const struct cm_datagram *d)
{
    struct cm_datagram in = turned(d);
    if (to)
        cm_rx(to->cm, &in, &to->route, net.now);
}

static inline void carry(struct cm_datagram *d)
{
    struct cm_msg m;
    cr_assert_eq(cm_msg_decode(d->mad, &m), CM_DECODE_OK);
    net.sent[m.attribute & 0x1f]++;
    net.last[m.attribute & 0x1f] = m;
    if (!is_lost(m.attribute))
        give(host_of(d->remote_gid), d);
}

static inline void take_events(struct host *h)
{
    struct cm_event ev;
    while (cm_pop_event(h->cm, &ev)) {
        cr_assert_lt(h->num_ev, EVENTS);
        h->ev[h->num_ev++] = ev;
    }
}

/* Carries messages and takes events until all is quiet. */
static inline void settle(void)
{
    struct cm_datagram d;
    bool more = true;
    while (more) {
        more = false;
        for (unsigned i = 0; i < 2; i++) {
            take_events(&net.h[i]);
            while (cm_pop_datagram(net.h[i].cm, &d)) {
                more = true;
                carry(&d);
            }
        }
    }
}

/* Lets the next timer fire. False: there is none. */
static inline bool next_timer(void)
{
    uint64_t a = cm_deadline(A->cm), b = cm_deadline(B->cm), due = a < b ? a : b;
    if (due == NEVER)
        return false;
    cr_assert_geq(due, net.now);
    net.now = due;
    cm_expire(A->cm, net.now);
    cm_expire(B->cm, net.now);
    settle();
    return true;
}
/* Lets time pass. */
static inline void wait_ms(uint64_t ms)
{
    uint64_t end = net.now + ms * MS;
    while (cm_deadline(A->cm) <= end || cm_deadline(B->cm) <= end)
        next_timer();
    net.now = end;
}

/* The oldest event of a host, which must be of this type. */
static inline struct cm_event next_event(struct host *h, enum cm_event_type type)
{
    cr_assert_gt(h->num_ev, 0, "no event, expected type %d", type);
    struct cm_event ev = h->ev[0];
    memmove(h->ev, h->ev + 1, --h->num_ev * sizeof(ev));
    cr_assert_eq(ev.type, type, "event type %d, expected %d", ev.type, type);
    return ev;
}
static inline void no_event(struct host *h)
{
    cr_assert_eq(h->num_ev, 0, "an event of type %d", h->ev[0].type);
}

static inline enum cm_id_state state_of(const struct cm_id *id)
{
    struct cm_id_info info;
    cm_id_query(id, &info);
    return info.state;
}
static inline unsigned count_ids(struct host *h)
{
    unsigned n = 0;
    for (struct cm_id *id = cm_id_next(h->cm, NULL); id; id = cm_id_next(h->cm, id))
        n++;
    return n;
}

/* --- usual steps ---------------------------------------------------------------------------------- */

static inline struct cm_id *new_id(struct host *h, uint16_t port_space, uint8_t qp_type)
{
    struct cm_id *id;
    cr_assert_eq(cm_id_create(h->cm, port_space, qp_type, OWNER(1), &id), 0);
    return id;
}
static inline struct cm_id *listen_on(struct host *h, uint16_t port_space, uint8_t qp_type)
{
    struct cm_id *id = new_id(h, port_space, qp_type);
    struct cm_addr a = h->addr;
    a.port = PORT;
    cr_assert_eq(cm_bind(id, &a, &h->route), 0);
    cr_assert_eq(cm_listen(id, 8), 0);
    return id;
}
/* An ID on `from` whose route to `to` is resolved. */
static inline struct cm_id *routed(struct host *from, struct host *to, uint16_t port_space, uint8_t qp_type)
{
    struct cm_id *id = new_id(from, port_space, qp_type);
    struct cm_addr dst = to->addr;
    dst.port = PORT;
    cr_assert_eq(cm_addr_resolved(id, &from->addr, &dst, &from->route), 0);
    cr_assert_eq(cm_resolve_route(id), 0);
    settle();
    next_event(from, CM_EVENT_ADDR_RESOLVED);
    next_event(from, CM_EVENT_ROUTE_RESOLVED);
    return id;
}
static inline struct cm_conn_param param_of(uint32_t qpn)
{
    return (struct cm_conn_param){
        .qp_num = qpn,
        .responder_resources = 4,
        .initiator_depth = 3,
        .retry_count = 7,
        .rnr_retry_count = 6,
        .private_data_len = 5,
        .private_data = "hello",
    };
}
/* The new ID of a CONNECT_REQUEST. */
static inline struct cm_id *requested(struct host *h)
{
    struct cm_event ev = next_event(h, CM_EVENT_CONNECT_REQUEST);
    cm_id_set_owner(ev.id, OWNER(2));
    return ev.id;
}

struct pair {
    struct cm_id *listener, *active, *passive;
};
/* From an ID with a route to a request on the other side. */
static inline struct pair request(uint16_t port_space, uint8_t qp_type)
{
    struct pair p = {.listener = listen_on(B, port_space, 0)};
    struct cm_conn_param param = param_of(0x111);
    p.active = routed(A, B, port_space, qp_type);
    cr_assert_eq(cm_connect(p.active, &param, NULL, net.now), 0);
    settle();
    p.passive = requested(B);
    return p;
}
/* A connection that both sides know to be established. */
static inline struct pair established(void)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(0x222);
    cr_assert_eq(cm_accept(p.passive, &param, NULL, net.now), 0);
    settle();
    next_event(A, CM_EVENT_CONNECT_RESPONSE);
    cr_assert_eq(cm_accept(p.active, NULL, NULL, net.now), 0);
    settle();
    next_event(B, CM_EVENT_ESTABLISHED);
    no_event(A);
    return p;
}

#endif
