// SPDX-License-Identifier: BSD-2-Clause
/* Clients that sleep until the daemon publishes something for them. */
#include <criterion/criterion.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/session/client_wakeup.h"
#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;
static struct session *s;
static struct pm_session_page *page;

static void begin(void)
{
    cr_assert(fixture_start(&f));
    s = fixture_session(&f);
    cr_assert(s);
    page = s->page;
}

static void end(void)
{
    session_close(s);
    fixture_end(&f);
}

TestSuite(client_wakeup, .init = begin, .fini = end, .timeout = 30);

Test(client_wakeup, a_thread_that_does_not_wait_makes_no_system_call)
{
    uint32_t before = page->published;

    client_wakeup_published(s);
    cr_assert_eq(page->published, before + PM_PUBLISHED);
    cr_assert_eq(f.device->io.wakes, 0);
}

Test(client_wakeup, a_waiting_thread_is_woken)
{
    uint32_t before = page->published;

    page->waiting = 50;
    client_wakeup_published(s);
    cr_assert_eq(page->published, before + PM_PUBLISHED);
    cr_assert_eq(page->waiting, 0);
    cr_assert_eq(f.device->io.wakes, 1);
}

Test(client_wakeup, a_client_learns_when_it_was_woken)
{
    uint64_t begin_ns = clock_ns();

    client_wakeup_published(s);
    cr_assert_eq(page->woken_at, 0, "nobody waits");
    page->waiting = 50;
    client_wakeup_published(s);
    cr_assert(page->woken_at >= begin_ns && page->woken_at <= clock_ns());
}

Test(client_wakeup, a_wait_ends_after_its_time)
{
    uint32_t before = page->published;

    page->waiting = 50;
    client_wakeup_pass(f.device, NS_PER_S);
    client_wakeup_pass(f.device, NS_PER_S + 49 * NS_PER_US);
    cr_assert_eq(page->waiting, 50);
    cr_assert_eq(page->published, before);
    client_wakeup_pass(f.device, NS_PER_S + 50 * NS_PER_US);
    cr_assert_eq(page->waiting, 0);
    cr_assert_eq(page->published, before + PM_WAKE);
}

Test(client_wakeup, clients_hear_where_they_should_be)
{
    f.device->clients_apart = PM_AWAY;
    client_wakeup_pass(f.device, NS_PER_S);
    cr_assert(page->apart == PM_AWAY && page->beside == 0);
    f.device->clients_apart = 0;
    f.device->clients_beside = PM_BESIDE_CROWDED;
    client_wakeup_pass(f.device, NS_PER_S);
    cr_assert(page->apart == 0 && page->beside == PM_BESIDE_CROWDED);
    f.device->clients_beside = 0;
    client_wakeup_pass(f.device, NS_PER_S);
    cr_assert(page->apart == 0 && page->beside == 0);
}

Test(client_wakeup, clients_hear_that_they_are_many)
{
    for (uint32_t many = 0; many < 2; many++) {
        f.device->clients_many = many;
        client_wakeup_pass(f.device, NS_PER_S);
        cr_assert_eq(page->many, many);
    }
}

Test(client_wakeup, clients_hear_what_a_yield_costs)
{
    for (unsigned i = 0; i < YIELD_COST_ENOUGH; i++) {
        client_wakeup_pass(f.device, 1000 * NS_PER_US);
        cr_assert_eq(page->yield_ns, 0, "not known yet");
        yield_cost_note(&f.device->cpu_yield.cost, 12000);
    }
    client_wakeup_pass(f.device, 1000 * NS_PER_US);
    cr_assert_eq(page->yield_ns, 12000);
}

/* A wait begins when the loop sees it, not at the end of the previous one. */
Test(client_wakeup, a_thread_can_wait_again)
{
    page->waiting = 50;
    client_wakeup_pass(f.device, NS_PER_S);
    client_wakeup_published(s);
    page->waiting = 50;
    client_wakeup_pass(f.device, NS_PER_S + 100 * NS_PER_US);
    cr_assert_eq(page->waiting, 50);
    page->waiting = 0; /* the thread woke up by itself */
    client_wakeup_pass(f.device, NS_PER_S + 120 * NS_PER_US);
    page->waiting = 50;
    client_wakeup_pass(f.device, NS_PER_S + 160 * NS_PER_US);
    cr_assert_eq(page->waiting, 50);
    client_wakeup_pass(f.device, NS_PER_S + 210 * NS_PER_US);
    cr_assert_eq(page->waiting, 0);
}

Test(client_wakeup, the_shortest_wait_decides)
{
    page->waiting = 4000;
    client_wakeup_pass(f.device, NS_PER_S);
    page->waiting = 20; /* another thread waits */
    client_wakeup_pass(f.device, NS_PER_S + 100 * NS_PER_US);
    client_wakeup_pass(f.device, NS_PER_S + 119 * NS_PER_US);
    cr_assert_eq(page->waiting, 20);
    client_wakeup_pass(f.device, NS_PER_S + 120 * NS_PER_US);
    cr_assert_eq(page->waiting, 0);
}

/* A thread goes to sleep late, after other waits have ended. It must see that its value is out of date. */
Test(client_wakeup, each_end_of_a_wait_has_a_value_of_its_own)
{
    uint32_t first = page->published;

    for (unsigned i = 0; i < 2; i++) {
        page->waiting = 50;
        client_wakeup_all(f.device);
        cr_assert_neq(page->published, first);
    }
}

Test(client_wakeup, the_time_of_a_wait_is_limited)
{
    page->waiting = UINT32_MAX - 1;
    client_wakeup_pass(f.device, NS_PER_S);
    client_wakeup_pass(f.device, NS_PER_S + 5 * NS_PER_MS - 1);
    cr_assert_eq(page->waiting, UINT32_MAX - 1);
    client_wakeup_pass(f.device, NS_PER_S + 5 * NS_PER_MS);
    cr_assert_eq(page->waiting, 0);
}

/* It has a timer of its own. */
Test(client_wakeup, a_thread_that_waits_for_news_is_woken_only_for_completions)
{
    uint32_t before = page->published;

    page->waiting = PM_WAITS_FOR_NEWS;
    client_wakeup_pass(f.device, NS_PER_S);
    client_wakeup_pass(f.device, 2 * NS_PER_S);
    client_wakeup_all(f.device);
    cr_assert_eq(page->waiting, PM_WAITS_FOR_NEWS);
    cr_assert_eq(page->published, before);
    client_wakeup_published(s);
    cr_assert_eq(page->waiting, 0);
    cr_assert_eq(f.device->io.wakes, 1);
}

Test(client_wakeup, a_wait_after_one_for_news_has_its_time)
{
    page->waiting = 50;
    client_wakeup_pass(f.device, NS_PER_S);
    page->waiting = PM_WAITS_FOR_NEWS;
    client_wakeup_pass(f.device, 2 * NS_PER_S);
    page->waiting = 50;
    client_wakeup_pass(f.device, 3 * NS_PER_S);
    cr_assert_eq(page->waiting, 50);
    client_wakeup_pass(f.device, 3 * NS_PER_S + 50 * NS_PER_US);
    cr_assert_eq(page->waiting, 0);
}

Test(client_wakeup, waiting_threads_are_woken_when_the_loop_sleeps)
{
    uint32_t before = page->published;

    client_wakeup_all(f.device);
    cr_assert_eq(page->published, before);
    page->waiting = 50;
    client_wakeup_all(f.device);
    cr_assert_eq(page->waiting, 0);
    cr_assert_eq(page->published, before + PM_WAKE);
}

Test(client_wakeup, the_client_learns_the_processor_of_the_daemon)
{
    cpu_set_t set;
    unsigned cpu = (unsigned)sched_getcpu();

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
    page->cpu = cpu + 1;
    client_wakeup_pass(f.device, NS_PER_S);
    cr_assert_eq(page->cpu, cpu);
}

static void *sleeper(void *arg)
{
    uint32_t seen = page->published;

    page->waiting = 1000;
    syscall(SYS_futex, &page->published, FUTEX_WAIT, seen, NULL, NULL, 0);
    return arg;
}

/* The client sleeps for ever if the loop does not wake it. */
Test(client_wakeup, a_thread_sleeps_and_is_woken)
{
    for (unsigned i = 0; i < 100; i++) {
        pthread_t thread;

        cr_assert_eq(pthread_create(&thread, NULL, sleeper, NULL), 0);
        while (page->waiting == 0)
            usleep(10);
        client_wakeup_published(s);
        pthread_join(thread, NULL);
    }
    cr_assert_eq(f.device->io.wakes, 100);
}
