// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/cpu_yield.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/clock.h"

/* More than the turns of all ranks of a job on a crowded processor that poll and yield, less than a time slice. */
#define SLOW_YIELD_NS NS_PER_MS
/* How long the thread sleeps early after a slow yield: it may have been a chance, so only for long after several in a row. */
#define HOG_MIN_NS NS_PER_MS
#define HOG_MAX_NS (20 * NS_PER_MS)
/* After five in a row it gets a short slice, for so long after the last one: a short slice keeps yields from being slow, so
 * whether the hog is still there shows only without it. */
#define BRIEF_FROM_NS (16 * NS_PER_MS)
#define BRIEF_NS (200 * NS_PER_MS)
#define BRIEF_SLICE_NS (NS_PER_MS / 10) /* the least that Linux takes */

/* As in linux/sched/types.h, which glibc's sched.h can't be used with. */
struct slice_attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period; /* ns; runtime is the time slice */
};

/* Returns what it was. Kernels before 6.12 ignore it, and say 0; and a thread with real-time priority keeps what it has. */
static uint64_t change_slice(uint64_t ns)
{
    struct slice_attr a = {.size = sizeof(a)};
    uint64_t old;

    if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) != 0 || a.policy != SCHED_OTHER)
        return 0;
    old = a.runtime;
    a.runtime = ns;
    if (syscall(SYS_sched_setattr, 0, &a, 0) != 0) {
        /* Forbidden, as in some containers: yields are as slow as they are. */
    }
    return old;
}

bool cpu_yield_took(struct cpu_yield *t, uint64_t before, uint64_t after)
{
    if (after - before > SLOW_YIELD_NS) {
        bool again = before < t->hog_until + 2 * t->hog_ns;

        t->hog_ns = !again ? HOG_MIN_NS : t->hog_ns < HOG_MAX_NS / 2 ? 2 * t->hog_ns : HOG_MAX_NS;
        t->hog_until = after + t->hog_ns;
        if (t->hog_ns >= BRIEF_FROM_NS)
            t->brief_until = after + BRIEF_NS;
    }
    return after < t->brief_until;
}

static void set_brief(struct cpu_yield *t, bool brief)
{
    if (brief && !t->brief)
        t->usual = change_slice(BRIEF_SLICE_NS);
    else if (t->brief && !brief)
        change_slice(t->usual);
    t->brief = brief;
}

bool cpu_yield_now(struct cpu_yield *t)
{
    uint64_t before = clock_ns(), after;

    sched_yield();
    after = clock_ns();
    set_brief(t, cpu_yield_took(t, before, after));
    return after - before <= SLOW_YIELD_NS;
}

void cpu_yield_check(struct cpu_yield *t, uint64_t now)
{
    if (t->brief && now >= t->brief_until)
        set_brief(t, false);
}
