// SPDX-License-Identifier: BSD-2-Clause
/* The end of a session with many objects is cut into slices, and other sessions go on in between. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;
static uint8_t memory[4096];

static void start(void)
{
    cr_assert(fixture_start(&f));
}

static void finish(void)
{
    fixture_end(&f);
}

/* A session with n idle queue pairs. */
static struct session *crowd(unsigned n)
{
    struct session *s = fixture_session(&f);
    uint32_t pd = fixture_pd(&f, s);
    struct fixture_cq cq;
    struct fixture_qp qp;

    cr_assert_eq(fixture_cq(&f, s, 4, 0, &cq), 0);
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 1, &qp), 0);
        munmap(qp.page, qp.rep.size);
    }
    return s;
}

TestSuite(session_end, .init = start, .fini = finish, .timeout = 60);

Test(session_end, others_carry_messages_between_the_slices)
{
    struct session *big = crowd(3000), *small = fixture_session(&f);
    uint32_t pd = fixture_pd(&f, small);
    uint32_t key = fixture_mr(&f, small, pd, memory, sizeof(memory), ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE);
    unsigned turns = 0, slices = 0, messages = 0;
    struct fixture_cq cq;
    struct fixture_qp a, b;
    struct pm_cqe e = {0};

    cr_assert_eq(fixture_cq(&f, small, 16, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, small, pd, cq.rep.handle, 4, &a), 0);
    cr_assert_eq(fixture_qp(&f, small, pd, cq.rep.handle, 4, &b), 0);
    cr_assert_eq(fixture_connect_both(&f, small, &a, &b), 0);
    session_end(big);
    session_end(big); /* a second cause, as the end of the process after that of its connection */
    cr_assert_eq(f.device->num_sessions, 2, "it was freed at once");
    while (f.device->num_sessions == 2) {
        uint32_t before = big->qps.count;

        ev_run(f.device->loop, EVRUN_NOWAIT);
        slices += f.device->num_sessions == 1 || big->qps.count < before; /* otherwise a pause */
        turns++;
        fixture_wqe(&a, WR_RDMA_WRITE, key, memory, memory + 2048, 64);
        fixture_post_send(small, &a);
        for (unsigned i = 0; i < 1000 && !fixture_poll(&cq, &e); i++)
            device_pass(f.device, clock_ns());
        messages += e.status == WC_SUCCESS;
    }
    cr_expect_gt(slices, 2, "3000 queue pairs were freed in %u slices", slices);
    cr_expect_gt(turns, slices, "no pause");
    cr_expect_eq(messages, turns);
    cr_expect(TAILQ_EMPTY(&f.device->ending));
    cr_expect_eq(small->qps.count, 2);
}

/* A small session that ends together with a large one does not wait for it. */
Test(session_end, sessions_take_turns)
{
    struct session *big = crowd(3000), *small = crowd(1);

    session_end(big);
    session_end(small);
    while (f.device->num_sessions == 2)
        ev_run(f.device->loop, EVRUN_NOWAIT);
    cr_expect_eq(TAILQ_FIRST(&f.device->sessions), big, "the small one is still there");
    cr_expect_gt(big->qps.count, 0);
    session_close(big); /* the rest, as at the end of the daemon */
    cr_expect(TAILQ_EMPTY(&f.device->ending));
}

/* Calls of the device's thread. */
static struct session *to_end;
static unsigned counted;

static void end_it(struct mailbox_call *call)
{
    (void)call;
    session_end(to_end);
}

static void count_sessions(struct mailbox_call *call)
{
    (void)call;
    counted = f.device->num_sessions;
}

/* The loop does not sleep before the last slice. */
Test(session_end, a_loop_without_other_work_ends_it_too)
{
    struct mailbox_call end = {.run = end_it}, count = {.run = count_sessions};

    to_end = crowd(1000);
    counted = 1;
    cr_assert_eq(device_start(f.device, -1), 0);
    usleep(20000); /* until it sleeps */
    cr_assert_eq(device_do(f.device, &end), MAILBOX_DONE);
    for (unsigned i = 0; i < 2000 && counted; i++) {
        usleep(5000);
        cr_assert_eq(device_do(f.device, &count), MAILBOX_DONE);
    }
    device_stop(f.device);
    cr_expect_eq(counted, 0);
}

/* The targets of an XRC domain go with its last handle, in slices too. Meanwhile nobody can open the domain. */
Test(session_end, targets_of_a_domain)
{
    struct session *s = fixture_session(&f), *other = fixture_session(&f);
    char path[] = "/tmp/test_session_end.XXXXXX";
    struct pm_open_xrcd_req open = {.has_fd = 1, .oflags = O_CREAT};
    struct pm_create_qp_req rq = {.type = IBV_QPT_XRC_RECV};
    int fd = mkstemp(path);
    unsigned slices = 0;
    struct pm_handle h;

    cr_assert_geq(fd, 0);
    unlink(path);
    cr_assert_eq(fixture_call_fd(&f, s, PM_OP_OPEN_XRCD, &open, sizeof(open), fd, &h, sizeof(h)), 0);
    rq.xrcd = h.handle;
    for (unsigned i = 0; i < 2000; i++) {
        cr_assert_eq(fixture_call(&f, s, PM_OP_CREATE_QP, &rq, sizeof(rq), NULL, 0), 0);
        fixture_close_fds(&f);
    }
    session_end(s);
    open.oflags = 0;
    while (f.device->num_sessions == 2) {
        bool begun = f.device->targets.count < 2000;
        int rc = fixture_call_fd(&f, other, PM_OP_OPEN_XRCD, &open, sizeof(open), fd, &h, sizeof(h));

        if (begun)
            cr_expect_eq(rc, -EAGAIN);
        else if (rc == 0)
            fixture_call(&f, other, PM_OP_CLOSE_XRCD, &h, sizeof(h), NULL, 0);
        ev_run(f.device->loop, EVRUN_NOWAIT);
        slices++;
    }
    cr_expect_gt(slices, 2);
    cr_expect_eq(f.device->targets.count, 0);
    cr_expect_eq(f.device->xrcds.count, 0);
    close(fd);
}
