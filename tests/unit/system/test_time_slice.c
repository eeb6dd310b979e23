// SPDX-License-Identifier: BSD-2-Clause
/* A thread gets a short time slice and its usual one back. The kernel tells the slice since Linux 6.12. */
#include "system/time_slice.h"

#include <criterion/criterion.h>
#include <sys/resource.h>

#include "tests/unit/skip.h"

static struct time_slice s;

static struct time_slice_attr attributes(void)
{
    struct time_slice_attr a;

    cr_assert(time_slice_read(&a));
    return a;
}

static void choose(uint64_t ns)
{
    struct time_slice_attr a = attributes();

    time_slice_write(&a, ns);
}

static void setup(void)
{
    struct time_slice_attr a;

    if (!time_slice_read(&a))
        SKIP_TEST("time slices", "this kernel does not have them");
}

TestSuite(time_slice, .init = setup, .timeout = 30);

Test(time_slice, short_and_back)
{
    uint64_t usual = attributes().runtime;

    for (int i = 0; i < 2; i++) {
        time_slice_set(&s, true);
        time_slice_set(&s, true);
        cr_expect_eq(attributes().runtime, TIME_SLICE_SHORT_NS);
        time_slice_set(&s, false);
        time_slice_set(&s, false);
        cr_expect_eq(attributes().runtime, usual);
    }
}

Test(time_slice, the_choice_of_the_program_comes_back)
{
    choose(3000000);
    time_slice_set(&s, true);
    cr_expect_eq(attributes().runtime, TIME_SLICE_SHORT_NS);
    time_slice_set(&s, false);
    cr_expect_eq(attributes().runtime, 3000000);
}

Test(time_slice, a_change_meanwhile_stays)
{
    time_slice_set(&s, true);
    choose(5000000);
    time_slice_set(&s, false);
    cr_expect_eq(attributes().runtime, 5000000);
}

Test(time_slice, the_nice_value_stays)
{
    time_slice_set(&s, true);
    cr_assert_eq(setpriority(PRIO_PROCESS, 0, 7), 0);
    time_slice_set(&s, false);
    cr_expect_eq(attributes().nice, 7);
    cr_expect_eq(getpriority(PRIO_PROCESS, 0), 7);
}

/* Its slice means something else. */
Test(time_slice, a_thread_with_another_policy_is_left_alone)
{
    struct sched_param none = {0};
    struct time_slice_attr before = attributes(), after = {.size = sizeof(after)};

    cr_assert_eq(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    time_slice_set(&s, true);
    cr_assert_eq(syscall(SYS_sched_getattr, 0, &after, sizeof(after), 0), 0);
    cr_expect_eq(after.policy, SCHED_BATCH);
    cr_expect_eq(after.runtime, before.runtime);
    time_slice_set(&s, false);
}
