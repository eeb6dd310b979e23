// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/base/leave_cpu.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

/* A thread that may use each processor has mostly never chosen any. The kernel keeps what a thread chooses, and would not
 * let it use processors that are added later. So such a thread chooses all that there could be. */
static void choose_as_before(const cpu_set_t *allowed)
{
    cpu_set_t all;

    memset(&all, 0xff, sizeof(all));
    sched_setaffinity(0, sizeof(all), CPU_COUNT(allowed) == sysconf(_SC_NPROCESSORS_ONLN) ? &all : allowed);
}

void vb_leave_cpu(uint32_t cpu)
{
    cpu_set_t allowed, others;

    if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return;
    others = allowed;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof(others), &others) == 0)
        choose_as_before(&allowed);
}
