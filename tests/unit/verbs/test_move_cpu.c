// SPDX-License-Identifier: BSD-2-Clause
/* A thread moves to another processor, and may use the same ones as before (src/verbs/base/move_cpu.h). */
#include "src/verbs/base/move_cpu.h"

#include <criterion/criterion.h>
#include <sched.h>

#include "tests/unit/skip.h"

static cpu_set_t allowed(void)
{
    cpu_set_t set;

    cr_assert_eq(sched_getaffinity(0, sizeof(set), &set), 0);
    return set;
}

Test(move_cpu, another_processor_and_the_same_choice)
{
    cpu_set_t before = allowed();
    uint32_t cpu = (uint32_t)sched_getcpu();

    if (CPU_COUNT(&before) < 2)
        SKIP_TEST("move_cpu", "one processor");
    for (int i = 0; i < 100; i++, cpu = (uint32_t)sched_getcpu()) {
        vb_leave_cpu(cpu);
        cpu_set_t after = allowed();
        cr_assert(CPU_EQUAL(&before, &after));
    }
}

/* The scheduler may move the thread again, so it does not always fail to leave. */
Test(move_cpu, it_leaves)
{
    cpu_set_t before = allowed();
    unsigned left = 0;

    if (CPU_COUNT(&before) < 2)
        SKIP_TEST("move_cpu", "one processor");
    for (int i = 0; i < 100; i++) {
        uint32_t cpu = (uint32_t)sched_getcpu();

        vb_leave_cpu(cpu);
        left += (uint32_t)sched_getcpu() != cpu;
    }
    cr_expect_gt(left, 10);
}

Test(move_cpu, a_thread_with_one_processor_stays)
{
    cpu_set_t one, after;
    uint32_t cpu = (uint32_t)sched_getcpu();

    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    vb_leave_cpu(cpu);
    vb_leave_cpu(UINT32_MAX);
    vb_join_cpu(cpu ? 0 : 1);
    vb_join_cpu(UINT32_MAX);
    after = allowed();
    cr_expect(CPU_EQUAL(&one, &after));
}

/* The scheduler may move the thread away again. */
Test(move_cpu, it_joins)
{
    cpu_set_t before = allowed();
    unsigned joined = 0;

    for (int i = 0; i < 100; i++) {
        for (uint32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (!CPU_ISSET(cpu, &before))
                continue;
            vb_join_cpu(cpu);
            joined += (uint32_t)sched_getcpu() == cpu;
            cpu_set_t after = allowed();
            cr_assert(CPU_EQUAL(&before, &after));
        }
    }
    cr_expect_gt(joined, 10);
}
