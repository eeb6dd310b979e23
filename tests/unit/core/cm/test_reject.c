// SPDX-License-Identifier: BSD-2-Clause
/* Requests that are rejected, by programs or by the instance; MRAs; messages from elsewhere. */
#include "tests/unit/core/cm/cm_fixture.h"

TestSuite(reject, .init = net_setup, .fini = net_teardown);

Test(reject, the_program_says_why)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_id_info info;
    uint8_t data[149] = "no thanks";
    cr_assert_eq(cm_reject(p.passive, 0, data, 149, net.now), -EINVAL);
    cr_assert_eq(cm_reject(p.passive, 0, data, 10, net.now), 0);
    settle();
    struct cm_event ev = next_event(A, CM_EVENT_REJECTED);
    cr_assert_eq(ev.status, CM_REJ_CONSUMER_DEFINED);
    cr_assert_eq(ev.param.private_data_len, 148);
    cr_assert_str_eq((char *)ev.param.private_data, "no thanks");
    cr_assert_eq(net.last[CM_REJ & 0x1f].rej.answers, CM_ANSWERS_REQ);
    cm_id_query(p.active, &info);
    cr_assert_eq(info.state, CM_ID_DISCONNECTED);
    cr_assert_eq(info.last_reject, CM_REJ_CONSUMER_DEFINED);
    cr_assert_not(info.sent_reject);
    cm_id_query(p.passive, &info);
    cr_assert(info.sent_reject);
    cm_id_query(p.listener, &info);
    cr_assert_eq(info.waiting, 0);
    cr_assert_eq(cm_reject(p.passive, 0, NULL, 0, net.now), -EINVAL);
}

Test(reject, lost_rej_is_sent_again)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    net.lose_count = 1;
    cm_reject(p.passive, 0, NULL, 0, net.now);
    settle();
    no_event(A);
    cm_id_destroy(p.passive, net.now); /* the answer outlives the ID */
    next_timer();
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).status, CM_REJ_CONSUMER_DEFINED);
    no_event(B);
    wait_ms(30000);
    cr_assert_eq(count_ids(B), 1);
}

Test(reject, the_active_side_rejects_the_reply)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(2);
    cm_accept(p.passive, &param, NULL, net.now);
    settle();
    next_event(A, CM_EVENT_CONNECT_RESPONSE);
    net.lose = CM_REJ;
    net.lose_count = 1;
    cr_assert_eq(cm_reject(p.active, CM_REJ_VENDOR_OPTION_NOT_SUPPORTED, NULL, 0, net.now), 0);
    settle();
    next_timer(); /* the repeated REP is rejected again */
    cr_assert_eq(next_event(B, CM_EVENT_REJECTED).status, CM_REJ_VENDOR_OPTION_NOT_SUPPORTED);
    cr_assert_eq(net.last[CM_REJ & 0x1f].rej.answers, CM_ANSWERS_REP);
}

Test(reject, an_rtu_for_a_connection_that_is_gone)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(2);
    cm_accept(p.passive, &param, NULL, net.now);
    settle();
    next_event(A, CM_EVENT_CONNECT_RESPONSE);
    net.lose = CM_REJ;
    net.lose_count = 1;
    cm_id_destroy(p.passive, net.now);
    settle();
    wait_ms(30000);
    cr_assert_eq(count_ids(B), 1);
    cr_assert_eq(cm_accept(p.active, NULL, NULL, net.now), 0);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).status, CM_REJ_INVALID_COMM_ID);
    cr_assert_eq(state_of(p.active), CM_ID_TIME_WAIT);
}

Test(reject, a_rej_overtakes_the_rep)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(2);
    struct cm_datagram rep;
    cm_accept(p.passive, &param, NULL, net.now);
    cr_assert(cm_pop_datagram(B->cm, &rep));
    cm_reject(p.passive, 0, NULL, 0, net.now);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).status, CM_REJ_CONSUMER_DEFINED);
    carry(&rep);
    settle();
    no_event(A);
    no_event(B);
}

Test(reject, a_rep_for_an_id_that_has_forgotten_its_rej)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(2);
    cm_accept(p.passive, &param, NULL, net.now);
    settle();
    wait_ms(300); /* an MRA, so that the peer waits for long */
    next_event(A, CM_EVENT_CONNECT_RESPONSE);
    net.lose_count = 10;
    cm_reject(p.active, 0, NULL, 0, net.now);
    settle();
    while (B->num_ev == 0)
        cr_assert(next_timer());
    cr_assert_eq(next_event(B, CM_EVENT_REJECTED).status, CM_REJ_INVALID_COMM_ID);
}

Test(reject, no_listener)
{
    struct cm_id *id = routed(A, B, CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(1);
    cm_connect(id, &param, NULL, net.now);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).status, CM_REJ_INVALID_SERVICE_ID);
    cr_assert_eq(cm_deadline(A->cm), NEVER);
}

Test(reject, listener_of_another_type)
{
    struct cm_id *l = listen_on(B, CM_PS_IB, QPT_RC), *id = routed(A, B, CM_PS_IB, QPT_UC);
    struct cm_conn_param param = param_of(1);
    (void)l;
    cm_connect(id, &param, NULL, net.now);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).status, CM_REJ_INVALID_TRANSPORT_TYPE);
}

Test(reject, path_mtu_of_the_peer_is_too_large)
{
    struct cm_id *l = listen_on(B, CM_PS_TCP, QPT_RC), *id;
    struct cm_conn_param param = param_of(1);
    (void)l;
    A->route.path_mtu = 5;
    id = routed(A, B, CM_PS_TCP, QPT_RC);
    cm_connect(id, &param, NULL, net.now);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).status, CM_REJ_INVALID_MTU);
}

Test(reject, backlog_is_of_requests_without_owner)
{
    struct cm_id *l = new_id(B, CM_PS_TCP, QPT_RC), *first = routed(A, B, CM_PS_TCP, QPT_RC),
                 *second = routed(A, B, CM_PS_TCP, QPT_RC);
    struct cm_addr addr = addr_of(1, PORT);
    struct cm_conn_param param = param_of(1);
    cm_bind(l, &addr, &B->route);
    cm_listen(l, 1);
    cm_connect(first, &param, NULL, net.now);
    param.qp_num = 2;
    cm_connect(second, &param, NULL, net.now);
    settle();
    cr_assert_eq(B->num_ev, 1);
    cr_assert_eq(cm_counters(B->cm)->no_room, 1);
    requested(B);
    next_timer(); /* the peer repeats it */
    requested(B);
    no_event(A);
}

Test(reject, a_forgotten_request_comes_again)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    cm_forget_request(p.passive);
    settle();
    no_event(A);
    cr_assert_eq(count_ids(B), 1);
    next_timer();
    next_event(B, CM_EVENT_CONNECT_REQUEST);
}

/* --- MRA ------------------------------------------------------------------------------------------ */

Test(reject, a_busy_program_makes_the_peer_wait)
{
    struct pair p = request(CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(2);
    cr_assert_eq(net.sent[CM_MRA & 0x1f], 0);
    wait_ms(300);
    cr_assert_eq(net.sent[CM_MRA & 0x1f], 1);
    cr_assert_eq(net.last[CM_MRA & 0x1f].mra.answers, CM_ANSWERS_REQ);
    cr_assert_eq(net.last[CM_MRA & 0x1f].mra.service_timeout, 24);
    wait_ms(600000); /* longer than the time without an MRA */
    no_event(A);
    no_event(B);
    cm_accept(p.passive, &param, NULL, net.now);
    settle();
    next_event(A, CM_EVENT_CONNECT_RESPONSE);
    wait_ms(300);
    cr_assert_eq(net.last[CM_MRA & 0x1f].mra.answers, CM_ANSWERS_REP);
    wait_ms(600000);
    no_event(B);
    cm_accept(p.active, NULL, NULL, net.now);
    settle();
    next_event(B, CM_EVENT_ESTABLISHED);
}

Test(reject, a_program_that_never_answers_is_unreachable)
{
    request(CM_PS_TCP, QPT_RC);
    wait_ms(1200000);
    next_event(A, CM_EVENT_UNREACHABLE);
}

/* --- messages that do not fit ------------------------------------------------------------------------ */

static struct cm_datagram from_stranger(const struct cm_msg *m)
{
    struct cm_datagram d = {.hop_limit = 64};
    struct cm_addr stranger = addr_of(7, 0);
    cm_msg_encode(m, d.mad);
    memcpy(d.local_gid, stranger.gid, 16); /* give() turns it */
    memcpy(d.remote_gid, B->addr.gid, 16);
    return d;
}

Test(reject, a_stranger_can_not_end_a_connection)
{
    struct pair p = established();
    struct cm_id_info info;
    uint64_t bad = cm_counters(B->cm)->bad_messages;
    cm_id_query(p.passive, &info);
    struct cm_msg rej = {.attribute = CM_REJ,
                         .rej = {.local_comm_id = info.remote_comm_id,
                                 .remote_comm_id = info.local_comm_id,
                                 .answers = CM_ANSWERS_OTHER,
                                 .reason = CM_REJ_STALE_CONN}};
    struct cm_msg dreq = {.attribute = CM_DREQ,
                          .dreq = {.local_comm_id = info.remote_comm_id,
                                   .remote_comm_id = info.local_comm_id,
                                   .remote_qpn = info.local_qpn}};
    struct cm_msg wrong_qp = dreq;
    struct cm_datagram d = from_stranger(&rej);
    give(B, &d);
    d = from_stranger(&dreq);
    give(B, &d);
    wrong_qp.dreq.remote_qpn++;
    d = from_stranger(&wrong_qp);
    memcpy(d.local_gid, A->addr.gid, 16);
    give(B, &d);
    settle();
    no_event(B);
    cr_assert_eq(state_of(p.passive), CM_ID_ESTABLISHED);
    cr_assert_eq(cm_counters(B->cm)->bad_messages, bad + 3);
}

Test(reject, a_stranger_can_not_use_the_guid_and_qp_of_a_peer)
{
    struct pair p = established();
    struct cm_msg req = net.last[CM_REQ & 0x1f];
    req.req.local_comm_id++;
    memcpy(req.req.primary.local_gid, addr_of(7, 0).gid, 16);
    struct cm_datagram d = from_stranger(&req);
    give(B, &d);
    settle();
    cr_assert_eq(net.last[CM_REJ & 0x1f].rej.reason, CM_REJ_STALE_CONN);
    cr_assert_eq(state_of(p.passive), CM_ID_ESTABLISHED);
    no_event(B);
}

Test(reject, a_path_to_somebody_else_is_invalid)
{
    listen_on(B, CM_PS_TCP, QPT_RC);
    struct cm_id *id = routed(A, B, CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(1);
    struct cm_datagram d;
    struct cm_msg m;
    cm_connect(id, &param, NULL, net.now);
    cr_assert(cm_pop_datagram(A->cm, &d));
    cm_msg_decode(d.mad, &m);
    m.req.primary.local_gid[15] ^= 1;
    cm_msg_encode(&m, d.mad);
    give(B, &d);
    settle();
    no_event(B);
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).status, CM_REJ_INVALID_GID);
}

Test(reject, a_class_version_of_the_future)
{
    struct cm_id *id = routed(A, B, CM_PS_TCP, QPT_RC);
    struct cm_conn_param param = param_of(1);
    struct cm_datagram d;
    cm_connect(id, &param, NULL, net.now);
    cr_assert(cm_pop_datagram(A->cm, &d));
    d.mad[2] = 3;
    give(B, &d);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_REJECTED).status, CM_REJ_INVALID_CLASS_VERSION);
}

Test(reject, an_alternate_path_is_refused)
{
    struct pair p = established();
    struct cm_id_info info;
    struct cm_datagram d = {.hop_limit = 64};
    cm_id_query(p.active, &info);
    struct cm_msg lap = {.attribute = CM_LAP,
                         .transaction_id = 9,
                         .lap = {.local_comm_id = info.local_comm_id, .remote_comm_id = info.remote_comm_id}};
    cm_msg_encode(&lap, d.mad);
    memcpy(d.local_gid, A->addr.gid, 16);
    memcpy(d.remote_gid, B->addr.gid, 16);
    give(B, &d);
    settle();
    const struct cm_msg *apr = &net.last[CM_APR & 0x1f];
    cr_assert_eq(apr->transaction_id, 9);
    cr_assert_eq(apr->apr.remote_comm_id, info.local_comm_id);
    cr_assert_neq(apr->apr.ap_status, 0);
    cr_assert_eq(cm_counters(B->cm)->lap_received, 1);
}

/* Random bytes with a right header never break an invariant. */
Test(reject, noise)
{
    struct pair p = established();
    uint32_t seed = 1;
    struct cm_id_info info;
    cm_id_query(p.passive, &info);
    for (unsigned i = 0; i < 20000; i++) {
        struct cm_datagram d = {.hop_limit = 64}, out;
        for (unsigned k = 0; k < MAD_LEN; k++) {
            seed = seed * 1664525 + 1013904223;
            d.mad[k] = (uint8_t)(seed >> 24);
        }
        struct mad_header h = {.base_version = MAD_BASE_VERSION,
                               .mgmt_class = MAD_CLASS_CM,
                               .class_version = MAD_CLASS_CM_VERSION,
                               .method = MAD_METHOD_SEND,
                               .attribute_id = (uint16_t)(0x10 + i % 11)};
        mad_encode(&h, d.mad);
        if (i % 2) {
            struct cm_msg m;
            cm_msg_decode(d.mad, &m);
            m.rtu.local_comm_id = info.remote_comm_id;
            m.rtu.remote_comm_id = info.local_comm_id;
            if (m.attribute != CM_REQ && m.attribute != CM_SIDR_REQ)
                cm_msg_encode(&m, d.mad);
        }
        memcpy(d.local_gid, A->addr.gid, 16);
        memcpy(d.remote_gid, B->addr.gid, 16);
        give(B, &d);
        take_events(B);
        B->num_ev = 0;
        while (cm_pop_datagram(B->cm, &out)) {
        }
    }
}
