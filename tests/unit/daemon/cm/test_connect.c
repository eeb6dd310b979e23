// SPDX-License-Identifier: BSD-2-Clause
/* The life of connections by the commands of programs: connect, accept, reject, disconnect, and the death of programs. */
#include <criterion/criterion.h>

#include "tests/unit/daemon/cm/cm_fixture.h"

#define A (&cm_node[0])
#define B (&cm_node[1])

static void start(void)
{
    cr_assert(cm_start());
}

TestSuite(cm_connect, .init = start, .fini = cm_end);

/* A client of B that has sent its REQ to the listener of A. */
static uint32_t request(uint32_t *listener, uint32_t backlog, struct rdma_ucm_event_resp *ev)
{
    uint32_t client = cm_create(B, RDMA_PS_TCP, 200);

    *listener = cm_create(A, RDMA_PS_TCP, 100);
    cr_assert_eq(cm_bind_ip(A, *listener, "127.0.0.1", 7471), 0);
    cr_assert_eq(cm_listen_on(A, *listener, backlog), 0);
    cr_assert_eq(cm_resolve(B, client, "127.0.0.2", "127.0.0.1", 7471), 0);
    cr_assert_eq(cm_event(B, ev), 0);
    cr_assert_eq(ev->event, CM_EVENT_ADDR_RESOLVED);
    cr_assert_eq(cm_route(B, client), 0);
    cr_assert_eq(cm_event(B, ev), 0);
    cr_assert_eq(ev->event, CM_EVENT_ROUTE_RESOLVED);
    cr_assert_eq(cm_connect_id(B, client, 0x22, "hello"), 0);
    return client;
}

Test(cm_connect, a_connection_with_private_data_and_attributes_of_the_qps)
{
    struct rdma_ucm_event_resp ev;
    struct ib_uverbs_qp_attr attr;
    uint32_t listener, client = request(&listener, 4, &ev);

    cr_assert_eq(cm_event(A, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_CONNECT_REQUEST);
    cr_expect_eq(ev.uid, 100, "the context is that of the listener");
    cr_expect_neq(ev.id, listener);
    cr_expect_eq(ev.param.conn.qp_num, 0x22);
    cr_expect_str_eq((char *)ev.param.conn.private_data, "hello");
    uint32_t server = ev.id;
    cr_expect_eq(cm_init_attr(A, server, QPS_INIT, &attr), 0);
    cr_expect(attr.qp_attr_mask & QPA_PKEY_INDEX);
    cr_expect_eq(attr.port_num, 1);
    cr_assert_eq(cm_accept_id(A, server, 101, 0x11, "welcome"), 0);
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_CONNECT_RESPONSE);
    cr_expect_eq(ev.uid, 200);
    cr_expect_str_eq((char *)ev.param.conn.private_data, "welcome");
    cr_assert_eq(cm_init_attr(B, client, QPS_RTR, &attr), 0);
    cr_expect_eq(attr.dest_qp_num, 0x11);
    cr_expect_eq(attr.ah_attr.is_global, 1);
    cr_expect_arr_eq(attr.ah_attr.grh.dgid, A->box.device.gids[0], 16);
    struct rdma_ucm_accept in = {.id = client};
    cr_assert_eq(cm_command(B, RDMA_USER_CM_CMD_ACCEPT, &in, sizeof(in), NULL, 0), 0);
    cr_assert_eq(cm_event(A, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_ESTABLISHED);
    cr_expect_eq(ev.uid, 101, "accept gives the new ID its context");
}

Test(cm_connect, disconnecting_tells_both)
{
    struct rdma_ucm_event_resp ev;
    struct cm_pair p;

    cr_assert_eq(cm_pair_connect(&p), 0);
    struct rdma_ucm_disconnect in = {p.client};
    cr_assert_eq(cm_command(B, RDMA_USER_CM_CMD_DISCONNECT, &in, sizeof(in), NULL, 0), 0);
    cr_assert_eq(cm_event(A, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_DISCONNECTED);
    cr_expect_eq(ev.uid, 101);
    cr_expect_eq(cm_event(B, &ev), -EAGAIN, "the program of A has not answered");
    in.id = p.server;
    cr_assert_eq(cm_command(A, RDMA_USER_CM_CMD_DISCONNECT, &in, sizeof(in), NULL, 0), 0);
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_DISCONNECTED);
}

Test(cm_connect, a_reject_carries_the_reason_and_private_data)
{
    struct rdma_ucm_event_resp ev;
    uint32_t listener;

    request(&listener, 4, &ev);
    cr_assert_eq(cm_event(A, &ev), 0);
    struct rdma_ucm_reject in = {.id = ev.id, .private_data_len = 3, .private_data = "no"};
    in.reason = 5;
    cr_expect_eq(cm_command(A, RDMA_USER_CM_CMD_REJECT, &in, sizeof(in), NULL, 0), -EINVAL, "a reason of the protocol");
    in.reason = 0;
    cr_assert_eq(cm_command(A, RDMA_USER_CM_CMD_REJECT, &in, sizeof(in), NULL, 0), 0);
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_REJECTED);
    cr_expect_eq(ev.status, CM_REJ_CONSUMER_DEFINED);
    cr_expect_str_eq((char *)ev.param.conn.private_data, "no");
    cr_expect_eq(cm_failures_latest(&B->t.host.failures, 0)->event, CM_EVENT_REJECTED);
}

Test(cm_connect, nobody_listens)
{
    struct rdma_ucm_event_resp ev;
    uint32_t client = cm_create(B, RDMA_PS_TCP, 200);

    cm_resolve(B, client, "127.0.0.2", "127.0.0.1", 7999);
    cr_assert_eq(cm_event(B, &ev), 0);
    cm_route(B, client);
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_assert_eq(cm_connect_id(B, client, 0x22, ""), 0);
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_REJECTED);
    cr_expect_eq(ev.status, CM_REJ_INVALID_SERVICE_ID);
    const struct cm_failure *f = cm_failures_latest(&B->t.host.failures, 0);
    cr_assert_not_null(f);
    cr_expect_eq(f->pid, getpid());
    cr_expect_eq(f->id.dst.port, 7999);
}

Test(cm_connect, a_listener_that_does_not_look_takes_no_more_than_its_backlog)
{
    struct rdma_ucm_event_resp ev;
    uint32_t listener;

    request(&listener, 1, &ev);
    cm_settle();
    uint32_t second = cm_create(B, RDMA_PS_TCP, 201);
    cm_resolve(B, second, "127.0.0.2", "127.0.0.1", 7471);
    cr_assert_eq(cm_event(B, &ev), 0);
    cm_route(B, second);
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_assert_eq(cm_connect_id(B, second, 0x23, ""), 0);
    cm_settle();
    cr_expect_eq(cm_bytes(A->pipe), 1);
    cr_assert_eq(cm_event(A, &ev), 0);
    cr_expect_eq(ev.param.conn.qp_num, 0x22);
}

Test(cm_connect, destroying_a_listener_rejects_requests_that_nobody_saw)
{
    struct rdma_ucm_event_resp ev;
    uint32_t listener;

    request(&listener, 4, &ev);
    cm_settle();
    cr_expect_eq(cm_bytes(A->pipe), 1);
    cr_expect_eq(cm_destroy(A, listener), 0);
    cr_expect_eq(cm_bytes(A->pipe), 0, "the byte of the event is gone, too");
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_REJECTED);
    cr_expect_eq(A->t.host.ids.count, 0);
}

Test(cm_connect, destroy_waits_for_the_events_that_were_reported)
{
    struct cm_pair p;

    cr_assert_eq(cm_pair_connect(&p), 0);
    cr_expect_eq(cm_destroy(B, p.client), 3, "ADDR_RESOLVED, ROUTE_RESOLVED, CONNECT_RESPONSE");
    cr_expect_eq(cm_destroy(A, p.listener), 1, "CONNECT_REQUEST");
    cr_expect_eq(cm_destroy(A, p.server), 1, "ESTABLISHED");
    cr_expect_eq(cm_destroy(A, p.server), -ENOENT);
}

Test(cm_connect, a_program_that_dies_tells_its_peers)
{
    struct rdma_ucm_event_resp ev;
    struct cm_pair p;

    cr_assert_eq(cm_pair_connect(&p), 0);
    close(A->sock);
    close(A->pipe);
    A->sock = A->pipe = -1;
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_DISCONNECTED);
    cr_expect_eq(A->t.host.ids.count, 0);
    cr_expect(TAILQ_EMPTY(&A->t.host.channels) && TAILQ_EMPTY(&A->t.host.ending));
}

Test(cm_connect, the_end_of_the_daemon_tells_the_peers)
{
    struct rdma_ucm_event_resp ev;
    struct cm_pair p;

    cr_assert_eq(cm_pair_connect(&p), 0);
    char why[ERROR_TEXT_MAX];
    cr_assert_eq(cm_thread_start(&A->t, why), 0, "%s", why);
    cm_thread_stop(&A->t);
    cm_carry(A);
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_DISCONNECTED);
}

Test(cm_connect, datagram_services)
{
    uint32_t listener = cm_create(A, RDMA_PS_UDP, 100), client = cm_create(B, RDMA_PS_UDP, 200);
    struct rdma_ucm_event_resp ev;

    cr_assert_eq(cm_bind_ip(A, listener, "0.0.0.0", 7174), 0);
    cr_assert_eq(cm_listen_on(A, listener, 4), 0);
    cr_assert_eq(cm_resolve(B, client, NULL, "127.0.0.1", 7174), 0);
    cr_assert_eq(cm_event(B, &ev), 0);
    cm_route(B, client);
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_assert_eq(cm_connect_id(B, client, 0x22, "hello"), 0);
    cr_assert_eq(cm_event(A, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_CONNECT_REQUEST);
    cr_expect_str_eq((char *)ev.param.ud.private_data, "hello");
    cr_assert_eq(cm_accept_id(A, ev.id, 101, 0x11, "welcome"), 0);
    cr_assert_eq(cm_event(B, &ev), 0);
    cr_expect_eq(ev.event, CM_EVENT_ESTABLISHED);
    cr_expect_eq(ev.param.ud.qp_num, 0x11);
    cr_expect_eq(ev.param.ud.qkey, 0x01234567);
    cr_expect_str_eq((char *)ev.param.ud.private_data, "welcome");
    cr_expect_eq(ev.param.ud.ah_attr.is_global, 1);
    cr_expect_eq(ev.param.ud.ah_attr.port_num, 1);
    cr_expect_arr_eq(ev.param.ud.ah_attr.grh.dgid, A->box.device.gids[0], 16);
}
