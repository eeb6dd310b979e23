// SPDX-License-Identifier: BSD-2-Clause
/* Moderation of CQs in the daemon. The test controls the time. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;
static struct session *s;
static struct fixture_cq cq;
static struct fixture_qp a;
static int channel = -1;
static uint64_t now;

/* The completions are flushed requests: one for each request that is posted to a QP in ERR. */
static void start(void)
{
    struct pm_handle h;
    uint32_t pd;

    cr_assert(fixture_start(&f));
    s = fixture_session(&f);
    pd = fixture_pd(&f, s);
    cr_assert_eq(fixture_call(&f, s, PM_OP_CREATE_CHANNEL, NULL, 0, &h, sizeof(h)), 0);
    channel = f.rp.fd[0];
    f.rp.fds = 0;
    cr_assert_eq(fixture_cq(&f, s, 64, h.handle, &cq), 0);
    cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 64, &a), 0);
    cr_assert_eq(fixture_connect(&f, s, a.rep.qpn, a.rep.qpn), 0);
    cr_assert_eq(fixture_state(&f, s, a.rep.qpn, QPS_ERR), 0);
    fixture_run(&f);
    now = clock_ns();
}

static void finish(void)
{
    close(channel);
    fixture_end(&f);
}

TestSuite(cq_moderation, .init = start, .fini = finish);

static int moderate(uint32_t handle, uint16_t count, uint16_t period)
{
    struct pm_modify_cq_req r = {handle, count, period};

    return fixture_call(&f, s, PM_OP_MODIFY_CQ, &r, sizeof(r), NULL, 0);
}

static void complete(unsigned n)
{
    while (n--) {
        memset(fixture_send_slot(&a), 0, sizeof(struct pm_send_wqe));
        fixture_send_slot(&a)->flags = PM_SEND_SIGNALED;
        fixture_post_send(s, &a);
    }
    device_pass(f.device, now);
}

static unsigned events(void)
{
    struct pollfd p = {channel, POLLIN, 0};
    struct pm_comp_event ev;
    unsigned n = 0;

    while (poll(&p, 1, 0) == 1) {
        cr_assert_eq(read(channel, &ev, sizeof(ev)), (ssize_t)sizeof(ev));
        cr_assert_eq(ev.cq, cq.rep.handle);
        n++;
    }
    return n;
}

static void arm(void)
{
    atomic_store(&cq.page->arm, PM_ARM_ANY);
}

Test(cq_moderation, without_moderation_each_completion_raises_an_event)
{
    arm();
    complete(1);
    cr_assert_eq(events(), 1);
    complete(1);
    cr_assert_eq(events(), 0, "not armed");
    cr_assert_eq(moderate(cq.rep.handle + 1, 1, 1), -EINVAL);
    cr_assert_eq(moderate(cq.rep.handle, 5, 0), 0, "no time: an event might never come");
    arm();
    complete(1);
    cr_assert_eq(events(), 1);
    cr_assert_eq(moderate(cq.rep.handle, 1, 100), 0);
    arm();
    complete(1);
    cr_assert_eq(events(), 1, "one is enough");
}

Test(cq_moderation, count)
{
    cr_assert_eq(moderate(cq.rep.handle, 4, 1000), 0);
    arm();
    complete(1);
    complete(2);
    cr_assert_eq(events(), 0, "three of four");
    complete(1);
    cr_assert_eq(events(), 1);
    cr_assert_eq(f.device->held_due == NEVER || f.device->held_due > now, true);
    now += 2 * NS_PER_MS;
    device_pass(f.device, now);
    cr_assert_eq(events(), 0, "nothing is held any more");
    cr_assert_eq(device_deadline(f.device), NEVER);
}

Test(cq_moderation, period)
{
    cr_assert_eq(moderate(cq.rep.handle, 4, 1000), 0);
    arm();
    complete(1);
    cr_assert_eq(device_deadline(f.device), now + 1000 * NS_PER_US, "the loop wakes for it");
    now += 600 * NS_PER_US;
    complete(1);
    cr_assert_eq(events(), 0);
    now += 400 * NS_PER_US;
    device_pass(f.device, now);
    cr_assert_eq(events(), 1, "from the first one on");
    cr_assert_eq(device_deadline(f.device), NEVER);
}

Test(cq_moderation, changing_the_moderation_raises_the_pending_event)
{
    cr_assert_eq(moderate(cq.rep.handle, 60, 60000), 0);
    arm();
    complete(2);
    cr_assert_eq(events(), 0);
    cr_assert_eq(moderate(cq.rep.handle, 0, 0), 0);
    fixture_run(&f);
    cr_assert_eq(events(), 1);
}

Test(cq_moderation, a_destroyed_cq_raises_no_event_later)
{
    struct pm_handle h = {a.rep.qpn};

    cr_assert_eq(moderate(cq.rep.handle, 60, 60000), 0);
    arm();
    complete(2);
    cr_assert_eq(fixture_call(&f, s, PM_OP_DESTROY_QP, &h, sizeof(h), NULL, 0), 0);
    h.handle = cq.rep.handle;
    cr_assert_eq(fixture_call(&f, s, PM_OP_DESTROY_CQ, &h, sizeof(h), NULL, 0), 0);
    now += NS_PER_S;
    device_pass(f.device, now);
    cr_assert_eq(events(), 0);
    cr_assert_eq(device_deadline(f.device), NEVER);
}
