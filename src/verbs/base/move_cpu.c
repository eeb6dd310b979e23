// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/base/move_cpu.h"

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

static void move_to(const cpu_set_t *where, const cpu_set_t *allowed)
{
    if (sched_setaffinity(0, sizeof(*where), where) == 0)
        choose_as_before(allowed);
}

void vb_leave_cpu(uint32_t cpu)
{
    cpu_set_t allowed, others;

    if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        return;
    others = allowed;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) > 0)
        move_to(&others, &allowed);
}

void vb_join_cpu(uint32_t cpu)
{
    cpu_set_t allowed, one;

    if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || !CPU_ISSET(cpu, &allowed))
        return;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    move_to(&one, &allowed);
}
