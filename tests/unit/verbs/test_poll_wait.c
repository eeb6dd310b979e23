// SPDX-License-Identifier: BSD-2-Clause
/* When a client that polls in vain sleeps for its daemon, and when it must not. No daemon is here: whoever waits for it says so in
 * the page, and goes on after the 20 ms for which a daemon may be dead. */
#include <criterion/criterion.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/verbs/datapath/poll_wait.h"

struct fake {
    struct vb_context context;
    struct vb_cq cq[2];
    struct pm_session_page page;
};
static struct fake a, b;
static int daemon_end[2];

static void begin(struct fake *f, unsigned i, unsigned cpu)
{
    int pair[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    f->context.session.fd = pair[0];
    daemon_end[i] = pair[1];
    f->context.page = &f->page;
    f->page.cpu = cpu; /* where a yield need not let the daemon run */
    for (unsigned k = 0; k < 2; k++)
        f->cq[k].cq.context = &f->context.vctx.context;
}

static void setup(void)
{
    unsigned cpu = (unsigned)sched_getcpu();
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
    begin(&a, 0, cpu);
    begin(&b, 1, cpu);
}

TestSuite(wait, .init = setup, .timeout = 60);

/* Whether it is said that somebody waits, which is taken back. */
static bool waited(struct fake *f)
{
    return atomic_exchange(&f->page.waiting, 0) != 0;
}

static void poll_in_vain(struct fake *f, unsigned queue, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        vb_poll_wait(&f->cq[queue]);
}

Test(wait, who_polls_one_queue_in_vain_waits)
{
    poll_in_vain(&a, 0, 200);
    cr_expect(waited(&a));
}

Test(wait, and_who_polls_several_of_a_context)
{
    for (unsigned i = 0; i < 200; i++)
        poll_in_vain(&a, i % 2, 1);
    cr_expect(waited(&a));
}

Test(wait, not_for_a_first_look)
{
    poll_in_vain(&a, 0, 8);
    cr_expect(!waited(&a));
}

/* What one of them has would lie there while the thread sleeps for the other. */
Test(wait, who_polls_two_contexts_waits_for_neither)
{
    for (unsigned i = 0; i < 500; i++) {
        poll_in_vain(&a, 0, 1 + i % 3);
        poll_in_vain(&b, 0, 1);
    }
    cr_expect(!waited(&a));
    cr_expect(!waited(&b));
    poll_in_vain(&a, 0, 200); /* but once it has done with the other */
    cr_expect(waited(&a));
    cr_expect(!waited(&b));
}

Test(wait, for_a_daemon_that_sleeps_nobody_waits)
{
    a.page.sleeping = 1;
    poll_in_vain(&a, 0, 200);
    cr_expect(!waited(&a));
}

/* Nobody would end the wait: each would take its 20 ms. */
Test(wait, for_a_daemon_that_is_gone_nobody_waits)
{
    poll_in_vain(&a, 0, 200);
    cr_assert(waited(&a));
    close(daemon_end[0]);
    for (unsigned i = 0; i < 10000 && !a.context.gone; i++)
        poll_in_vain(&a, 0, 1);
    cr_assert(a.context.gone);
    waited(&a);
    poll_in_vain(&a, 0, 200);
    cr_expect(!waited(&a));
}
