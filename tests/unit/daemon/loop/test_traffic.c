// SPDX-License-Identifier: BSD-2-Clause
/* Requests from the ring to the completion between two QPs of one device, without a network, and clients that write
 * invalid rings. */
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/verbs.h>

#include "daemon/monitor/capture.h"
#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;
static struct session *s;
static struct fixture_cq cq;
static struct fixture_qp a, b;
static uint32_t pd, key;
static uint8_t memory[65536];

static void start(void)
{
    cr_assert(fixture_start(&f));
    s = fixture_session(&f);
    cr_assert_not_null(s);
    pd = fixture_pd(&f, s);
    key = fixture_mr(&f, s, pd, memory, sizeof(memory),
                     ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC);
    cr_assert_neq(key, 0);
    cr_assert_eq(fixture_cq(&f, s, 64, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &a), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &b), 0);
    cr_assert_eq(fixture_connect_both(&f, s, &a, &b), 0, "%s", (char *)f.rp.payload);
}

static void finish(void)
{
    fixture_end(&f);
}

static void write_wqe(struct fixture_qp *qp, uint8_t opcode, size_t from, size_t to, uint32_t len)
{
    fixture_wqe(qp, opcode, key, memory + from, memory + to, len);
}

static void post_recv(struct fixture_qp *qp, size_t to, uint32_t len)
{
    struct pm_recv_wqe *w = fixture_recv_slot(qp);
    struct pm_sge *sge = (struct pm_sge *)(w + 1);

    *w = (struct pm_recv_wqe){.wr_id = 2000 + qp->rq_tail, .num_sge = 1};
    *sge = (struct pm_sge){(uintptr_t)memory + to, len, key};
    fixture_post_recv(s, qp);
}

TestSuite(traffic, .init = start, .fini = finish);

/* The payload of such packets goes to the memory of clients. From other memory, it would be copied once more. */
Test(traffic, packets_behind_a_gap_are_kept_in_the_buffers_of_the_copier)
{
    const struct copier *c = &f.device->copier;
    const uint8_t *mem = f.device->config.reorder_mem;

    cr_assert(mem && f.device->config.selective);
    cr_expect(mem >= c->buffers && mem + f.device->config.reorder_bytes <= c->buffers + c->size);
}

Test(traffic, write_send_read_atomic)
{
    struct pm_cqe e;

    for (int i = 0; i < 3000; i++)
        memory[i] = (uint8_t)(i * 3 + 1);
    write_wqe(&a, WR_RDMA_WRITE, 0, 8192, 3000);
    fixture_post_send(s, &a);
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e));
    cr_assert(e.status == WC_SUCCESS && e.opcode == WC_RDMA_WRITE && e.wr_id == 1000 && e.qpn == a.rep.qpn &&
              e.slot == 0);
    cr_assert_arr_eq(memory + 8192, memory, 3000);

    post_recv(&b, 16384, 4096);
    write_wqe(&a, WR_SEND_WITH_IMM, 0, 0, 2000);
    fixture_send_slot(&a)->imm = 0xaabbccdd;
    fixture_post_send(s, &a);
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e));
    if (!(e.kind & PM_CQE_RECV))
        cr_assert(fixture_poll(&cq, &e));
    cr_assert(e.status == WC_SUCCESS && e.opcode == WC_RECV && e.wr_id == 2000 && e.byte_len == 2000 && e.slot == 0);
    cr_assert(e.wc_flags & WC_WITH_IMM);
    cr_assert_eq(e.imm, 0xaabbccdd, "as it was given");
    cr_assert_arr_eq(memory + 16384, memory, 2000);
    while (fixture_poll(&cq, &e))
        ;

    write_wqe(&a, WR_RDMA_READ, 32768, 0, 1500);
    fixture_post_send(s, &a);
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e) && e.status == WC_SUCCESS);
    cr_assert_arr_eq(memory + 32768, memory, 1500);

    memset(memory + 40000, 0, 8);
    memory[40000] = 5;
    write_wqe(&a, WR_ATOMIC_FETCH_AND_ADD, 48000, 40000, 8);
    fixture_send_slot(&a)->compare_add = 3;
    fixture_post_send(s, &a);
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e) && e.status == WC_SUCCESS);
    cr_assert(memory[40000] == 8 && memory[48000] == 5);
}

Test(traffic, inline_data_is_a_copy)
{
    struct pm_send_wqe *w = fixture_send_slot(&a);
    struct pm_cqe e;

    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 0);
    w->flags |= PM_SEND_INLINE;
    w->inline_len = 60;
    memset(w + 1, 0x77, 60);
    fixture_post_send(s, &a);
    device_pass(f.device, clock_ns());
    memset(w, 0, a.rep.sq_stride); /* the client may change a slot that was already read */
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e) && e.status == WC_SUCCESS);
    cr_assert(memory[100] == 0x77 && memory[159] == 0x77 && memory[160] == 0);
}

/* The QP fails with IBV_EVENT_QP_FATAL. The session and its other QPs go on. */
static void assert_failed(const char *why)
{
    struct pm_handle h = {a.rep.qpn};
    struct pm_query_qp_rep rep;

    fixture_run(&f);
    cr_assert_eq(fixture_call(&f, s, PM_OP_QUERY_QP, &h, sizeof(h), &rep, sizeof(rep)), 0);
    cr_assert_eq(rep.attr.qp_state, QPS_ERR, "%s", why);
    cr_assert_eq(f.device->io.bad_rings, 1, "%s", why);
    h.handle = b.rep.qpn;
    cr_assert_eq(fixture_call(&f, s, PM_OP_QUERY_QP, &h, sizeof(h), &rep, sizeof(rep)), 0);
    cr_assert_eq(rep.attr.qp_state, QPS_RTS);
}

Test(traffic, tail_beyond_the_ring)
{
    atomic_store(&a.page->sq_tail, a.rep.sq_slots + 1);
    fixture_ring(s, &a);
    assert_failed("one more than there are slots");
    atomic_store(&a.page->sq_tail, 0x80000000u);
    fixture_ring(s, &a);
    fixture_run(&f);
    cr_assert_eq(f.device->io.bad_rings, 1, "it is not read any more");
}

Test(traffic, receive_tail_beyond_the_ring)
{
    atomic_store(&a.page->rq_tail, UINT32_MAX);
    write_wqe(&b, WR_SEND, 0, 0, 100); /* makes the engine ask for a receive request */
    fixture_post_send(s, &b);
    device_pass(f.device, clock_ns());
    device_pass(f.device, clock_ns());
    cr_assert_eq(f.device->io.bad_rings, 1);
}

Test(traffic, too_many_sges)
{
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_send_slot(&a)->num_sge = 255;
    fixture_post_send(s, &a);
    assert_failed("255 SGEs");
}

Test(traffic, too_much_inline_data)
{
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_send_slot(&a)->flags |= PM_SEND_INLINE;
    fixture_send_slot(&a)->inline_len = UINT32_MAX;
    fixture_post_send(s, &a);
    assert_failed("4 GiB inline");
}

Test(traffic, unknown_opcode)
{
    write_wqe(&a, 200, 0, 100, 8);
    fixture_post_send(s, &a);
    assert_failed("opcode 200");
}

Test(traffic, send_before_rts)
{
    cr_assert_eq(fixture_state(&f, s, a.rep.qpn, QPS_RESET), 0);
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_post_send(s, &a);
    fixture_run(&f);
    cr_assert_eq(f.device->io.bad_rings, 1);
}

Test(traffic, reset_forgets_the_rings)
{
    struct pm_cqe e;

    atomic_store(&a.page->sq_tail, 0x12345678);
    fixture_ring(s, &a);
    assert_failed("nonsense");
    cr_assert_eq(fixture_state(&f, s, a.rep.qpn, QPS_RESET), 0);
    cr_assert_eq(fixture_state(&f, s, b.rep.qpn, QPS_RESET), 0);
    cr_assert_eq(atomic_load(&a.page->rq_notify), 0);
    cr_assert_eq(fixture_connect_both(&f, s, &a, &b), 0, "%s", (char *)f.rp.payload);
    a.tail = 0x12345678;
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_post_send(s, &a);
    fixture_run(&f);
    while (fixture_poll(&cq, &e))
        cr_assert_eq(e.status, WC_SUCCESS);
    cr_assert_eq(cq.consumer, 1);
}

Test(traffic, error_flushes_both_rings_now_and_later)
{
    struct pm_cqe e;
    unsigned sends = 0, recvs = 0;

    for (int i = 0; i < 5; i++)
        post_recv(&a, 0, 64);
    cr_assert_eq(fixture_state(&f, s, a.rep.qpn, QPS_ERR), 0);
    fixture_run(&f);
    cr_assert_eq(atomic_load(&a.page->rq_notify), 1);
    for (int i = 0; i < 3; i++)
        post_recv(&a, 0, 64);
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_post_send(s, &a);
    fixture_run(&f);
    while (fixture_poll(&cq, &e)) {
        cr_assert_eq(e.status, WC_WR_FLUSH_ERR);
        sends += !(e.kind & PM_CQE_RECV);
        recvs += e.kind & PM_CQE_RECV;
    }
    cr_assert_eq(sends, 1);
    cr_assert_eq(recvs, 8);
}

Test(traffic, more_requests_than_one_pass_takes)
{
    struct fixture_cq big;
    struct fixture_qp q, r;
    struct pm_cqe e;
    unsigned n = 0;

    cr_assert_eq(fixture_cq(&f, s, 8192, 0, &big), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, big.rep.handle, 4096, &q), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, big.rep.handle, 4096, &r), 0);
    cr_assert_eq(fixture_connect_both(&f, s, &q, &r), 0, "%s", (char *)f.rp.payload);
    for (unsigned i = 0; i < 4096; i++) {
        write_wqe(&q, WR_RDMA_WRITE, 0, 100 + i, 1);
        q.tail++;
    }
    atomic_store(&q.page->sq_tail, q.tail);
    fixture_ring(s, &q);
    fixture_run(&f);
    while (fixture_poll(&big, &e)) {
        cr_assert_eq(e.wr_id, 1000 + n);
        cr_assert_eq(e.status, WC_SUCCESS);
        n++;
    }
    cr_assert_eq(n, 4096);
}

static uint8_t state_of(uint32_t qpn)
{
    struct pm_handle h = {qpn};
    struct pm_query_qp_rep rep = {0};

    cr_assert_eq(fixture_call(&f, s, PM_OP_QUERY_QP, &h, sizeof(h), &rep, sizeof(rep)), 0);
    return (uint8_t)rep.attr.qp_state;
}

Test(traffic, completion_queue_overrun)
{
    struct fixture_cq small;
    struct fixture_qp q, r;
    struct pm_cqe e;
    unsigned n = 0;

    cr_assert_eq(fixture_cq(&f, s, 4, 0, &small), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, small.rep.handle, 16, &q), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &r), 0);
    cr_assert_eq(fixture_connect_both(&f, s, &q, &r), 0, "%s", (char *)f.rp.payload);
    for (unsigned i = 0; i < 6; i++) {
        write_wqe(&q, WR_RDMA_WRITE, 0, 100, 8);
        fixture_post_send(s, &q);
    }
    fixture_run(&f);
    cr_assert_eq(f.device->io.cq_overruns, 1);
    cr_assert_eq(f.device->io.completions_lost, 2);
    while (fixture_poll(&small, &e))
        cr_assert_eq(e.wr_id, 1000 + n++);
    cr_assert_eq(n, 4, "those that had room are whole");
    cr_assert_eq(state_of(q.rep.qpn), QPS_ERR, "it lost completions");
    cr_assert_eq(state_of(r.rep.qpn), QPS_RTS, "it did not");
}

/* The first QP that loses a completion ends the CQ. Another QP that uses the CQ goes on until it loses one too, and
 * does not wait for it for ever. */
Test(traffic, completion_queue_overrun_of_two)
{
    struct fixture_cq small;
    struct fixture_qp q[2], r[2];

    cr_assert_eq(fixture_cq(&f, s, 4, 0, &small), 0);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(fixture_qp(&f, s, pd, small.rep.handle, 16, &q[i]), 0);
        cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &r[i]), 0);
        cr_assert_eq(fixture_connect(&f, s, q[i].rep.qpn, r[i].rep.qpn), 0);
        cr_assert_eq(fixture_connect(&f, s, r[i].rep.qpn, q[i].rep.qpn), 0);
    }
    for (unsigned i = 0; i < 5; i++) {
        write_wqe(&q[0], WR_RDMA_WRITE, 0, 100, 8);
        fixture_post_send(s, &q[0]);
    }
    fixture_run(&f);
    cr_assert_eq(f.device->io.cq_overruns, 1);
    cr_assert_eq(state_of(q[0].rep.qpn), QPS_ERR);
    cr_assert_eq(state_of(q[1].rep.qpn), QPS_RTS, "it has lost nothing yet");
    write_wqe(&q[1], WR_RDMA_WRITE, 0, 100, 8);
    fixture_post_send(s, &q[1]);
    fixture_run(&f);
    cr_assert_eq(state_of(q[1].rep.qpn), QPS_ERR, "its completion is lost");
    cr_assert_eq(f.device->io.cq_overruns, 1, "it is the same one");
    cr_assert_geq(f.device->io.completions_lost, 2);
}

/* With an invalid consumer index, the daemon neither writes outside of the queue nor waits for ever. */
Test(traffic, hostile_consumer_index)
{
    atomic_store(&cq.page->consumer, 0x40000000);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 16; i++) {
            write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
            fixture_post_send(s, &a);
        }
        fixture_run(&f);
    }
    cr_assert_geq(f.device->io.cq_overruns, 1);
}

Test(traffic, resize_keeps_unread_completions)
{
    struct pm_resize_cq_req rq = {cq.rep.handle, 200};
    struct pm_handle h = {cq.rep.handle};
    struct pm_resize_cq_rep rep;
    struct pm_switch_cq_rep moved;
    struct pm_cqe e;

    for (unsigned i = 0; i < 7; i++) {
        write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
        fixture_post_send(s, &a);
    }
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e) && fixture_poll(&cq, &e));
    rq.cqe = 4;
    cr_assert_eq(fixture_call(&f, s, PM_OP_RESIZE_CQ, &rq, sizeof(rq), NULL, 0), -EINVAL, "five are waiting");
    rq.cqe = 200;
    cr_assert_eq(fixture_call(&f, s, PM_OP_RESIZE_CQ, &rq, sizeof(rq), &rep, sizeof(rep)), 0);
    cr_assert_eq(rep.slots, 256);
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_post_send(s, &a);
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e) && e.wr_id == 1002, "the old ring is in use meanwhile");
    cq.page = fixture_map(&f, rep.size);
    cr_assert_eq(fixture_call(&f, s, PM_OP_SWITCH_CQ, &h, sizeof(h), &moved, sizeof(moved)), 0);
    cr_assert_eq(moved.consumer, 3);
    cr_assert_eq(fixture_call(&f, s, PM_OP_SWITCH_CQ, &h, sizeof(h), NULL, 0), -EINVAL, "there is nothing new");
    cq.entries = (struct pm_cqe *)((uint8_t *)cq.page + PM_CQ_ENTRIES);
    cq.rep.slots = rep.slots;
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_post_send(s, &a);
    fixture_run(&f);
    for (unsigned i = 3; i < 9; i++) {
        cr_assert(fixture_poll(&cq, &e));
        cr_assert_eq(e.wr_id, 1000 + i);
    }
    cr_assert_not(fixture_poll(&cq, &e));
}

/* The requests that are posted between the two steps of a resize may be too many for the new size. Then nothing
 * changes. */
Test(traffic, resize_that_came_too_late)
{
    struct pm_resize_cq_req rq = {cq.rep.handle, 4};
    struct pm_handle h = {cq.rep.handle};
    struct pm_cqe e;

    cr_assert_eq(fixture_call(&f, s, PM_OP_SWITCH_CQ, &h, sizeof(h), NULL, 0), -EINVAL, "nobody has resized it");
    cr_assert_eq(fixture_call(&f, s, PM_OP_RESIZE_CQ, &rq, sizeof(rq), NULL, 0), 0);
    fixture_close_fds(&f);
    for (unsigned i = 0; i < 5; i++) {
        write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
        fixture_post_send(s, &a);
    }
    fixture_run(&f);
    cr_assert_eq(fixture_call(&f, s, PM_OP_SWITCH_CQ, &h, sizeof(h), NULL, 0), -EINVAL);
    for (unsigned i = 0; i < 5; i++)
        cr_assert(fixture_poll(&cq, &e) && e.wr_id == 1000 + i);
    cr_assert_eq(fixture_call(&f, s, PM_OP_RESIZE_CQ, &rq, sizeof(rq), NULL, 0), 0, "begun, and never ended");
    fixture_close_fds(&f);
}

Test(traffic, memory_that_is_unmapped)
{
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t gone = fixture_mr(&f, s, pd, page, 4096, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE);
    struct pm_cqe e;

    munmap(page, 4096);
    write_wqe(&a, WR_RDMA_WRITE, 0, 0, 64);
    fixture_send_slot(&a)->rkey = gone;
    fixture_send_slot(&a)->remote_addr = (uintptr_t)page;
    fixture_post_send(s, &a);
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e));
    cr_assert_eq(e.status, WC_SUCCESS, "status %u: as on a NIC, which has the page pinned", e.status);
    cr_expect_eq(engine_counters(f.device->engine)->mem_unmapped, 1);
}

/* Doorbells without an owner, and all doorbells at once. */
Test(traffic, hostile_doorbells)
{
    struct pm_cqe e;

    for (unsigned i = 0; i < PM_DOORBELLS / 64; i++)
        atomic_store(&s->page->bits[i], UINT64_MAX);
    for (unsigned i = 0; i < PM_DOORBELLS / 64 / 64; i++)
        atomic_store(&s->page->summary[i], UINT64_MAX);
    device_pass(f.device, clock_ns());
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_post_send(s, &a);
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e) && e.status == WC_SUCCESS);
}

/* The ACKs of other QPs must not wait for all that one QP has to send. */
Test(traffic, a_pass_receives_before_it_has_sent_everything)
{
    const unsigned all = 15 * sizeof(memory) / 256; /* packets with the path MTU of the fixture's queue pairs */
    struct pm_cqe e;
    unsigned n = 0;

    for (unsigned i = 0; i < 15; i++) {
        write_wqe(&a, WR_RDMA_WRITE, 0, 0, sizeof(memory));
        fixture_post_send(s, &a);
    }
    device_pass(f.device, clock_ns());
    cr_expect(f.device->io.loopback_packets < all, "%u packets", (unsigned)f.device->io.loopback_packets);
    fixture_run(&f);
    while (fixture_poll(&cq, &e)) {
        cr_assert_eq(e.status, WC_SUCCESS);
        n++;
    }
    cr_expect_eq(n, 15);
    cr_expect_geq(f.device->io.loopback_packets, all);
}

/* --- runs (daemon/core/base/pkt_run.h) --------------------------------------------------------- */

/* A WRITE of many packets. Were its packets handed over as runs? */
static bool hands_over(void)
{
    struct pm_cqe e;

    memset(memory + 8192, 0, 3000);
    write_wqe(&a, WR_RDMA_WRITE, 0, 8192, 3000);
    fixture_post_send(s, &a);
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e) && e.status == WC_SUCCESS);
    cr_expect_arr_eq(memory + 8192, memory, 3000);
    return f.device->tx.hand_over;
}

static void set_fault(const char *text)
{
    struct fault_spec spec;

    cr_assert_eq(fault_parse(text, &spec, NULL, 0), 0);
    fault_init(&f.device->fault, &spec, 1, 0, clock_ns());
}

Test(traffic, packets_are_runs_while_nothing_wants_to_see_them)
{
    struct pm_capture_req rq = {.flags = PM_CAPTURE_IN | PM_CAPTURE_OUT, .ring_bytes = 65536};
    struct fault_spec none = {.n = 0};

    for (int i = 0; i < 3000; i++)
        memory[i] = (uint8_t)(i * 3 + 1);
    cr_expect(hands_over());

    f.rp.fds = 0;
    struct capture *c = capture_create(f.device, &rq, &f.rp);
    cr_assert_not_null(c);
    capture_attach(c);
    cr_expect_not(hands_over(), "a capture");
    cr_expect_geq(c->packets, 12 + 1, "each packet, and an ACK");
    capture_detach(c);
    capture_destroy(c);
    cr_expect(hands_over());

    set_fault("drop=any#1000000");
    cr_expect_not(hands_over(), "a fault");
    fault_init(&f.device->fault, &none, 1, 0, clock_ns());
    cr_expect(hands_over());

    f.device->unkind.kinds = UNKIND_PLACEMENT;
    cr_expect_not(hands_over(), "an unkind device");
    f.device->unkind.kinds = 0;
    cr_expect(hands_over());
}
