// SPDX-License-Identifier: BSD-2-Clause
/* Datagram services: asking for the QP of a port. */
#include "tests/unit/core/cm/cm_fixture.h"

TestSuite(sidr, .init = net_setup, .fini = net_teardown);

Test(sidr, the_answer_has_the_qp_and_an_address_handle)
{
    struct pair p = {.listener = listen_on(B, CM_PS_UDP, QPT_UD)};
    struct cm_conn_param param = param_of(0x111);
    p.active = routed(A, B, CM_PS_UDP, QPT_UD);
    cr_assert_eq(cm_connect(p.active, &param, NULL, net.now), 0);
    settle();
    struct cm_event ev = next_event(B, CM_EVENT_CONNECT_REQUEST);
    cr_assert(ev.ud);
    cr_assert_eq(ev.param.private_data_len, 180);
    cr_assert_arr_eq(ev.param.private_data, "hello\0", 6);
    cm_id_set_owner(ev.id, OWNER(2));
    cr_assert_eq(net.last[CM_SIDR_REQ & 0x1f].sidr_req.service_id, 0x0111ull << 16 | PORT);

    param.qp_num = 0x222;
    cr_assert_eq(cm_accept(ev.id, &param, NULL, net.now), 0);
    cr_assert_eq(state_of(ev.id), CM_ID_ESTABLISHED);
    settle();
    struct cm_event done = next_event(A, CM_EVENT_ESTABLISHED);
    cr_assert(done.ud);
    cr_assert_eq(done.param.qp_num, 0x222);
    cr_assert_eq(done.param.qkey, 0x01234567);
    cr_assert_eq(done.param.private_data_len, 136);
    cr_assert_arr_eq(done.param.private_data, "hello\0", 6);
    cr_assert_arr_eq(done.av.dgid, B->addr.gid, 16);
    cr_assert_eq(done.av.hop_limit, 64);
    no_event(B);
    cr_assert_eq(cm_deadline(A->cm), NEVER);
    cr_assert_eq(cm_accept(ev.id, &param, NULL, net.now), -EINVAL);
    cr_assert_eq(cm_disconnect(ev.id, net.now), 0);
    settle();
    no_event(A);
}

Test(sidr, rejected_is_unreachable_with_the_status)
{
    struct pair p = request(CM_PS_UDP, QPT_UD);
    uint8_t data[137] = "full";
    cr_assert_eq(cm_reject(p.passive, 0, data, 137, net.now), -EINVAL);
    cr_assert_eq(cm_reject(p.passive, 0, data, 5, net.now), 0);
    settle();
    struct cm_event ev = next_event(A, CM_EVENT_UNREACHABLE);
    cr_assert_eq(ev.status, CM_SIDR_REJECT);
    cr_assert_eq(state_of(p.active), CM_ID_DISCONNECTED);
}

Test(sidr, no_listener_is_unsupported)
{
    struct cm_id *id = routed(A, B, CM_PS_UDP, QPT_UD);
    struct cm_conn_param param = param_of(1);
    cm_connect(id, &param, NULL, net.now);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_UNREACHABLE).status, CM_SIDR_UNSUPPORTED);
}

Test(sidr, no_answer_is_a_timeout)
{
    struct cm_id *id = routed(A, B, CM_PS_UDP, QPT_UD);
    struct cm_conn_param param = param_of(1);
    uint64_t start = net.now;
    net.lose_count = 1000;
    cm_connect(id, &param, NULL, net.now);
    settle();
    while (A->num_ev == 0)
        cr_assert(next_timer());
    cr_assert_eq(next_event(A, CM_EVENT_UNREACHABLE).status, -ETIMEDOUT);
    cr_assert_eq((net.now - start) / MS, 16 * 4096);
    cr_assert_eq(net.sent[CM_REJ & 0x1f], 0);
}

Test(sidr, lost_answer_is_sent_again)
{
    struct pair p = request(CM_PS_UDP, QPT_UD);
    struct cm_conn_param param = param_of(2);
    net.lose_count = 1;
    cm_accept(p.passive, &param, NULL, net.now);
    settle();
    cm_id_destroy(p.passive, net.now);
    no_event(A);
    next_timer();
    next_event(A, CM_EVENT_ESTABLISHED);
    no_event(B);
    wait_ms(30000);
    cr_assert_eq(count_ids(B), 1);
}

Test(sidr, destroyed_request_is_rejected)
{
    struct pair p = request(CM_PS_UDP, QPT_UD);
    cm_id_destroy(p.passive, net.now);
    settle();
    cr_assert_eq(next_event(A, CM_EVENT_UNREACHABLE).status, CM_SIDR_REJECT);
}

Test(sidr, destroyed_while_asking)
{
    struct pair p = request(CM_PS_UDP, QPT_UD);
    struct cm_conn_param param = param_of(2);
    cm_id_destroy(p.active, net.now);
    cr_assert_eq(count_ids(A), 0);
    cr_assert_eq(cm_accept(p.passive, &param, NULL, net.now), 0);
    settle();
    no_event(A);
    cr_assert_eq(cm_counters(A->cm)->bad_messages, 1);
}

Test(sidr, private_data_have_limits)
{
    struct cm_id *id = routed(A, B, CM_PS_UDP, QPT_UD);
    struct cm_conn_param param = param_of(1);
    param.private_data_len = 181;
    cr_assert_eq(cm_connect(id, &param, NULL, net.now), -EINVAL);
    param.private_data_len = 180;
    cr_assert_eq(cm_connect(id, &param, NULL, net.now), 0);
}
