// SPDX-License-Identifier: BSD-2-Clause
/* The system calls of a thread that polls in vain: it really waits for its daemon, and notices that the daemon is gone.
 * There is no daemon here, so each wait lasts VB_POLL_DEATH_NS. The decisions are tested in test_poll_state.c. */
#include <criterion/criterion.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/verbs/base/clock.h"
#include "src/verbs/datapath/poll_wait.h"

static struct vb_context context;
static struct vb_cq cq;
static struct pm_session_page page;
static int daemon_end;

static void setup(void)
{
    unsigned cpu = (unsigned)sched_getcpu();
    cpu_set_t set;
    int pair[2];

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    context.session.fd = pair[0];
    daemon_end = pair[1];
    context.page = &page;
    page.cpu = cpu; /* where a yield need not let the daemon run */
    cq.cq.context = &context.vctx.context;
}

TestSuite(poll_wait, .init = setup, .timeout = 60);

/* Polls until the thread says in the page that it waits; that is taken back. */
static bool waits(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        vb_poll_wait(&cq);
        if (atomic_exchange(&page.waiting, 0) != 0)
            return true;
    }
    return false;
}

Test(poll_wait, a_thread_waits_for_its_daemon)
{
    uint64_t before = vb_clock(CLOCK_MONOTONIC);

    cr_assert(waits(200));
    cr_expect_geq(vb_clock(CLOCK_MONOTONIC) - before, VB_POLL_DEATH_NS);
}

/* No thread would end the wait. */
Test(poll_wait, a_thread_does_not_wait_for_a_daemon_that_is_gone)
{
    cr_assert(waits(200));
    close(daemon_end);
    for (unsigned i = 0; i < 10000 && !context.gone; i++)
        vb_poll_wait(&cq);
    cr_assert(context.gone);
    atomic_store(&page.waiting, 0);
    cr_expect(!waits(200));
}
