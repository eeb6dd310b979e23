// SPDX-License-Identifier: BSD-2-Clause
/* UD QPs in the daemon: valid and invalid requests with an address vector in the ring. */
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include "daemon/status/status.h"
#include "tests/unit/daemon/daemon_fixture.h"

#define GRH 40
#define QKEY 0x11223344u

static const struct user root = {.known = true, .administers = true};
static struct fixture f;
static struct session *s;
static struct fixture_cq cq;
static struct fixture_qp a, b;
static uint32_t pd, key;
static uint8_t memory[65536];

static int modify(uint32_t qpn, enum qp_state state, uint32_t mask)
{
    struct pm_modify_qp_req m = {.qpn = qpn, .mask = QPA_STATE | mask};

    m.attr.qp_state = state;
    m.attr.port_num = 1;
    m.attr.qkey = QKEY;
    m.attr.sq_psn = 5;
    return fixture_call(&f, s, PM_OP_MODIFY_QP, &m, sizeof(m), NULL, 0);
}

static void to_rts(uint32_t qpn)
{
    cr_assert_eq(modify(qpn, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY), 0, "%s", (char *)f.rp.payload);
    cr_assert_eq(modify(qpn, QPS_RTR, 0), 0, "%s", (char *)f.rp.payload);
    cr_assert_eq(modify(qpn, QPS_RTS, QPA_SQ_PSN), 0, "%s", (char *)f.rp.payload);
}

static void start(void)
{
    cr_assert(fixture_start(&f));
    s = fixture_session(&f);
    pd = fixture_pd(&f, s);
    key = fixture_mr(&f, s, pd, memory, sizeof(memory), ACCESS_LOCAL_WRITE);
    cr_assert_eq(fixture_cq(&f, s, 64, 0, &cq), 0);
    cr_assert_eq(fixture_qp_typed(&f, s, pd, cq.rep.handle, QPT_UD, 0, 16, &a), 0, "%s", (char *)f.rp.payload);
    cr_assert_eq(fixture_qp_typed(&f, s, pd, cq.rep.handle, QPT_UD, 0, 16, &b), 0);
    to_rts(a.rep.qpn);
    to_rts(b.rep.qpn);
}

static void finish(void)
{
    fixture_end(&f);
}

TestSuite(ud_rings, .init = start, .fini = finish);

static void post_recv(size_t to, uint32_t len)
{
    struct pm_recv_wqe *w = fixture_recv_slot(&b);

    *w = (struct pm_recv_wqe){.wr_id = 2000 + b.rq_tail, .num_sge = 1};
    *(struct pm_sge *)(w + 1) = (struct pm_sge){(uintptr_t)memory + to, len, key};
    fixture_post_recv(s, &b);
}

/* Writes a request to b. The test may change it before fixture_post_send. */
static struct pm_av *write_send(uint32_t len)
{
    struct pm_send_wqe *w = fixture_send_slot(&a);
    struct pm_av *av = (struct pm_av *)(w + 1);

    memset(w, 0, a.rep.sq_stride);
    w->wr_id = 1000 + a.tail;
    w->opcode = WR_SEND;
    w->flags = PM_SEND_SIGNALED;
    w->num_sge = 1;
    w->remote_qpn = b.rep.qpn;
    w->remote_qkey = QKEY;
    memcpy(av->dgid, f.device->gid, 16);
    av->hop_limit = 33;
    av->traffic_class = 0x5c;
    *(struct pm_sge *)(av + 1) = (struct pm_sge){(uintptr_t)memory, len, key};
    return av;
}

/* Takes the next completion of this kind, and drops others. */
static bool next(bool recv, struct pm_cqe *e)
{
    while (fixture_poll(&cq, e)) {
        if (!!(e->kind & PM_CQE_RECV) == recv)
            return true;
    }
    return false;
}

static void send_and_run(void)
{
    fixture_post_send(s, &a);
    fixture_run(&f);
}

Test(ud_rings, an_address_of_a_datagram_is_no_connection)
{
    json_t *use;

    write_send(500);
    send_and_run();
    fixture_call(&f, s, PM_OP_DESTROY_QP, &(struct pm_handle){.handle = a.rep.qpn}, sizeof(struct pm_handle), NULL, 0);
    json_t *status = status_device(f.device, &root);
    use = json_object_get(status, "usage");
    cr_assert_eq(engine_counters(f.device->engine)->sent_pkts, 1);
    cr_assert_eq(json_integer_value(json_object_get(use, "makers")), 1);
    cr_assert_eq(json_integer_value(json_object_get(use, "connected")), 0);
    cr_assert_eq(json_integer_value(json_object_get(use, "connected_pkts")), 0);
    json_decref(status);
}

Test(ud_rings, datagram_and_its_header)
{
    struct pm_cqe e = {0};

    for (int i = 0; i < 500; i++)
        memory[i] = (uint8_t)(i * 5 + 1);
    post_recv(8192, 1000);
    write_send(500);
    send_and_run();
    cr_assert(next(true, &e));
    cr_assert_eq(e.status, WC_SUCCESS);
    cr_assert_eq(e.byte_len, GRH + 500);
    cr_assert(e.wc_flags & WC_GRH);
    cr_assert_eq(e.src_qp, a.rep.qpn);
    cr_assert_arr_eq(memory + 8192 + GRH, memory, 500);
    cr_assert_eq(e.inline_len, GRH);
    /* Bytes 20 to 39: the IPv4 header. */
    cr_assert_eq(e.data[20], 0x45);
    cr_assert_eq(e.data[21], 0x5c);
    cr_assert_eq(e.data[28], 33);
    cr_assert_arr_eq(e.data + 32, f.device->gid + 12, 4);
    cr_assert_arr_eq(e.data + 36, f.device->gid + 12, 4);
}

/* The loop makes no pass between the doorbell and the request. */
Test(ud_rings, requests_posted_before_a_resize_count)
{
    struct pm_resize_cq_req rq = {cq.rep.handle, 4};

    for (int i = 0; i < 6; i++) {
        write_send(10);
        fixture_post_send(s, &a);
    }
    cr_assert_eq(fixture_call(&f, s, PM_OP_RESIZE_CQ, &rq, sizeof(rq), NULL, 0), -EINVAL);
}

/* Like the test above, but the daemon has not even read the ring, for example because it slept. */
static void post_and_destroy(unsigned messages)
{
    struct pm_handle h = {a.rep.qpn};
    struct pm_cqe e;

    for (unsigned i = 0; i < messages; i++) {
        post_recv(8192, 100);
        write_send(10);
        fixture_post_send(s, &a);
    }
    cr_assert_eq(fixture_call(&f, s, PM_OP_DESTROY_QP, &h, sizeof(h), NULL, 0), 0);
    fixture_run(&f);
    for (unsigned i = 0; i < messages; i++)
        cr_assert(next(true, &e) && e.status == WC_SUCCESS, "message %u", i);
}
Test(ud_rings, posted_requests_leave_before_the_qp_is_destroyed)
{
    post_and_destroy(10);
}
/* Even if there are more than a QP may send in its turn. */
Test(ud_rings, more_posted_requests_than_one_pass_takes_leave_too)
{
    cr_assert_eq(fixture_cq(&f, s, 2048, 0, &cq), 0);
    cr_assert_eq(fixture_qp_typed(&f, s, pd, cq.rep.handle, QPT_UD, 0, 1000, &a), 0);
    cr_assert_eq(fixture_qp_typed(&f, s, pd, cq.rep.handle, QPT_UD, 0, 1000, &b), 0);
    to_rts(a.rep.qpn);
    to_rts(b.rep.qpn);
    post_and_destroy(1000);
}

Test(ud_rings, inline_data_follows_the_address)
{
    struct pm_cqe e = {0};
    struct pm_av *av = write_send(0);
    struct pm_send_wqe *w = fixture_send_slot(&a);

    post_recv(8192, 1000);
    w->flags |= PM_SEND_INLINE;
    w->inline_len = 60;
    memset(av + 1, 0x66, 60);
    send_and_run();
    cr_assert(next(true, &e));
    cr_assert(e.status == WC_SUCCESS && e.byte_len == GRH + 60);
    cr_assert(memory[8192 + GRH] == 0x66 && memory[8192 + GRH + 59] == 0x66);
}

Test(ud_rings, wrong_qkey_and_wrong_number_are_dropped)
{
    struct pm_cqe e = {0};

    post_recv(8192, 1000);
    write_send(100);
    fixture_send_slot(&a)->remote_qkey = QKEY + 1;
    send_and_run();
    write_send(100);
    fixture_send_slot(&a)->remote_qpn = b.rep.qpn + 77;
    send_and_run();
    cr_assert_not(next(true, &e));
    cr_assert_eq(b.rq_tail, 1);
    write_send(100);
    fixture_send_slot(&a)->remote_qkey = 0x80000000u; /* means the QP's own Q_Key */
    send_and_run();
    cr_assert(next(true, &e) && e.wr_id == 2000);
}

/* An unreachable address or an invalid GID index does not fail the ring. It is an error of that request. */
Test(ud_rings, unreachable_address)
{
    struct pm_cqe e = {0};
    struct pm_av *av = write_send(100);

    memset(av->dgid, 0, 16);
    send_and_run();
    cr_assert(next(false, &e) && e.status == WC_LOC_QP_OP_ERR);
    cr_assert_eq(fixture_state(&f, s, a.rep.qpn, QPS_RTS), 0, "from SQE");
    av = write_send(100);
    memset(av->dgid, 0xfd, 16);
    av->sgid_index = 255;
    av->flow_label = UINT32_MAX;
    av->sl = 255;
    fixture_post_send(s, &a);
    fixture_run(&f);
    cr_assert(next(false, &e) && e.status == WC_LOC_QP_OP_ERR);
    cr_assert_eq(fixture_state(&f, s, a.rep.qpn, QPS_RTS), 0);
    cr_assert_eq(f.device->io.bad_rings, 0);
    post_recv(8192, 1000);
    write_send(100);
    send_and_run();
    cr_assert(next(true, &e) && e.status == WC_SUCCESS, "the next one gets through");
}

/* The socket can't send it, because the test has none. The sender's request completes anyway, and a counter counts
 * the datagram. */
Test(ud_rings, datagrams_that_the_network_can_not_deliver)
{
    static const uint8_t nowhere[16] = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 1};
    struct pm_cqe e = {0};

    memcpy(write_send(100)->dgid, nowhere, 16);
    send_and_run();
    cr_assert(next(false, &e) && e.status == WC_SUCCESS);
    cr_assert_eq(f.device->io.tx_unreachable + f.device->io.tx_errors, 1);
    post_recv(8192, 1000);
    write_send(100);
    send_and_run();
    cr_assert(next(true, &e) && e.status == WC_SUCCESS, "the next one gets through");
}

Test(ud_rings, too_many_sges)
{
    write_send(100);
    fixture_send_slot(&a)->num_sge = 3;
    send_and_run();
    cr_assert_eq(f.device->io.bad_rings, 1);
}

Test(ud_rings, too_much_inline_data)
{
    write_send(100);
    fixture_send_slot(&a)->flags |= PM_SEND_INLINE;
    fixture_send_slot(&a)->inline_len = a.rep.max_inline + 1;
    send_and_run();
    cr_assert_eq(f.device->io.bad_rings, 1);
}

Test(ud_rings, operations_of_other_types)
{
    write_send(100);
    fixture_send_slot(&a)->opcode = WR_BIND_MW;
    send_and_run();
    cr_assert_eq(f.device->io.bad_rings, 1);
}

/* The slot has room for the address vector and for all that the limits allow. */
Test(ud_rings, slots_hold_the_granted_sizes)
{
    cr_assert_geq(a.rep.sq_stride, sizeof(struct pm_send_wqe) + sizeof(struct pm_av) + 2 * sizeof(struct pm_sge));
    cr_assert_geq(a.rep.sq_stride, sizeof(struct pm_send_wqe) + sizeof(struct pm_av) + a.rep.max_inline);
    cr_assert_eq(a.rep.sq_stride % 64, 0);
}
