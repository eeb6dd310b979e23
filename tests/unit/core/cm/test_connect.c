// SPDX-License-Identifier: BSD-2-Clause
/* Connections from REQ to RTU: what programs learn, what the messages say, and what happens if one is lost. */
#include "tests/unit/core/cm/cm_fixture.h"

TestSuite(connect, .init = net_setup, .fini = net_teardown);

Test(connect, request_tells_what_the_peer_wants)
{
    struct pair p = {.listener = listen_on(B, CM_PS_TCP, QPT_RC)};
    struct cm_conn_param param = param_of(0x111);
    struct cm_ece ece = {0x15b3, 0x10};
    struct cm_id_info info;
    p.active = routed(A, B, CM_PS_TCP, QPT_RC);
    cr_assert_eq(cm_connect(p.active, &param, &ece, net.now), 0);
    settle();

    struct cm_event ev = next_event(B, CM_EVENT_CONNECT_REQUEST);
    cr_assert_eq(ev.listener, p.listener);
    cr_assert_null(cm_id_owner(ev.id));
    cr_assert_eq(ev.param.qp_num, 0x111);
    cr_assert_eq(ev.param.responder_resources, 3);
    cr_assert_eq(ev.param.initiator_depth, 4);
    cr_assert_eq(ev.param.retry_count, 7);
    cr_assert_eq(ev.param.rnr_retry_count, 6);
    cr_assert_eq(ev.param.private_data_len, 56);
    cr_assert_arr_eq(ev.param.private_data, "hello\0", 6);
    cr_assert_eq(ev.ece.vendor_id, 0x15b3);
    cr_assert_eq(ev.ece.attr_mod, 0x10);
    cm_id_query(ev.id, &info);
    cr_assert_eq(info.state, CM_ID_REQ_RECEIVED);
    cr_assert_eq(info.src.port, PORT);
    cr_assert_arr_eq(info.src.gid, B->addr.gid, 16);
    cr_assert_arr_eq(info.dst.gid, A->addr.gid, 16);
    cr_assert_geq(info.dst.port, 32768);
    cm_id_query(p.listener, &info);
    cr_assert_eq(info.waiting, 1);
    cr_assert_eq(info.backlog, 8);
}

Test(connect, req_has_the_values_of_linux)
{
    request(CM_PS_TCP, QPT_RC);
    const struct cm_req *q = &net.last[CM_REQ & 0x1f].req;
    cr_assert_eq(q->service_id, 0x0106ull << 16 | PORT);
    cr_assert_eq(q->local_ca_guid, A->route.node_guid);
    cr_assert_eq(q->pkey, 0xffff);
    cr_assert_eq(q->remote_response_timeout, 20);
    cr_assert_eq(q->local_response_timeout, 20);
    cr_assert_eq(q->max_cm_retries, 15);
    cr_assert_eq(q->path_mtu, 3);
    cr_assert_eq(q->primary.local_ack_timeout, 19);
    cr_assert_eq(q->primary.local_lid, 0xffff);
    cr_assert_eq(q->primary.hop_limit, 64);
    cr_assert_eq(q->alternate.local_lid, 0);
    cr_assert_eq(q->private_data[1], 0x40);
}

Test(connect, response_and_establishment)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(0x222);
    struct cm_ece ece = {0x8086, 7};
    cr_assert_eq(cm_accept(p.passive, &param, &ece, net.now), 0);
    cr_assert_eq(state_of(p.passive), CM_ID_REP_SENT);
    settle();
    struct cm_event ev = next_event(A, CM_EVENT_CONNECT_RESPONSE);
    cr_assert_eq(ev.id, p.active);
    cr_assert_eq(ev.param.qp_num, 0x222);
    cr_assert_eq(ev.param.responder_resources, 3);
    cr_assert_eq(ev.param.initiator_depth, 4);
    cr_assert_eq(ev.param.private_data_len, 196);
    cr_assert_arr_eq(ev.param.private_data, "hello\0", 6);
    cr_assert_eq(ev.ece.vendor_id, 0x8086);
    cr_assert_eq(ev.ece.attr_mod, 7);
    cr_assert_eq(state_of(p.active), CM_ID_REP_RECEIVED);
    no_event(B);

    cr_assert_eq(cm_accept(p.active, NULL, NULL, net.now), 0);
    settle();
    ev = next_event(B, CM_EVENT_ESTABLISHED);
    cr_assert_eq(ev.id, p.passive);
    cr_assert_eq(ev.status, 0);
    cr_assert_eq(ev.param.private_data_len, 0);
    no_event(A);
    cr_assert_eq(state_of(p.active), CM_ID_ESTABLISHED);
    cr_assert_eq(state_of(p.passive), CM_ID_ESTABLISHED);
    cr_assert_eq(cm_counters(A->cm)->established, 1);
    cr_assert_eq(cm_counters(B->cm)->established, 1);
    cr_assert_eq(cm_deadline(A->cm), NEVER);
    cr_assert_eq(cm_deadline(B->cm), NEVER);
}

/* Each message of the exchange is lost once. No program learns of it, and it costs less than a second. */
static void lose_one(uint16_t attribute)
{
    struct pair p = {.listener = listen_on(B, CM_PS_TCP, QPT_RC)};
    struct cm_conn_param param = param_of(0x111);
    uint64_t start = net.now;
    net.lose = attribute;
    net.lose_count = 1;
    p.active = routed(A, B, CM_PS_TCP, QPT_RC);
    cr_assert_eq(cm_connect(p.active, &param, NULL, net.now), 0);
    settle();
    if (attribute == CM_REQ)
        next_timer();
    p.passive = requested(B);
    cr_assert_eq(cm_accept(p.passive, &param, NULL, net.now), 0);
    settle();
    if (attribute == CM_REP)
        next_timer();
    next_event(A, CM_EVENT_CONNECT_RESPONSE);
    cr_assert_eq(cm_accept(p.active, NULL, NULL, net.now), 0);
    settle();
    if (attribute == CM_RTU)
        next_timer();
    next_event(B, CM_EVENT_ESTABLISHED);
    cr_assert_eq(state_of(p.active), CM_ID_ESTABLISHED);
    cr_assert_eq(net.lose_count, 0);
    cr_assert_leq(net.now - start, 1000 * MS);
    wait_ms(200000);
    no_event(A);
    no_event(B);
}
Test(connect, lost_req)
{
    lose_one(CM_REQ);
}
Test(connect, lost_rep)
{
    lose_one(CM_REP);
}
Test(connect, lost_rtu)
{
    lose_one(CM_RTU);
}

Test(connect, no_answer_is_unreachable_as_late_as_in_linux)
{
    struct cm_id *id = routed(A, B, CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(1);
    uint64_t start = net.now;
    net.lose_count = 1000;
    cr_assert_eq(cm_connect(id, &param, NULL, net.now), 0);
    settle();
    while (A->num_ev == 0)
        cr_assert(next_timer());
    struct cm_event ev = next_event(A, CM_EVENT_UNREACHABLE);
    cr_assert_eq(ev.status, -ETIMEDOUT);
    cr_assert_eq((net.now - start) / MS, 16 * (4096 + 2 * 1024));
    cr_assert_eq(state_of(id), CM_ID_DISCONNECTED);
    cr_assert_eq(cm_counters(A->cm)->timeouts, 1);
    cr_assert_eq(cm_deadline(A->cm), NEVER);
    cr_assert_lt(net.sent[CM_REQ & 0x1f], 30);
    struct cm_id_info info;
    cm_id_query(id, &info);
    cr_assert_eq(info.last_status, -ETIMEDOUT);
}

Test(connect, peer_that_gave_up_ends_the_request)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    net.lose = CM_REQ;
    net.lose_count = 1000; /* no MRA will answer the repeated ones */
    while (A->num_ev == 0)
        cr_assert(next_timer());
    next_event(A, CM_EVENT_UNREACHABLE);
    cr_assert_eq(next_event(B, CM_EVENT_REJECTED).status, CM_REJ_TIMEOUT);
    cr_assert_eq(state_of(p.passive), CM_ID_DISCONNECTED);
}

Test(connect, rep_without_rtu_is_unreachable)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(0x222);
    uint64_t start = net.now;
    cm_accept(p.passive, &param, NULL, net.now);
    net.lose_count = 1000;
    settle();
    while (B->num_ev == 0)
        cr_assert(next_timer());
    cr_assert_eq(next_event(B, CM_EVENT_UNREACHABLE).status, -ETIMEDOUT);
    cr_assert_eq((net.now - start) / MS, 16 * 4096);
}

Test(connect, comm_est_is_as_good_as_the_rtu)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(0x222);
    cr_assert_eq(cm_notify(p.passive, 4, net.now), -EINVAL);
    cm_accept(p.passive, &param, NULL, net.now);
    settle();
    net.lose = CM_RTU;
    net.lose_count = 1;
    cm_accept(p.active, NULL, NULL, net.now);
    settle();
    cr_assert_eq(cm_notify(p.passive, 5, net.now), -EINVAL);
    cr_assert_eq(cm_notify(p.passive, 4, net.now), 0);
    settle();
    next_event(B, CM_EVENT_ESTABLISHED);
    cr_assert_eq(cm_notify(p.passive, 4, net.now), -EISCONN);
    cr_assert_eq(cm_deadline(B->cm), NEVER);
    cr_assert_eq(cm_notify(p.listener, 4, net.now), -EINVAL);
}

Test(connect, both_ends_in_one_instance)
{
    struct cm_id *l = listen_on(A, CM_PS_TCP, QPT_RC), *active = routed(A, A, CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(0x111);
    cr_assert_eq(cm_connect(active, &param, NULL, net.now), 0);
    settle();
    struct cm_id *passive = requested(A);
    param.qp_num = 0x222;
    cr_assert_eq(cm_accept(passive, &param, NULL, net.now), 0);
    settle();
    next_event(A, CM_EVENT_CONNECT_RESPONSE);
    cr_assert_eq(cm_accept(active, NULL, NULL, net.now), 0);
    settle();
    next_event(A, CM_EVENT_ESTABLISHED);
    cr_assert_eq(cm_disconnect(active, net.now), 0);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_DISCONNECTED).id, passive);
    cr_assert_eq(cm_disconnect(passive, net.now), 0);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_DISCONNECTED).id, active);
    cm_id_destroy(l, net.now);
    cm_id_destroy(active, net.now);
    cm_id_destroy(passive, net.now);
    wait_ms(10000);
    cr_assert_eq(count_ids(A), 0);
}

Test(connect, simultaneous_connects_are_two_connections)
{
    struct cm_conn_param param = param_of(0x111);
    listen_on(A, CM_PS_TCP, QPT_RC);
    listen_on(B, CM_PS_TCP, QPT_RC);
    struct cm_id *a = routed(A, B, CM_PS_TCP, QPT_RC), *b = routed(B, A, CM_PS_TCP, QPT_RC);
    cm_connect(a, &param, NULL, net.now);
    param.qp_num = 0x222;
    cm_connect(b, &param, NULL, net.now);
    settle();
    struct cm_id *pa = requested(A), *pb = requested(B);
    param.qp_num = 0x333;
    cr_assert_eq(cm_accept(pa, &param, NULL, net.now), 0);
    param.qp_num = 0x444;
    cr_assert_eq(cm_accept(pb, &param, NULL, net.now), 0);
    settle();
    next_event(A, CM_EVENT_CONNECT_RESPONSE);
    next_event(B, CM_EVENT_CONNECT_RESPONSE);
    cm_accept(a, NULL, NULL, net.now);
    cm_accept(b, NULL, NULL, net.now);
    settle();
    next_event(A, CM_EVENT_ESTABLISHED);
    next_event(B, CM_EVENT_ESTABLISHED);
}

Test(connect, private_data_have_limits)
{
    struct cm_id *id = routed(A, B, CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(1);
    param.private_data_len = 57;
    cr_assert_eq(cm_connect(id, &param, NULL, net.now), -EINVAL);
    cr_assert_eq(state_of(id), CM_ID_ROUTE_RESOLVED);
    param.private_data_len = 56;
    cr_assert_eq(cm_connect(id, &param, NULL, net.now), 0);
    cr_assert_eq(cm_connect(id, &param, NULL, net.now), -EINVAL);
}

Test(connect, a_route_is_needed)
{
    struct cm_id *id = new_id(A, CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(1);
    cr_assert_eq(cm_connect(id, &param, NULL, net.now), -EINVAL);
    cr_assert_eq(cm_resolve_route(id), -EINVAL);
    cr_assert_eq(cm_accept(id, &param, NULL, net.now), -EINVAL);
    cr_assert_eq(cm_reject(id, 0, NULL, 0, net.now), -EINVAL);
    cr_assert_eq(cm_disconnect(id, net.now), -EINVAL);
}

Test(connect, accept_in_the_wrong_way_rejects)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(2);
    param.private_data_len = 197;
    cr_assert_eq(cm_accept(p.passive, &param, NULL, net.now), -EINVAL);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).status, CM_REJ_CONSUMER_DEFINED);
}

Test(connect, tos_is_the_traffic_class_of_both_ends)
{
    struct cm_id *l = listen_on(B, CM_PS_TCP, QPT_RC), *id = new_id(A, CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(1);
    struct cm_addr dst = addr_of(1, PORT);
    struct cm_qp_attr attr;
    cr_assert_eq(cm_set_option(id, CM_OPTION_TOS, 0x68), 0);
    cr_assert_eq(cm_addr_resolved(id, &A->addr, &dst, &A->route), 0);
    cr_assert_eq(cm_resolve_route(id), 0);
    cr_assert_eq(cm_connect(id, &param, NULL, net.now), 0);
    settle();
    (void)l;
    struct cm_id *passive = requested(B);
    cr_assert_eq(cm_init_qp_attr(passive, QPS_RTR, &attr), 0);
    cr_assert_eq(attr.attr.av.traffic_class, 0x68);
}
