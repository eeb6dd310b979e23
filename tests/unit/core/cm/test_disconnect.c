// SPDX-License-Identifier: BSD-2-Clause
/* The end of connections: DREQ, DREP, time wait, and IDs that are destroyed. */
#include "tests/unit/core/cm/cm_fixture.h"

TestSuite(disconnect, .init = net_setup, .fini = net_teardown);

Test(disconnect, each_side_asks_or_answers)
{
    struct pair p = established();
    cr_assert_eq(cm_disconnect(p.active, net.now), 0);
    settle();
    cr_assert_eq(next_event(B, CM_EVENT_DISCONNECTED).status, 0);
    no_event(A);
    cr_assert_eq(state_of(p.active), CM_ID_DREQ_SENT);
    cr_assert_eq(state_of(p.passive), CM_ID_DREQ_RECEIVED);
    cr_assert_eq(net.last[CM_DREQ & 0x1f].dreq.remote_qpn, 0x222);
    cr_assert_eq(cm_disconnect(p.passive, net.now), 0);
    settle();
    next_event(A, CM_EVENT_DISCONNECTED);
    cr_assert_eq(state_of(p.active), CM_ID_TIME_WAIT);
    cr_assert_eq(state_of(p.passive), CM_ID_TIME_WAIT);
    uint64_t start = net.now;
    while (A->num_ev == 0 || B->num_ev == 0)
        cr_assert(next_timer());
    next_event(A, CM_EVENT_TIMEWAIT_EXIT);
    next_event(B, CM_EVENT_TIMEWAIT_EXIT);
    cr_assert_eq((net.now - start) / MS, 2048);
    cr_assert_eq(cm_deadline(A->cm), NEVER);
    cr_assert_eq(cm_disconnect(p.active, net.now), 0); /* as Linux: nothing happens */
    settle();
    no_event(A);
}

Test(disconnect, both_sides_at_once)
{
    struct pair p = established();
    cm_disconnect(p.active, net.now);
    cm_disconnect(p.passive, net.now);
    settle();
    next_event(A, CM_EVENT_DISCONNECTED);
    next_event(B, CM_EVENT_DISCONNECTED);
    cm_id_destroy(p.active, net.now);
    settle();
    cr_assert_eq(state_of(p.passive), CM_ID_TIME_WAIT);
    wait_ms(10000);
    next_event(B, CM_EVENT_TIMEWAIT_EXIT);
    no_event(B);
    cr_assert_eq(count_ids(A), 0);
}

Test(disconnect, lost_dreq_is_repeated)
{
    struct pair p = established();
    net.lose_count = 1;
    cm_disconnect(p.active, net.now);
    settle();
    no_event(B);
    next_timer();
    next_event(B, CM_EVENT_DISCONNECTED);
    cr_assert_eq(cm_counters(A->cm)->retries, 1);
}

Test(disconnect, lost_drep_is_sent_again)
{
    struct pair p = established();
    cm_disconnect(p.active, net.now);
    settle();
    next_event(B, CM_EVENT_DISCONNECTED);
    net.lose = CM_DREP;
    net.lose_count = 1;
    cm_id_destroy(p.passive, net.now);
    settle();
    no_event(A);
    next_timer();
    next_event(A, CM_EVENT_DISCONNECTED);
}

Test(disconnect, dead_peer_is_reported_after_all_retries)
{
    struct pair p = established();
    uint64_t start = net.now;
    net.lose_count = 1000;
    cm_disconnect(p.active, net.now);
    settle();
    while (A->num_ev == 0)
        cr_assert(next_timer());
    cr_assert_eq(next_event(A, CM_EVENT_DISCONNECTED).status, -ETIMEDOUT);
    cr_assert_eq((net.now - start) / MS, 16 * (4096 + 2 * 1024));
    cr_assert_eq(state_of(p.active), CM_ID_TIME_WAIT);
}

Test(disconnect, unknown_connection_is_released)
{
    struct pair p = established();
    cm_id_destroy(p.passive, net.now);
    settle();
    next_event(A, CM_EVENT_DISCONNECTED);
    cm_disconnect(p.active, net.now);
    settle();
    wait_ms(10000);
    struct cm_datagram d = {.device = 0};
    struct cm_msg m = {.attribute = CM_DREQ, .transaction_id = 5, .dreq = {.local_comm_id = 7, .remote_comm_id = 8}};
    cm_msg_encode(&m, d.mad);
    memcpy(d.remote_gid, B->addr.gid, 16);
    memcpy(d.local_gid, A->addr.gid, 16);
    give(B, &d);
    settle();
    const struct cm_msg *a = &net.last[CM_DREP & 0x1f];
    cr_assert_eq(a->transaction_id, 5);
    cr_assert_eq(a->rtu.local_comm_id, 8);
    cr_assert_eq(a->rtu.remote_comm_id, 7);
}

/* --- IDs that are destroyed ------------------------------------------------------------------------- */

Test(disconnect, destroying_tells_the_peer_until_it_answers)
{
    struct pair p = established();
    net.lose_count = 2;
    cm_id_destroy(p.active, net.now);
    settle();
    cr_assert_eq(count_ids(A), 1); /* it has no owner, and waits for the answer */
    no_event(B);
    next_timer();
    next_timer();
    next_event(B, CM_EVENT_DISCONNECTED);
    cm_id_destroy(p.passive, net.now);
    settle();
    wait_ms(10000);
    cr_assert_eq(count_ids(A), 0);
    cr_assert_eq(count_ids(B), 1); /* the listener */
    cm_id_destroy(p.listener, net.now);
    cr_assert_eq(count_ids(B), 0);
    no_event(A);
}

/* The device stops the QP of a program that is gone. It finds it by this number, also in repeated messages. */
Test(disconnect, messages_of_a_destroyed_id_name_its_qp)
{
    struct pair p = established();
    struct cm_datagram d;
    cm_disconnect(p.passive, net.now);
    cr_assert(cm_pop_datagram(B->cm, &d));
    cr_expect_eq(d.abandoned_qpn, 0);
    cm_id_destroy(p.active, net.now);
    cr_assert(cm_pop_datagram(A->cm, &d));
    cr_expect_eq(d.abandoned_qpn, 0x111);
    net.now = cm_deadline(A->cm);
    cm_expire(A->cm, net.now);
    bool named = false;
    while (cm_pop_datagram(A->cm, &d))
        named |= d.abandoned_qpn == 0x111;
    cr_expect(named, "the repeated DREQ names no QP");
}

Test(disconnect, the_answer_of_a_destroyed_id_names_its_qp)
{
    struct pair p = established();
    struct cm_datagram d;
    cm_disconnect(p.active, net.now);
    settle();
    next_event(B, CM_EVENT_DISCONNECTED);
    cm_id_destroy(p.passive, net.now);
    cr_assert(cm_pop_datagram(B->cm, &d));
    cr_expect_eq(d.abandoned_qpn, 0x222);
}

Test(disconnect, destroying_while_connecting)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    cm_id_destroy(p.active, net.now);
    settle();
    cr_assert_eq(count_ids(A), 0);
    cr_assert_eq(next_event(B, CM_EVENT_REJECTED).status, CM_REJ_TIMEOUT);
    cr_assert_eq(net.last[CM_REJ & 0x1f].rej.remote_comm_id, 0);
    cr_assert_eq(net.last[CM_REJ & 0x1f].rej.ari_len, 8);
}

Test(disconnect, destroying_a_request)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    cm_id_destroy(p.passive, net.now);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).status, CM_REJ_CONSUMER_DEFINED);
}

Test(disconnect, destroying_after_accepting)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(2);
    cm_accept(p.passive, &param, NULL, net.now);
    settle();
    next_event(A, CM_EVENT_CONNECT_RESPONSE);
    cm_id_destroy(p.passive, net.now);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).status, CM_REJ_CONSUMER_DEFINED);
    cr_assert_eq(state_of(p.active), CM_ID_TIME_WAIT);
    wait_ms(30000);
    no_event(A); /* as Linux: TIMEWAIT_EXIT only after DISCONNECTED */
    cr_assert_eq(count_ids(B), 1);
}

Test(disconnect, destroying_before_the_rtu)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(2);
    cm_accept(p.passive, &param, NULL, net.now);
    settle();
    cm_id_destroy(p.active, net.now);
    settle();
    cr_assert_eq(next_event(B, CM_EVENT_REJECTED).status, CM_REJ_CONSUMER_DEFINED);
}

Test(disconnect, accepting_a_peer_that_is_gone)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(2);
    net.lose_count = 1;
    cm_id_destroy(p.active, net.now);
    settle();
    no_event(B);
    cm_accept(p.passive, &param, NULL, net.now);
    settle();
    cr_assert_eq(next_event(B, CM_EVENT_REJECTED).status, CM_REJ_INVALID_COMM_ID);
}

Test(disconnect, a_listener_takes_its_unowned_requests_along)
{
    struct cm_id *l = listen_on(B, CM_PS_TCP, QPT_RC), *a = routed(A, B, CM_PS_TCP, QPT_RC),
                 *b = routed(A, B, CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(1);
    cm_connect(a, &param, NULL, net.now);
    param.qp_num++;
    settle();
    struct cm_id *owned = requested(B);
    cm_connect(b, &param, NULL, net.now);
    settle();
    next_event(B, CM_EVENT_CONNECT_REQUEST);
    cm_id_destroy(l, net.now);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).id, b);
    no_event(A);
    cr_assert_eq(cm_accept(owned, &param, NULL, net.now), 0);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_CONNECT_RESPONSE).id, a);
}

Test(disconnect, events_of_a_destroyed_id_are_gone)
{
    struct cm_id *id = new_id(A, CM_PS_TCP, QPT_RC);
    struct cm_addr dst = addr_of(1, PORT);
    cm_addr_resolved(id, &A->addr, &dst, &A->route);
    cm_id_destroy(id, net.now);
    settle();
    no_event(A);
    cr_assert_eq(count_ids(A), 0);
}

/* --- stale connections ------------------------------------------------------------------------------ */

Test(disconnect, a_used_qp_of_the_peer_is_a_stale_connection)
{
    struct pair p = established();
    struct cm_conn_param param = param_of(0x111); /* the QP of the connection */
    struct cm_id *again = routed(A, B, CM_PS_TCP, QPT_RC);
    cm_connect(again, &param, NULL, net.now);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).status, CM_REJ_STALE_CONN);
    cr_assert_eq(state_of(p.passive), CM_ID_DREQ_SENT);
    cr_assert_eq(next_event(A, CM_EVENT_DISCONNECTED).id, p.active);
    wait_ms(30000);
    struct cm_id *third = routed(A, B, CM_PS_TCP, QPT_RC);
    cm_disconnect(p.active, net.now);
    settle();
    A->num_ev = B->num_ev = 0;
    cm_connect(third, &param, NULL, net.now);
    settle();
    next_event(B, CM_EVENT_CONNECT_REQUEST);
}

Test(disconnect, the_oldest_ending_id_makes_room)
{
    net_teardown();
    net_setup_with(4);
    struct cm_id *l = listen_on(B, CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(1);
    (void)l;
    for (uint32_t i = 0; i < 20; i++) {
        struct cm_id *a = routed(A, B, CM_PS_TCP, QPT_RC);
        param.qp_num = 100 + i;
        cr_assert_eq(cm_connect(a, &param, NULL, net.now), 0);
        settle();
        struct cm_id *p = requested(B);
        cm_accept(p, &param, NULL, net.now);
        settle();
        next_event(A, CM_EVENT_CONNECT_RESPONSE);
        cm_accept(a, NULL, NULL, net.now);
        settle();
        next_event(B, CM_EVENT_ESTABLISHED);
        cm_id_destroy(a, net.now);
        settle();
        next_event(B, CM_EVENT_DISCONNECTED);
        cm_id_destroy(p, net.now);
        settle();
    }
    cr_assert_leq(count_ids(A), 4);
    struct cm_id *id[4], *more;
    for (int i = 0; i < 4; i++)
        id[i] = new_id(A, CM_PS_TCP, QPT_RC);
    cr_assert_eq(cm_id_create(A->cm, CM_PS_TCP, QPT_RC, NULL, &more), -ENOMEM);
    cm_id_destroy(id[2], net.now);
    cr_assert_eq(cm_id_create(A->cm, CM_PS_TCP, QPT_RC, NULL, &more), 0);
}
