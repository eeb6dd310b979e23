// SPDX-License-Identifier: BSD-2-Clause
/* Gives the calling thread a short time slice, and its usual one back. Linux has such slices since 6.12 (EEVDF). On
 * earlier kernels nothing happens.
 *
 * A yield costs a thread the rest of its slice. With a short slice it is soon its turn again, and a thread that wakes
 * up takes the processor at once from a thread with a longer slice. The share of the processor stays the same. */
#ifndef PUMICE_SYSTEM_TIME_SLICE_H
#define PUMICE_SYSTEM_TIME_SLICE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TIME_SLICE_SHORT_NS UINT64_C(100000) /* the shortest that Linux accepts */

/* The slice of a thread, initially zero. */
struct time_slice {
    bool brief; /* the thread has a short slice */
    uint64_t usual; /* ns: the slice that the thread had before */
};

/* As in linux/sched/types.h, which can't be included together with glibc's sched.h. */
struct time_slice_attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period; /* ns; runtime is the slice */
};

/* Reads the attributes of the calling thread. False: the thread has no such slice, because of its policy or of the
 * kernel, or the kernel forbids the call. */
static inline bool time_slice_read(struct time_slice_attr *a)
{
    *a = (struct time_slice_attr){.size = sizeof(*a)};
    return syscall(SYS_sched_getattr, 0, a, sizeof(*a), 0) == 0 && a->policy == SCHED_OTHER && a->runtime != 0;
}

/* Sets the slice. It stays as it is if the kernel forbids the change, as in some containers. Yields then stay slow. */
static inline void time_slice_write(struct time_slice_attr *a, uint64_t ns)
{
    a->runtime = ns;
    (void)syscall(SYS_sched_setattr, 0, a, 0);
}

/* Gives the calling thread a short slice, or its usual one. s must be the state of this thread. A slice that the
 * program has made that short stays. So does one that the program changes while the thread has the short one. */
static inline void time_slice_set(struct time_slice *s, bool brief)
{
    struct time_slice_attr a;

    if (brief == s->brief)
        return;
    s->brief = brief;
    if (!time_slice_read(&a))
        return;
    if (brief) {
        s->usual = a.runtime;
        if (s->usual > TIME_SLICE_SHORT_NS)
            time_slice_write(&a, TIME_SLICE_SHORT_NS);
    } else if (a.runtime == TIME_SLICE_SHORT_NS && s->usual != 0) {
        time_slice_write(&a, s->usual);
    }
}

#endif
