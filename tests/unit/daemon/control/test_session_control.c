// SPDX-License-Identifier: BSD-2-Clause
/* Sessions of the daemon without a network: each field of the control operations, and the ways in which a session
 * ends. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

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

TestSuite(session_control, .init = start, .fini = finish);

Test(session_control, a_user_whose_memory_often_did_not_answer)
{
    struct pm_open_req rq = {PM_ABI_VERSION, 0, (uintptr_t)&fixture_probe, fixture_probe};
    struct ucred other = {getpid(), geteuid() + 1, getegid()}, own = {getpid(), geteuid(), getegid()};
    struct session *t = NULL;

    for (unsigned i = 0; i < MEMORY_STRIKES_MAX; i++) {
        memory_strikes_add(&f.device->memory_strikes, own.uid, clock_ns());
        memory_strikes_add(&f.device->memory_strikes, other.uid, clock_ns());
    }
    cr_assert_eq(session_open(f.device, -1, &other, &rq, (struct client_fds){-1, -1}, &f.rp, &t), -EAGAIN);
    cr_assert_eq(session_open(f.device, -1, &own, &rq, (struct client_fds){-1, -1}, &f.rp, &t), 0,
                 "the daemon's own user is not refused");
    fixture_close_fds(&f);
}

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
        if (op != PM_OP_CREATE_CHANNEL && op != PM_OP_CREATE_CQ && op != PM_OP_ALLOC_PD && op != PM_OP_CREATE_COMP_CNTR)
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

Test(session_control, a_session_cannot_use_objects_of_other_sessions)
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

Test(session_control, memory_must_be_mapped)
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

/* When a session ends, all its objects are freed, in whatever state they are. */
Test(session_control, the_end_of_a_session_frees_everything)
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
        fixture_wqe(&a, WR_RDMA_WRITE, key, memory, memory + 2048, 1024);
        fixture_post_send(s, &a);
        device_pass(f.device, clock_ns());
        session_close(s);
        munmap(q.page, q.rep.size);
        munmap(a.page, a.rep.size);
        munmap(b.page, b.rep.size);
        cr_assert_eq(f.device->num_sessions, 0);
        cr_assert_eq(f.device->pds.count, 0);
    }
    after = open_files();
    cr_assert_eq(before, after, "%d files open before, %d after", before, after);
    cr_assert_eq(device_deadline(f.device), NEVER, "no timer of a queue pair that is gone");
    s = fixture_session(&f);
}
