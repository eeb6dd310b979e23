// SPDX-License-Identifier: BSD-2-Clause
/* Decides when a thread that polls should wait with a short time slice (system/time_slice.h): while other programs
 * compute on its processor. Slow yields and late wakeups show that; the daemon writes down when it wakes a thread. The
 * functions get times. They make no system call.
 *
 * A wait with a short slice is soon over, so it does not show whether the other programs still compute. Therefore the
 * time with short slices ends after 20 ms. If a wait is slow again soon after, another such time begins, which is twice
 * as long. So slow waits stay rare. */
#ifndef PUMICE_SRC_VERBS_BASE_POLL_BRIEF_H
#define PUMICE_SRC_VERBS_BASE_POLL_BRIEF_H

#include <stdbool.h>
#include <stdint.h>

/* clang-format off */
/* A slow wait is a slow yield or a late wakeup. It begins a time with short slices if another one, or another such time,
 * ended less than AGAIN before. One slow wait may be an accident. A quota of the control group stops a thread every 100 ms,
 * and lets it run for 25 ms if it has half a processor of two. Short slices would not help then. Measured with AGAIN of
 * 100 ms: an allreduce of 16 ranks with a quota of one processor took 1.2 ms, and takes 0.5 to 0.8 ms now. */
#define VB_POLL_BRIEF_AGAIN_NS      UINT64_C(20000000)
/* The first time with short slices lasts MIN. Each further one is twice as long, up to MAX. Chosen, not measured. */
#define VB_POLL_BRIEF_MIN_NS        UINT64_C(20000000)
#define VB_POLL_BRIEF_MAX_NS        UINT64_C(200000000)
/* A time with short slices ends early if YIELDS yields in a row took less than this, on average. A yield to a thread
 * that computes takes 100 us even with a short slice. Not each yield goes to that thread. Measured with
 * 16 ranks on two processors: 10 to 40 us without such threads, and mostly more than 80 us beside two of them. With 32
 * yields instead of 256, many of these times ended too early. */
#define VB_POLL_BRIEF_YIELDS        256
#define VB_POLL_BRIEF_YIELD_NS      UINT64_C(50000)
/* clang-format on */

/* The state of a thread, initially zero. Times are ns of CLOCK_MONOTONIC. */
struct vb_poll_brief {
    bool many; /* many programs use the device; then there are no times with short slices */
    uint64_t slow_at; /* end of the last slow wait; 0: there was none */
    uint64_t until; /* end of the last time with short slices; 0: there was none */
    uint64_t length; /* how long that was to be */
    unsigned yields; /* since the last average */
    uint64_t sum; /* how long they took together */
    uint32_t yield_ns; /* what a yield costs on this machine, as the daemon says; 0: not known */
};

static inline bool vb_poll_is_brief(const struct vb_poll_brief *b, uint64_t now)
{
    return now < b->until;
}

/* To be called when the daemon tells whether there are many programs (pm_session_page.many). */
static inline void vb_poll_brief_many(struct vb_poll_brief *b, bool many)
{
    b->many = many;
    if (many)
        b->until = 0;
}

/* A yield lasted from before to after. */
void vb_poll_brief_yielded(struct vb_poll_brief *b, uint64_t before, uint64_t after);
/* A wait that should have ended at due, at the latest, ended at after. */
void vb_poll_brief_waited(struct vb_poll_brief *b, uint64_t due, uint64_t after);

#endif
