// SPDX-License-Identifier: BSD-2-Clause
/* Completion counters in the daemon: values in the session page without a poll, changes by the client, attaching,
 * limits, and the end of a session that has some. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>

#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;
static struct session *s;
static struct fixture_cq cq;
static struct fixture_qp a, b;
static uint32_t pd, key;
static uint8_t memory[16384];

static void start(void)
{
    cr_assert(fixture_start(&f));
    s = fixture_session(&f);
    pd = fixture_pd(&f, s);
    key = fixture_mr(&f, s, pd, memory, sizeof(memory),
                     ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC);
    cr_assert_eq(fixture_cq(&f, s, 64, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &a), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 16, &b), 0);
}

static void finish(void)
{
    fixture_end(&f);
}

TestSuite(comp_cntr, .init = start, .fini = finish);

static int64_t create(struct session *who, uint32_t type)
{
    struct pm_create_comp_cntr_req r = {.type = type};
    struct pm_handle h = {0};
    int rc = fixture_call(&f, who, PM_OP_CREATE_COMP_CNTR, &r, sizeof(r), &h, sizeof(h));

    return rc ? rc : (int64_t)h.handle;
}

static int attach(struct session *who, const struct fixture_qp *qp, int64_t cntr, unsigned ops)
{
    struct pm_attach_comp_cntr_req r = {.comp_cntr = (uint32_t)cntr, .qpn = qp->rep.qpn, .ops = ops};

    return fixture_call(&f, who, PM_OP_ATTACH_COMP_CNTR, &r, sizeof(r), NULL, 0);
}

static int modify(int64_t cntr, uint16_t entry, uint16_t add, uint64_t value)
{
    struct pm_modify_comp_cntr_req r = {.comp_cntr = (uint32_t)cntr, .entry = entry, .add = add, .value = value};

    return fixture_call(&f, s, PM_OP_MODIFY_COMP_CNTR, &r, sizeof(r), NULL, 0);
}

static int on_handle(uint32_t op, int64_t handle)
{
    struct pm_handle h = {(uint32_t)handle};

    return fixture_call(&f, s, op, &h, sizeof(h), NULL, 0);
}

static uint64_t done(int64_t cntr)
{
    return atomic_load(&s->page->comp_cntr[cntr - 1].done);
}
static uint64_t failed(int64_t cntr)
{
    return atomic_load(&s->page->comp_cntr[cntr - 1].failed);
}

#define OP(name) (1u << CNTR_##name)

static void post(uint8_t opcode, uint32_t rkey, uint32_t len, uint8_t flags)
{
    fixture_wqe(&a, opcode, key, memory, memory + 8192, len);
    fixture_send_slot(&a)->rkey = rkey;
    fixture_send_slot(&a)->flags = flags;
    fixture_post_send(s, &a);
}

static void post_recv(uint32_t len)
{
    struct pm_recv_wqe *w = fixture_recv_slot(&b);

    w->num_sge = 1;
    *(struct pm_sge *)(w + 1) = (struct pm_sge){(uintptr_t)memory, len, key};
    fixture_post_recv(s, &b);
}

Test(comp_cntr, counts_without_a_poll)
{
    int64_t sends = create(s, PM_COMP_CNTR_REQUESTS), writes = create(s, PM_COMP_CNTR_REQUESTS);
    int64_t reads = create(s, PM_COMP_CNTR_BYTES), arrived = create(s, PM_COMP_CNTR_BYTES);
    int64_t recvs = create(s, PM_COMP_CNTR_REQUESTS);

    cr_assert_eq(attach(s, &a, sends, OP(SEND)), 0, "%s", (char *)f.rp.payload);
    cr_assert_eq(attach(s, &a, writes, OP(WRITE)), 0);
    cr_assert_eq(attach(s, &a, reads, OP(READ)), 0);
    cr_assert_eq(attach(s, &b, arrived, OP(REMOTE_WRITE) | OP(REMOTE_READ)), 0);
    cr_assert_eq(attach(s, &b, recvs, OP(RECV)), 0);
    cr_assert_eq(fixture_connect_both(&f, s, &a, &b), 0);
    post_recv(100);
    post_recv(100);
    post(WR_SEND, 0, 60, 0);
    post(WR_RDMA_WRITE, key, 1000, 0);
    post(WR_RDMA_WRITE_WITH_IMM, key, 500, 0);
    post(WR_RDMA_READ, key, 2000, 0);
    post(WR_ATOMIC_FETCH_AND_ADD, key, 8, 0);
    fixture_run(&f);
    cr_expect_eq(done(sends), 1);
    cr_expect_eq(done(writes), 2);
    cr_expect_eq(done(reads), 2000);
    cr_expect_eq(done(arrived), 1000 + 500 + 2000);
    cr_expect_eq(done(recvs), 2, "a SEND and a WRITE with immediate data");
    cr_expect(failed(sends) + failed(writes) + failed(reads) + failed(arrived) + failed(recvs) == 0);
}

Test(comp_cntr, counts_errors)
{
    int64_t mine = create(s, PM_COMP_CNTR_BYTES), theirs = create(s, PM_COMP_CNTR_REQUESTS);

    cr_assert_eq(attach(s, &a, mine, CNTR_ALL), 0);
    cr_assert_eq(attach(s, &b, theirs, OP(REMOTE_WRITE) | OP(RECV)), 0);
    cr_assert_eq(fixture_connect_both(&f, s, &a, &b), 0);
    post_recv(100);
    post(WR_RDMA_WRITE, key, 700, 0);
    post(WR_RDMA_WRITE, key ^ 1, 10, 0); /* not a key */
    post(WR_SEND, 0, 10, 0); /* flushed */
    fixture_run(&f);
    cr_expect_eq(done(mine), 700);
    cr_expect_eq(failed(mine), 2);
    cr_expect_eq(done(theirs), 1);
    cr_expect_eq(failed(theirs), 2, "the refused WRITE and the flushed receive");
}

Test(comp_cntr, of_several_queue_pairs)
{
    int64_t c = create(s, PM_COMP_CNTR_REQUESTS);

    cr_assert_eq(attach(s, &a, c, OP(WRITE)), 0);
    cr_assert_eq(attach(s, &b, c, OP(REMOTE_WRITE)), 0);
    cr_assert_eq(fixture_connect_both(&f, s, &a, &b), 0);
    post(WR_RDMA_WRITE, key, 100, 0);
    fixture_run(&f);
    cr_expect_eq(done(c), 2);
    cr_expect_eq(on_handle(PM_OP_DESTROY_COMP_CNTR, c), -EBUSY);
    cr_expect_eq(on_handle(PM_OP_DESTROY_QP, a.rep.qpn), 0);
    cr_expect_eq(on_handle(PM_OP_DESTROY_COMP_CNTR, c), -EBUSY);
    cr_expect_eq(on_handle(PM_OP_DESTROY_QP, b.rep.qpn), 0);
    cr_expect_eq(on_handle(PM_OP_DESTROY_COMP_CNTR, c), 0);
    cr_expect_eq(on_handle(PM_OP_DESTROY_COMP_CNTR, c), -EINVAL);
}

Test(comp_cntr, changes_by_the_client)
{
    int64_t c = create(s, PM_COMP_CNTR_REQUESTS);

    cr_expect_eq(modify(c, 0, 0, UINT64_MAX), 0);
    cr_expect_eq(modify(c, 1, 1, 5), 0);
    cr_expect_eq(modify(c, 1, 1, 6), 0);
    cr_expect_eq(done(c), UINT64_MAX);
    cr_expect_eq(failed(c), 11);
    /* The daemon keeps the values. A client that writes to its page deceives only itself. */
    atomic_store(&s->page->comp_cntr[c - 1].done, 77);
    cr_expect_eq(modify(c, 0, 1, 2), 0);
    cr_expect_eq(done(c), 1, "it wraps");
    cr_expect_eq(modify(c, 2, 0, 0), -EINVAL);
    cr_expect_eq(modify(c, 0, 2, 0), -EINVAL);
    cr_expect_eq(modify(c + 1, 0, 0, 0), -EINVAL);
}

Test(comp_cntr, arguments)
{
    struct session *other = fixture_session(&f);
    int64_t c = create(s, PM_COMP_CNTR_REQUESTS), theirs = create(other, PM_COMP_CNTR_REQUESTS);

    cr_expect_eq(create(s, 2), -EOPNOTSUPP);
    cr_expect_eq(attach(s, &a, 0, OP(SEND)), -EINVAL);
    cr_expect_eq(attach(s, &a, 5000, OP(SEND)), -EINVAL);
    cr_expect_eq(attach(other, &a, theirs, OP(SEND)), -EINVAL, "another session's QP");
    cr_expect_eq(attach(s, &a, c, 0), -EINVAL);
    cr_expect_eq(attach(s, &a, c, 1u << CNTR_OPS), -EOPNOTSUPP);
    cr_expect_eq(attach(s, &a, c, OP(SEND) | OP(READ)), 0);
    cr_expect_eq(attach(s, &a, c, OP(READ) | OP(RECV)), -EBUSY);
    cr_expect_eq(fixture_connect_both(&f, s, &a, &b), 0);
    cr_expect_eq(attach(s, &a, c, OP(RECV)), -EINVAL, "it is in RTS");
    fixture_state(&f, s, a.rep.qpn, QPS_RESET);
    cr_expect_eq(attach(s, &a, c, OP(RECV)), 0);
}

Test(comp_cntr, an_xrc_target_has_none)
{
    int64_t c = create(s, PM_COMP_CNTR_REQUESTS);
    struct pm_open_xrcd_req open = {.oflags = O_CREAT};
    struct pm_handle domain = {0};
    struct fixture_qp target = {0};

    cr_assert_eq(fixture_call(&f, s, PM_OP_OPEN_XRCD, &open, sizeof(open), &domain, sizeof(domain)), 0);
    struct pm_create_qp_req r = {.xrcd = domain.handle, .type = QPT_XRC_RECV};
    cr_assert_eq(fixture_call(&f, s, PM_OP_CREATE_QP, &r, sizeof(r), &target.rep, sizeof(target.rep)), 0);
    fixture_close_fds(&f);
    cr_expect_eq(attach(s, &target, c, OP(RECV)), -EOPNOTSUPP);
}

Test(comp_cntr, as_many_as_there_may_be)
{
    int64_t first = create(s, PM_COMP_CNTR_REQUESTS), c = 0;

    cr_expect_eq(modify(first, 0, 0, 9), 0);
    for (unsigned i = 1; i < PM_COMP_CNTRS; i++) {
        c = create(s, PM_COMP_CNTR_BYTES);
        cr_assert(c > first && c <= PM_COMP_CNTRS);
    }
    cr_expect_eq(create(s, PM_COMP_CNTR_REQUESTS), -ENOMEM);
    cr_expect_eq(on_handle(PM_OP_DESTROY_COMP_CNTR, first), 0);
    cr_expect_eq(create(s, PM_COMP_CNTR_REQUESTS), first, "the only free number");
    cr_expect_eq(done(first), 0, "and nothing is left of the old one");
}

Test(comp_cntr, the_end_of_a_session)
{
    int64_t c = create(s, PM_COMP_CNTR_REQUESTS);

    cr_assert_eq(attach(s, &a, c, OP(WRITE)), 0);
    cr_assert_eq(fixture_connect_both(&f, s, &a, &b), 0);
    post(WR_RDMA_WRITE, key, 100, 0);
    fixture_run(&f);
    session_close(s); /* the sanitizers see a counter that is used or not freed */
    s = fixture_session(&f);
    fixture_run(&f);
}
