// SPDX-License-Identifier: BSD-2-Clause
/* A thread that polls yields with a short time slice while other programs compute (src/verbs/shim/yield.h). The test
 * replaces syscall() to see the calls of the module. */
#include "src/verbs/shim/yield.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <time.h>

#include "src/verbs/base/clock.h"
#include "system/time_slice.h"

static bool real; /* the kernel's slice counts, and not this one, which each kernel would have */
static uint64_t runtime = 3000000; /* ns */
static uint64_t set[8]; /* the slices that were set, in order */
static unsigned sets, yields, sets_before_yield;
static uint64_t yield_takes; /* ns, at least */

long syscall(long number, ...)
{
    long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    va_list args;
    long a[4];

    va_start(args, number);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_sched_setattr && sets < 8)
        set[sets++] = runtime = ((struct time_slice_attr *)a[1])->runtime;
    if (number == SYS_sched_yield) {
        yields++;
        sets_before_yield = sets;
        nanosleep(&(struct timespec){.tv_nsec = (long)yield_takes}, NULL);
    }
    long result = next(number, a[0], a[1], a[2], a[3]);
    if (number == SYS_sched_getattr && !real)
        ((struct time_slice_attr *)a[1])->runtime = runtime;
    return result;
}

static uint64_t now(void)
{
    return vb_clock(CLOCK_MONOTONIC);
}

static void poll_in_vain(void)
{
    vb_poll_self.last = now();
}

static void check_short(const char *when)
{
    cr_expect_eq(yields, 1, "%s", when);
    cr_expect_eq(sets, 2, "%s: %u", when, sets);
    cr_expect_eq(sets_before_yield, 1, "%s", when);
    cr_expect_eq(set[0], TIME_SLICE_SHORT_NS, "%s", when);
    cr_expect_eq(set[1], 3000000, "%s: back", when);
    sets = yields = 0;
}

TestSuite(yield, .timeout = 30);

Test(yield, a_thread_that_polls_yields_with_a_short_slice)
{
    poll_in_vain();
    vb_poll_self.brief.until = now() + 1000000000;
    cr_expect_eq(sched_yield(), 0);
    check_short("sched_yield");
    vb_poll_self.brief.until = now() + 1000000000;
    vb_slice_begin(now());
    vb_yield(now());
    vb_slice_end();
    check_short("vb_yield");
}

Test(yield, without_others_the_slice_stays)
{
    poll_in_vain();
    sched_yield();
    cr_expect_eq(yields, 1);
    cr_expect_eq(sets, 0);
}

Test(yield, slow_yields_of_the_program_lead_to_short_slices)
{
    yield_takes = 2 * VB_POLL_SLOW_YIELD_NS;
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(sets, 0);
        poll_in_vain();
        sched_yield();
    }
    yield_takes = 0;
    sched_yield();
    cr_expect_eq(sets, 2);
}

Test(yield, a_thread_that_does_not_poll_yields_as_usual)
{
    vb_poll_self.brief.until = now() + 1000000000;
    sched_yield();
    vb_poll_self.last = now() - 1000000000;
    sched_yield();
    cr_expect_eq(yields, 2);
    cr_expect_eq(sets, 0);
}

static void *inherited(void *slice)
{
    struct time_slice_attr a;

    *(uint64_t *)slice = time_slice_read(&a) ? a.runtime : 0;
    return NULL;
}

Test(yield, a_new_thread_has_the_usual_slice)
{
    pthread_t thread;
    uint64_t usual, slice;

    real = true;
    inherited(&usual);
    poll_in_vain();
    vb_poll_self.brief.until = now() + 1000000000;
    sched_yield();
    cr_assert_eq(pthread_create(&thread, NULL, inherited, &slice), 0);
    pthread_join(thread, NULL);
    cr_expect_eq(slice, usual);
}
