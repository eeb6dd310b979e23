// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/shim/yield.h"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/verbs/base/api.h"
#include "src/verbs/base/clock.h"
#include "system/time_slice.h"

_Thread_local __attribute__((tls_model("initial-exec"))) struct vb_poll_thread vb_poll_self;
static _Thread_local __attribute__((tls_model("initial-exec"))) struct time_slice slice;

/* A thread that has not polled for longer yields for other reasons. Chosen, not measured. */
#define POLLED_NS UINT64_C(100000000)

void vb_slice_begin(uint64_t before)
{
    if (vb_poll_is_brief(&vb_poll_self.brief, before))
        time_slice_set(&slice, true);
}

void vb_slice_end(void)
{
    time_slice_set(&slice, false);
}

uint64_t vb_yield(uint64_t before)
{
    syscall(SYS_sched_yield);
    uint64_t after = vb_clock(CLOCK_MONOTONIC);
    vb_poll_brief_yielded(&vb_poll_self.brief, before, after);
    return after;
}

static bool polled_before(uint64_t now)
{
    return now - vb_poll_self.last < POLLED_NS;
}

VB_EXPORT int sched_yield(void)
{
    uint64_t before = vb_poll_self.last ? vb_clock(CLOCK_MONOTONIC) : 0; /* most threads never poll */
    if (!before || !polled_before(before))
        return (int)syscall(SYS_sched_yield);
    vb_slice_begin(before);
    vb_yield(before);
    vb_slice_end();
    return 0;
}
