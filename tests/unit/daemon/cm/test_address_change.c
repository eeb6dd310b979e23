// SPDX-License-Identifier: BSD-2-Clause
/* A device loses an address, or gets another one, while IDs use it. As in Linux without bonding, no ID gets an event for
 * that. What the ID does next fails as it does when a cable is unplugged, and nothing waits for ever. */
#include <criterion/criterion.h>

#include "tests/unit/daemon/cm/cm_fixture.h"

#define A (&cm_node[0]) /* 203.0.113.1 */
#define B (&cm_node[1]) /* 203.0.113.2, then 203.0.113.9 */
#define PORT 7471

static void set_addresses(struct cm_node *n, const char *first, const char *second)
{
    struct mad_device d = {.guid = 0x2000 + (uint64_t)(n - cm_node), .ifindex = 1, .active_mtu = 5, .num_gids = 2};
    const char *const ip[2] = {first, second};

    for (unsigned i = 0; i < 2; i++) {
        struct in_addr a;

        if (!ip[i])
            continue;
        inet_pton(AF_INET, ip[i], &a);
        gid_from_v4(d.gids[i], &a);
    }
    mad_box_describe(&n->box, &d);
    cm_settle();
}

static void start(void)
{
    cr_assert(cm_start());
    set_addresses(A, "203.0.113.1", NULL);
    set_addresses(B, "203.0.113.2", NULL);
}

TestSuite(cm_address_change, .init = start, .fini = cm_end);

static void takes(struct cm_node *n, uint32_t event, struct rdma_ucm_event_resp *ev)
{
    cr_assert_eq(cm_event(n, ev), 0);
    cr_assert_eq(ev->event, event, "%u", ev->event);
}

static uint32_t listen_on(struct cm_node *n, const char *ip)
{
    uint32_t id = cm_create(n, RDMA_PS_TCP, 100);

    cr_assert_eq(cm_bind_ip(n, id, ip, PORT), 0);
    cr_assert_eq(cm_listen_on(n, id, 4), 0);
    return id;
}

/* An ID with a route to the listener. */
static uint32_t routed(struct cm_node *n, const char *src, const char *dst)
{
    uint32_t id = cm_create(n, RDMA_PS_TCP, 200);
    struct rdma_ucm_event_resp ev;

    cr_assert_eq(cm_resolve(n, id, src, dst, PORT), 0);
    takes(n, CM_EVENT_ADDR_RESOLVED, &ev);
    cr_assert_eq(cm_route(n, id), 0);
    takes(n, CM_EVENT_ROUTE_RESOLVED, &ev);
    return id;
}

/* Returns the ID of the passive side. */
static uint32_t connected(struct cm_node *from, uint32_t client, struct cm_node *to)
{
    struct rdma_ucm_accept rtu = {.id = client};
    struct rdma_ucm_event_resp ev;

    cr_assert_eq(cm_connect_id(from, client, 0x22, ""), 0);
    takes(to, CM_EVENT_CONNECT_REQUEST, &ev);
    uint32_t server = ev.id;
    cr_assert_eq(cm_accept_id(to, server, 101, 0x11, ""), 0);
    takes(from, CM_EVENT_CONNECT_RESPONSE, &ev);
    cr_assert_eq(cm_command(from, RDMA_USER_CM_CMD_ACCEPT, &rtu, sizeof(rtu), NULL, 0), 0);
    takes(to, CM_EVENT_ESTABLISHED, &ev);
    return server;
}

/* Lets the time go by until the program has an event. */
static void takes_later(struct cm_node *n, uint32_t event, int status)
{
    struct rdma_ucm_event_resp ev;
    int rc;

    while ((rc = cm_event(n, &ev)) == -EAGAIN) {
        uint64_t t = cm_deadline(n->t.host.cm);

        cr_assert_neq(t, NEVER, "the program waits for ever");
        cm_expire(n->t.host.cm, t);
    }
    cr_assert_eq(rc, 0);
    cr_expect_eq(ev.event, event, "%u", ev.event);
    cr_expect_eq((int)ev.status, status);
}

Test(cm_address_change, a_connection_gets_no_event)
{
    struct rdma_ucm_event_resp ev;

    listen_on(A, "0.0.0.0");
    uint32_t client = routed(B, "203.0.113.2", "203.0.113.1");
    uint32_t server = connected(B, client, A);
    set_addresses(B, NULL, "203.0.113.9");
    cr_expect_eq(cm_event(A, &ev), -EAGAIN);
    cr_expect_eq(cm_event(B, &ev), -EAGAIN);
    struct rdma_ucm_disconnect in = {client};
    cr_assert_eq(cm_command(B, RDMA_USER_CM_CMD_DISCONNECT, &in, sizeof(in), NULL, 0), 0);
    takes_later(B, CM_EVENT_DISCONNECTED, -ETIMEDOUT);
    cr_expect_eq(cm_event(A, &ev), -EAGAIN, "the peer heard nothing");
    in.id = server;
    cr_assert_eq(cm_command(A, RDMA_USER_CM_CMD_DISCONNECT, &in, sizeof(in), NULL, 0), 0);
    takes_later(A, CM_EVENT_DISCONNECTED, -ETIMEDOUT);
}

Test(cm_address_change, a_request_from_a_lost_address_times_out)
{
    listen_on(A, "0.0.0.0");
    uint32_t client = routed(B, "203.0.113.2", "203.0.113.1");
    set_addresses(B, NULL, "203.0.113.9");
    cr_assert_eq(cm_connect_id(B, client, 0x22, ""), 0);
    takes_later(B, CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

Test(cm_address_change, a_lost_address_is_not_resolved)
{
    struct rdma_ucm_event_resp ev;
    uint32_t bound = cm_create(B, RDMA_PS_TCP, 200), fresh = cm_create(B, RDMA_PS_TCP, 201);

    listen_on(A, "0.0.0.0");
    cr_assert_eq(cm_bind_ip(B, bound, "203.0.113.2", 0), 0);
    set_addresses(B, NULL, "203.0.113.9");
    cr_assert_eq(cm_resolve(B, bound, NULL, "203.0.113.1", PORT), 0);
    takes(B, CM_EVENT_ADDR_ERROR, &ev);
    cr_expect_eq((int)ev.status, -ENODEV);
    int rc = cm_bind_ip(B, fresh, "203.0.113.2", 0);
    cr_expect_eq(rc, -EADDRNOTAVAIL, "%d: no device and no interface has it", rc);
    connected(B, routed(B, "203.0.113.9", "203.0.113.1"), A); /* from the new address */
}

Test(cm_address_change, a_listener_waits_for_its_address)
{
    struct rdma_ucm_event_resp ev;

    uint32_t listener = listen_on(A, "203.0.113.1");
    set_addresses(A, NULL, "203.0.113.8");
    cr_expect_eq(cm_event(A, &ev), -EAGAIN);
    uint32_t client = routed(B, "203.0.113.2", "203.0.113.8");
    cr_assert_eq(cm_connect_id(B, client, 0x22, ""), 0);
    takes(B, CM_EVENT_REJECTED, &ev);
    cr_expect_eq(ev.status, CM_REJ_INVALID_SERVICE_ID, "it does not listen on the other address");
    set_addresses(A, "203.0.113.1", "203.0.113.8");
    connected(B, routed(B, "203.0.113.2", "203.0.113.1"), A);
    cr_expect_eq(cm_destroy(A, listener), 1);
}
