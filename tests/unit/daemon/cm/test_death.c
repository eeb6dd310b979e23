// SPDX-License-Identifier: BSD-2-Clause
/* A program is killed in each state of a connection. Its peer gets the event that a NIC's host would send, and the
 * daemon of the killed program keeps nothing. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "tests/unit/daemon/cm/cm_fixture.h"

#define A (&cm_node[0]) /* listens */
#define B (&cm_node[1]) /* connects */
#define NO_EVENT 255
#define PORT 7471

enum step {
    CREATED,
    BOUND,
    LISTENS,
    ADDRESS, /* resolved */
    ROUTE, /* resolved */
    REQUESTED, /* the REQ has come, and the program of A has not looked */
    SEEN, /* it has got the CONNECT_REQUEST */
    ACCEPTED, /* the program of B has got the CONNECT_RESPONSE, and has not answered */
    ESTABLISHED,
    A_DISCONNECTS, /* the program of B has not answered */
    B_DISCONNECTS, /* the program of A has not answered */
    DISCONNECTED, /* by B, and A has answered: time wait */
};

struct death {
    uint16_t space;
    enum step step;
    char victim; /* 'A' or 'B' */
    uint8_t event; /* of the other program, after the death; NO_EVENT */
    int status;
};

/* clang-format off */
static struct death deaths[] = {
    {RDMA_PS_TCP, CREATED,       'B', NO_EVENT, 0},
    {RDMA_PS_TCP, BOUND,         'B', NO_EVENT, 0},
    {RDMA_PS_TCP, LISTENS,       'A', NO_EVENT, 0},
    {RDMA_PS_TCP, ADDRESS,       'B', NO_EVENT, 0},
    {RDMA_PS_TCP, ROUTE,         'B', NO_EVENT, 0},
    {RDMA_PS_TCP, REQUESTED,     'B', NO_EVENT, 0}, /* the request is still there, and can't be accepted */
    {RDMA_PS_TCP, REQUESTED,     'A', CM_EVENT_REJECTED, CM_REJ_CONSUMER_DEFINED},
    {RDMA_PS_TCP, SEEN,          'B', NO_EVENT, 0}, /* the same */
    {RDMA_PS_TCP, SEEN,          'A', CM_EVENT_REJECTED, CM_REJ_CONSUMER_DEFINED},
    {RDMA_PS_TCP, ACCEPTED,      'B', CM_EVENT_REJECTED, CM_REJ_CONSUMER_DEFINED},
    {RDMA_PS_TCP, ACCEPTED,      'A', CM_EVENT_REJECTED, CM_REJ_CONSUMER_DEFINED},
    {RDMA_PS_TCP, ESTABLISHED,   'B', CM_EVENT_DISCONNECTED, 0},
    {RDMA_PS_TCP, ESTABLISHED,   'A', CM_EVENT_DISCONNECTED, 0},
    {RDMA_PS_TCP, A_DISCONNECTS, 'B', CM_EVENT_DISCONNECTED, 0}, /* the daemon answers the DREQ */
    {RDMA_PS_TCP, A_DISCONNECTS, 'A', NO_EVENT, 0}, /* the program of B knows it already */
    {RDMA_PS_TCP, B_DISCONNECTS, 'A', CM_EVENT_DISCONNECTED, 0},
    {RDMA_PS_TCP, B_DISCONNECTS, 'B', NO_EVENT, 0},
    {RDMA_PS_TCP, DISCONNECTED,  'A', NO_EVENT, 0},
    {RDMA_PS_TCP, DISCONNECTED,  'B', NO_EVENT, 0},
    {RDMA_PS_UDP, LISTENS,       'A', NO_EVENT, 0},
    {RDMA_PS_UDP, ROUTE,         'B', NO_EVENT, 0},
    {RDMA_PS_UDP, REQUESTED,     'B', NO_EVENT, 0}, /* datagrams have no connection: nothing tells A */
    {RDMA_PS_UDP, REQUESTED,     'A', CM_EVENT_UNREACHABLE, CM_SIDR_REJECT},
    {RDMA_PS_UDP, SEEN,          'A', CM_EVENT_UNREACHABLE, CM_SIDR_REJECT},
    {RDMA_PS_UDP, ESTABLISHED,   'A', NO_EVENT, 0},
    {RDMA_PS_UDP, ESTABLISHED,   'B', NO_EVENT, 0},
};
/* clang-format on */

static void takes(struct cm_node *n, uint32_t event, struct rdma_ucm_event_resp *ev)
{
    cr_assert_eq(cm_event(n, ev), 0);
    cr_assert_eq(ev->event, event);
}

static void disconnect(struct cm_node *n, uint32_t id)
{
    struct rdma_ucm_disconnect in = {id};

    cr_assert_eq(cm_command(n, RDMA_USER_CM_CMD_DISCONNECT, &in, sizeof(in), NULL, 0), 0);
}

static void accept_and_confirm(const struct death *d, uint32_t server, uint32_t client)
{
    struct rdma_ucm_accept rtu = {.id = client};
    struct rdma_ucm_event_resp ev;

    cr_assert_eq(cm_accept_id(A, server, 101, 0x11, ""), 0);
    if (d->space == RDMA_PS_UDP) {
        takes(B, CM_EVENT_ESTABLISHED, &ev);
        return;
    }
    takes(B, CM_EVENT_CONNECT_RESPONSE, &ev);
    if (d->step == ACCEPTED)
        return;
    cr_assert_eq(cm_command(B, RDMA_USER_CM_CMD_ACCEPT, &rtu, sizeof(rtu), NULL, 0), 0);
    takes(A, CM_EVENT_ESTABLISHED, &ev);
}

static void end_connection(const struct death *d, uint32_t server, uint32_t client)
{
    bool by_a = d->step == A_DISCONNECTS;
    struct rdma_ucm_event_resp ev;

    disconnect(by_a ? A : B, by_a ? server : client);
    takes(by_a ? B : A, CM_EVENT_DISCONNECTED, &ev);
    if (d->step != DISCONNECTED)
        return;
    disconnect(A, server);
    takes(B, CM_EVENT_DISCONNECTED, &ev);
}

/* Goes on to the step. Returns the ID of A's connection, if its program knows it; else 0. */
static uint32_t reach(const struct death *d)
{
    uint32_t listener = cm_create(A, d->space, 100), client = cm_create(B, d->space, 200);
    struct rdma_ucm_event_resp ev;

    if (d->step == CREATED)
        return 0;
    cr_assert_eq(cm_bind_ip(A, listener, "127.0.0.1", PORT), 0);
    cr_assert_eq(cm_bind_ip(B, client, "127.0.0.2", 0), 0);
    if (d->step == BOUND)
        return 0;
    cr_assert_eq(cm_listen_on(A, listener, 4), 0);
    if (d->step == LISTENS)
        return 0;
    cr_assert_eq(cm_resolve(B, client, NULL, "127.0.0.1", PORT), 0);
    takes(B, CM_EVENT_ADDR_RESOLVED, &ev);
    if (d->step == ADDRESS)
        return 0;
    cr_assert_eq(cm_route(B, client), 0);
    takes(B, CM_EVENT_ROUTE_RESOLVED, &ev);
    if (d->step == ROUTE)
        return 0;
    cr_assert_eq(cm_connect_id(B, client, 0x22, ""), 0);
    cm_settle();
    cr_assert_eq(cm_bytes(A->pipe), 1);
    if (d->step == REQUESTED)
        return 0;
    takes(A, CM_EVENT_CONNECT_REQUEST, &ev);
    uint32_t server = ev.id;
    if (d->step >= ACCEPTED)
        accept_and_confirm(d, server, client);
    if (d->step > ESTABLISHED)
        end_connection(d, server, client);
    return server;
}

static void kill_program(struct cm_node *n)
{
    close(n->sock);
    close(n->pipe);
    n->sock = n->pipe = -1;
    cm_settle();
}

/* The daemon keeps what the protocol needs, until all timers have run out. */
static void keeps_nothing(struct cm_node *n)
{
    struct cm_host *h = &n->t.host;
    struct cm_datagram d;
    struct cm_event ev;

    cr_expect_eq(h->ids.count, 0);
    cr_expect_eq(h->joins.count, 0);
    cr_expect(TAILQ_EMPTY(&h->channels) && TAILQ_EMPTY(&h->ending));
    for (uint64_t t; (t = cm_deadline(h->cm)) != NEVER;) {
        cm_expire(h->cm, t);
        while (cm_pop_datagram(h->cm, &d))
            continue;
    }
    cr_expect_not(cm_pop_event(h->cm, &ev));
    cr_expect_null(cm_id_next(h->cm, NULL));
}

ParameterizedTestParameters(cm_death, in_each_state)
{
    return cr_make_param_array(struct death, deaths, sizeof(deaths) / sizeof(deaths[0]));
}

ParameterizedTest(struct death *d, cm_death, in_each_state)
{
    struct cm_node *victim = d->victim == 'A' ? A : B, *peer = d->victim == 'A' ? B : A;
    struct rdma_ucm_event_resp ev;

    cr_assert(cm_start());
    uint32_t server = reach(d);
    kill_program(victim);
    if (d->step == REQUESTED && victim == B) { /* the request waits in A's channel, as in Linux */
        takes(A, CM_EVENT_CONNECT_REQUEST, &ev);
        server = ev.id;
    }
    if (d->event == NO_EVENT) {
        cr_expect_eq(cm_event(peer, &ev), -EAGAIN, "an event %u", ev.event);
    } else {
        takes(peer, d->event, &ev);
        cr_expect_eq((int)ev.status, d->status);
    }
    if (d->space == RDMA_PS_TCP && victim == B && (d->step == REQUESTED || d->step == SEEN))
        cr_expect_lt(cm_accept_id(A, server, 101, 0x11, ""), 0, "nobody is left to accept");
    keeps_nothing(victim);
    kill_program(peer);
    keeps_nothing(peer);
    cm_end();
}
