// SPDX-License-Identifier: BSD-2-Clause
/* Sessions of the daemon without a network: control operations field by field, requests from ring to completion between
 * two queue pairs of one device, and clients that write nonsense to their rings. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include "daemon_fixture.h"

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
}

static void start_pair(void)
{
    start();
    pd = fixture_pd(&f, s);
    key = fixture_mr(&f, s, pd, memory, sizeof(memory),
                     ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC);
    cr_assert_neq(key, 0);
    cr_assert_eq(fixture_cq(&f, s, 64, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &a), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &b), 0);
    cr_assert_eq(fixture_connect(&f, s, a.rep.qpn, b.rep.qpn), 0, "%s", (char *)f.rp.payload);
    cr_assert_eq(fixture_connect(&f, s, b.rep.qpn, a.rep.qpn), 0, "%s", (char *)f.rp.payload);
}

static void finish(void)
{
    fixture_end(&f);
}

static int call(uint32_t op, const void *rq, size_t len)
{
    int rc = fixture_call(&f, s, op, rq, len, NULL, 0);

    fixture_close_fds(&f);
    return rc;
}
#define CALL(op, rq) call(op, &(rq), sizeof(rq))

static int open_files(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void write_wqe(struct fixture_qp *qp, uint8_t opcode, size_t from, size_t to, uint32_t len)
{
    struct pm_send_wqe *w = fixture_send_slot(qp);
    struct pm_sge *sge = (struct pm_sge *)(w + 1);

    memset(w, 0, sizeof(*w));
    w->wr_id = 1000 + qp->tail;
    w->opcode = opcode;
    w->flags = PM_SEND_SIGNALED;
    w->num_sge = 1;
    w->rkey = key;
    w->remote_addr = (uintptr_t)memory + to;
    *sge = (struct pm_sge){(uintptr_t)memory + from, len, key};
}

static void post_recv(struct fixture_qp *qp, size_t to, uint32_t len)
{
    struct pm_recv_wqe *w = fixture_recv_slot(qp);
    struct pm_sge *sge = (struct pm_sge *)(w + 1);

    *w = (struct pm_recv_wqe){.wr_id = 2000 + qp->rq_tail, .num_sge = 1};
    *sge = (struct pm_sge){(uintptr_t)memory + to, len, key};
    fixture_post_recv(s, qp);
}

TestSuite(session_control, .init = start, .fini = finish);
TestSuite(session_rings, .init = start_pair, .fini = finish);

/* --- control
 * ------------------------------------------------------------------------------------------------------------- */

Test(session_control, wrong_operations_and_lengths)
{
    struct pm_handle h = {1};
    uint8_t big[CONTROL_PAYLOAD_MAX] = {0};

    cr_assert_eq(call(0, NULL, 0), -EOPNOTSUPP);
    cr_assert_eq(call(PM_OP_MAX_, NULL, 0), -EOPNOTSUPP);
    cr_assert_eq(call(0xffffffff, NULL, 0), -EOPNOTSUPP);
    cr_assert_eq(call(PM_OP_STATUS, NULL, 0), -EINVAL, "not for bound sessions");
    for (uint32_t op = PM_OP_QUERY_PORT; op < PM_OP_MAX_; op++) {
        cr_assert_eq(call(op, big, 3), -EINVAL, "op %u took 3 bytes", op);
        cr_assert_eq(call(op, big, sizeof(big)), -EINVAL, "op %u took %zu bytes", op, sizeof(big));
        cr_assert_lt(f.rp.len, PM_WHY_MAX + 1);
        cr_assert_eq(f.rp.payload[f.rp.len - 1], 0, "the text ends");
    }
    for (uint32_t op = PM_OP_DEALLOC_PD; op < PM_OP_MAX_; op++) {
        if (op != PM_OP_CREATE_CHANNEL && op != PM_OP_CREATE_CQ && op != PM_OP_ALLOC_PD)
            cr_assert_lt(CALL(op, h), 0, "op %u found something", op);
    }
}

Test(session_control, busy_objects_stay)
{
    struct pm_handle h = {pd};
    struct pm_handle ch;
    struct fixture_cq q;

    pd = fixture_pd(&f, s);
    key = fixture_mr(&f, s, pd, memory, 4096, ACCESS_LOCAL_WRITE);
    h.handle = pd;
    cr_assert_eq(CALL(PM_OP_DEALLOC_PD, h), -EBUSY);
    cr_assert_eq(fixture_call(&f, s, PM_OP_CREATE_CHANNEL, NULL, 0, &ch, sizeof(ch)), 0);
    fixture_close_fds(&f);
    cr_assert_eq(fixture_cq(&f, s, 10, ch.handle, &q), 0);
    cr_assert_eq(q.rep.slots, 16, "the next power of two");
    cr_assert_eq(CALL(PM_OP_DESTROY_CHANNEL, ch), -EBUSY);
    cr_assert_eq(fixture_qp(&f, s, pd, q.rep.handle, 4, &a), 0);
    h.handle = q.rep.handle;
    cr_assert_eq(CALL(PM_OP_DESTROY_CQ, h), -EBUSY);
    h.handle = a.rep.qpn;
    cr_assert_eq(CALL(PM_OP_DESTROY_QP, h), 0);
    cr_assert_eq(CALL(PM_OP_DESTROY_QP, h), -EINVAL, "twice");
    h.handle = q.rep.handle;
    cr_assert_eq(CALL(PM_OP_DESTROY_CQ, h), 0);
    cr_assert_eq(CALL(PM_OP_DESTROY_CHANNEL, ch), 0);
    h.handle = key;
    cr_assert_eq(CALL(PM_OP_DEREG_MR, h), 0);
    cr_assert_eq(CALL(PM_OP_DEREG_MR, h), -EINVAL);
    h.handle = pd;
    cr_assert_eq(CALL(PM_OP_DEALLOC_PD, h), 0);
}

Test(session_control, other_sessions_objects_are_not_ours)
{
    struct session *other = fixture_session(&f);
    struct pm_handle h;
    struct pm_modify_qp_req m;

    pd = fixture_pd(&f, other);
    key = fixture_mr(&f, other, pd, memory, 4096, ACCESS_LOCAL_WRITE);
    cr_assert_eq(fixture_cq(&f, other, 10, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, other, pd, cq.rep.handle, 4, &a), 0);
    cr_assert_eq(fixture_mr(&f, s, pd, memory, 4096, ACCESS_LOCAL_WRITE), 0, "in the other's domain");
    h.handle = pd;
    cr_assert_eq(CALL(PM_OP_DEALLOC_PD, h), -EINVAL);
    h.handle = key;
    cr_assert_eq(CALL(PM_OP_DEREG_MR, h), -EINVAL);
    h.handle = cq.rep.handle;
    cr_assert_eq(CALL(PM_OP_DESTROY_CQ, h), -EINVAL);
    h.handle = a.rep.qpn;
    cr_assert_eq(CALL(PM_OP_DESTROY_QP, h), -EINVAL);
    cr_assert_eq(CALL(PM_OP_QUERY_QP, h), -EINVAL);
    m = (struct pm_modify_qp_req){.qpn = a.rep.qpn, .mask = QPA_STATE, .attr.qp_state = QPS_ERR};
    cr_assert_eq(CALL(PM_OP_MODIFY_QP, m), -EINVAL);
}

Test(session_control, memory_must_be_there)
{
    uint8_t *hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct pm_reg_mr_req r = {
        .access = ACCESS_LOCAL_WRITE, .va = (uintptr_t)hole, .iova = (uintptr_t)hole, .length = 8192};

    munmap(hole + 4096, 4096);
    r.pd = pd = fixture_pd(&f, s);
    cr_assert_eq(CALL(PM_OP_REG_MR, r), -EFAULT);
    r.length = 4096;
    cr_assert_eq(CALL(PM_OP_REG_MR, r), 0);
    r.length = UINT64_MAX;
    cr_assert_lt(CALL(PM_OP_REG_MR, r), 0);
    r.length = 0;
    cr_assert_eq(CALL(PM_OP_REG_MR, r), 0, "nothing is always there");
    r.access = ACCESS_REMOTE_WRITE;
    cr_assert_eq(CALL(PM_OP_REG_MR, r), -EINVAL, "remote write needs local write");
    r.pd = 999;
    cr_assert_eq(CALL(PM_OP_REG_MR, r), -EINVAL);
}

Test(session_control, queue_pair_limits)
{
    struct pm_create_qp_req r;

    pd = fixture_pd(&f, s);
    cr_assert_eq(fixture_cq(&f, s, 10, 0, &cq), 0);
    const struct pm_create_qp_req good = {.pd = pd,
                                          .send_cq = cq.rep.handle,
                                          .recv_cq = cq.rep.handle,
                                          .type = QPT_RC,
                                          .max_send_wr = 1,
                                          .max_recv_wr = 1};
#define TRY(field, value) (r = good, r.field = (value), CALL(PM_OP_CREATE_QP, r))
    cr_assert_eq(TRY(max_send_sge, 1), 0);
    cr_assert_eq(TRY(type, 77), -EOPNOTSUPP);
    cr_assert_eq(TRY(srq, 1), -EINVAL);
    cr_assert_eq(TRY(pd, 0), -EINVAL);
    cr_assert_eq(TRY(send_cq, 0), -EINVAL);
    cr_assert_eq(TRY(recv_cq, 999), -EINVAL);
    cr_assert_eq(TRY(max_send_wr, DEVICE_MAX_QP_WR + 1), -EINVAL);
    cr_assert_eq(TRY(max_recv_wr, UINT32_MAX), -EINVAL);
    cr_assert_eq(TRY(max_send_sge, ENGINE_MAX_SGE + 1), -EINVAL);
    cr_assert_eq(TRY(max_recv_sge, UINT32_MAX), -EINVAL);
    cr_assert_eq(TRY(max_inline, ENGINE_MAX_INLINE + 1), -EINVAL);
    r = good;
    r.max_send_wr = r.max_recv_wr = DEVICE_MAX_QP_WR;
    r.max_send_sge = r.max_recv_sge = ENGINE_MAX_SGE;
    r.max_inline = ENGINE_MAX_INLINE;
    cr_assert_eq(CALL(PM_OP_CREATE_QP, r), 0, "all limits at once");
    r = good;
    r.max_send_wr = r.max_recv_wr = 0;
    cr_assert_eq(CALL(PM_OP_CREATE_QP, r), 0, "no queues at all");
}

Test(session_control, wrong_addresses_are_named)
{
    struct pm_modify_qp_req m = {.mask = QPA_STATE | QPA_AV, .attr.qp_state = QPS_RTR};

    pd = fixture_pd(&f, s);
    cr_assert_eq(fixture_cq(&f, s, 10, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 4, &a), 0);
    m.qpn = a.rep.qpn;
    m.attr.av.dgid[0] = 0xfd;
    m.attr.av.dgid[15] = 9;
    cr_assert_eq(CALL(PM_OP_MODIFY_QP, m), -EINVAL);
    cr_assert_not_null(strstr((char *)f.rp.payload, "fd00::9"), "%s", (char *)f.rp.payload);
    cr_assert_not_null(strstr((char *)f.rp.payload, "127.0.0.1"));
    memcpy(m.attr.av.dgid, f.device->gid, 16);
    m.attr.av.sgid_index = 1;
    cr_assert_eq(CALL(PM_OP_MODIFY_QP, m), -EINVAL);
    cr_assert_not_null(strstr((char *)f.rp.payload, "index 1"));
    m.attr.av.sgid_index = 0;
    m.attr.qp_state = 256 + QPS_INIT;
    cr_assert_eq(CALL(PM_OP_MODIFY_QP, m), -EINVAL, "cut to a byte it would be INIT");
}

/* Whatever a session made is gone when it ends, in whatever state it was. */
Test(session_control, ending_frees_everything)
{
    int before, after;

    session_close(s);
    before = open_files();
    for (int i = 0; i < 50; i++) {
        struct fixture_cq q;
        struct pm_handle ch;

        s = fixture_session(&f);
        pd = fixture_pd(&f, s);
        key = fixture_mr(&f, s, pd, memory, 4096, ACCESS_LOCAL_WRITE);
        cr_assert_eq(fixture_call(&f, s, PM_OP_CREATE_CHANNEL, NULL, 0, &ch, sizeof(ch)), 0);
        fixture_close_fds(&f);
        cr_assert_eq(fixture_cq(&f, s, 16, ch.handle, &q), 0);
        cr_assert_eq(fixture_qp(&f, s, pd, q.rep.handle, 4, &a), 0);
        cr_assert_eq(fixture_qp(&f, s, pd, q.rep.handle, 4, &b), 0);
        cr_assert_eq(fixture_connect(&f, s, a.rep.qpn, b.rep.qpn), 0);
        write_wqe(&a, WR_RDMA_WRITE, 0, 2048, 1024);
        fixture_post_send(s, &a);
        datapath_pass(f.device, clock_ns());
        session_close(s);
        munmap(q.page, q.rep.size);
        munmap(a.page, a.rep.size);
        munmap(b.page, b.rep.size);
        cr_assert_eq(f.device->num_sessions, 0);
        cr_assert_eq(f.device->pds.count, 0);
    }
    after = open_files();
    cr_assert_eq(before, after, "%d files open before, %d after", before, after);
    cr_assert_eq(datapath_deadline(f.device), NEVER, "no timer of a queue pair that is gone");
    s = fixture_session(&f);
}

/* --- rings
 * --------------------------------------------------------------------------------------------------------------- */

Test(session_rings, write_send_read_atomic)
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

Test(session_rings, inline_data_is_a_copy)
{
    struct pm_send_wqe *w = fixture_send_slot(&a);
    struct pm_cqe e;

    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 0);
    w->flags |= PM_SEND_INLINE;
    w->inline_len = 60;
    memset(w + 1, 0x77, 60);
    fixture_post_send(s, &a);
    datapath_pass(f.device, clock_ns());
    memset(w, 0, a.rep.sq_stride); /* what a client does to a slot that was read must not matter */
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e) && e.status == WC_SUCCESS);
    cr_assert(memory[100] == 0x77 && memory[159] == 0x77 && memory[160] == 0);
}

/* The queue pair fails with IBV_EVENT_QP_FATAL; the session and its other queue pairs live on. */
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

Test(session_rings, tail_beyond_the_ring)
{
    atomic_store(&a.page->sq_tail, a.rep.sq_slots + 1);
    fixture_ring(s, &a);
    assert_failed("one more than there are slots");
    atomic_store(&a.page->sq_tail, 0x80000000u);
    fixture_ring(s, &a);
    fixture_run(&f);
    cr_assert_eq(f.device->io.bad_rings, 1, "it is not read any more");
}

Test(session_rings, receive_tail_beyond_the_ring)
{
    atomic_store(&a.page->rq_tail, UINT32_MAX);
    write_wqe(&b, WR_SEND, 0, 0, 100); /* makes the engine ask for a receive request */
    fixture_post_send(s, &b);
    datapath_pass(f.device, clock_ns());
    datapath_pass(f.device, clock_ns());
    cr_assert_eq(f.device->io.bad_rings, 1);
}

Test(session_rings, too_many_sges)
{
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_send_slot(&a)->num_sge = 255;
    fixture_post_send(s, &a);
    assert_failed("255 SGEs");
}

Test(session_rings, too_much_inline_data)
{
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_send_slot(&a)->flags |= PM_SEND_INLINE;
    fixture_send_slot(&a)->inline_len = UINT32_MAX;
    fixture_post_send(s, &a);
    assert_failed("4 GiB inline");
}

Test(session_rings, unknown_opcode)
{
    write_wqe(&a, 200, 0, 100, 8);
    fixture_post_send(s, &a);
    assert_failed("opcode 200");
}

Test(session_rings, send_before_the_queue_pair_can)
{
    cr_assert_eq(fixture_state(&f, s, a.rep.qpn, QPS_RESET), 0);
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_post_send(s, &a);
    fixture_run(&f);
    cr_assert_eq(f.device->io.bad_rings, 1);
}

Test(session_rings, reset_forgets_the_rings)
{
    struct pm_cqe e;

    atomic_store(&a.page->sq_tail, 0x12345678);
    fixture_ring(s, &a);
    assert_failed("nonsense");
    cr_assert_eq(fixture_state(&f, s, a.rep.qpn, QPS_RESET), 0);
    cr_assert_eq(fixture_state(&f, s, b.rep.qpn, QPS_RESET), 0);
    cr_assert_eq(atomic_load(&a.page->rq_notify), 0);
    cr_assert_eq(fixture_connect(&f, s, a.rep.qpn, b.rep.qpn), 0);
    cr_assert_eq(fixture_connect(&f, s, b.rep.qpn, a.rep.qpn), 0);
    a.tail = 0x12345678;
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_post_send(s, &a);
    fixture_run(&f);
    while (fixture_poll(&cq, &e))
        cr_assert_eq(e.status, WC_SUCCESS);
    cr_assert_eq(cq.consumer, 1);
}

Test(session_rings, error_flushes_both_rings_now_and_later)
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

Test(session_rings, more_requests_than_a_turn_takes)
{
    struct fixture_cq big;
    struct fixture_qp q, r;
    struct pm_cqe e;
    unsigned n = 0;

    cr_assert_eq(fixture_cq(&f, s, 8192, 0, &big), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, big.rep.handle, 4096, &q), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, big.rep.handle, 4096, &r), 0);
    cr_assert_eq(fixture_connect(&f, s, q.rep.qpn, r.rep.qpn), 0);
    cr_assert_eq(fixture_connect(&f, s, r.rep.qpn, q.rep.qpn), 0);
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

Test(session_rings, completion_queue_overrun)
{
    struct fixture_cq small;
    struct fixture_qp q, r;
    struct pm_cqe e;
    unsigned n = 0;

    cr_assert_eq(fixture_cq(&f, s, 4, 0, &small), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, small.rep.handle, 16, &q), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &r), 0);
    cr_assert_eq(fixture_connect(&f, s, q.rep.qpn, r.rep.qpn), 0);
    cr_assert_eq(fixture_connect(&f, s, r.rep.qpn, q.rep.qpn), 0);
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

/* The first loser ends the queue; another one that uses it goes on until it loses one, too, and is not left waiting for it. */
Test(session_rings, completion_queue_overrun_of_two)
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

/* A consumer index that can't be does not make the daemon write outside of the queue, nor wait for ever. */
Test(session_rings, hostile_consumer_index)
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

Test(session_rings, resize_keeps_what_was_not_read)
{
    struct pm_resize_cq_req rq = {cq.rep.handle, 200};
    struct pm_resize_cq_rep rep;
    struct pm_cqe e;

    for (unsigned i = 0; i < 7; i++) {
        write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
        fixture_post_send(s, &a);
    }
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e) && fixture_poll(&cq, &e));
    rq.cqe = 4;
    cr_assert_eq(CALL(PM_OP_RESIZE_CQ, rq), -EINVAL, "five are waiting");
    rq.cqe = 200;
    cr_assert_eq(fixture_call(&f, s, PM_OP_RESIZE_CQ, &rq, sizeof(rq), &rep, sizeof(rep)), 0);
    cr_assert(rep.slots == 256 && rep.consumer == 2);
    cq.page = fixture_map(&f, rep.size);
    cq.entries = (struct pm_cqe *)((uint8_t *)cq.page + PM_CQ_ENTRIES);
    cq.rep.slots = rep.slots;
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_post_send(s, &a);
    fixture_run(&f);
    for (unsigned i = 2; i < 8; i++) {
        cr_assert(fixture_poll(&cq, &e));
        cr_assert_eq(e.wr_id, 1000 + i);
    }
    cr_assert_not(fixture_poll(&cq, &e));
}

Test(session_rings, memory_that_went_away)
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
    cr_assert(e.status == WC_REM_OP_ERR || e.status == WC_REM_ACCESS_ERR, "status %u", e.status);
}

/* Doorbells that nobody owns, and all of them at once. */
Test(session_rings, hostile_doorbells)
{
    struct pm_cqe e;

    for (unsigned i = 0; i < PM_DOORBELLS / 64; i++)
        atomic_store(&s->page->bits[i], UINT64_MAX);
    for (unsigned i = 0; i < PM_DOORBELLS / 64 / 64; i++)
        atomic_store(&s->page->summary[i], UINT64_MAX);
    datapath_pass(f.device, clock_ns());
    write_wqe(&a, WR_RDMA_WRITE, 0, 100, 8);
    fixture_post_send(s, &a);
    fixture_run(&f);
    cr_assert(fixture_poll(&cq, &e) && e.status == WC_SUCCESS);
}
