// SPDX-License-Identifier: BSD-2-Clause
/* Tells whether the machine is crowded: many more threads are runnable than there are processors. */
#ifndef PUMICE_SRC_VERBS_SHIM_CROWD_H
#define PUMICE_SRC_VERBS_SHIM_CROWD_H

#include <stdbool.h>
#include <stdint.h>

/* So many runnable threads for each processor are a crowd. In a crowd of this size a thread waits for a processor for
 * VB_CROWD - 1 times as long as it runs. */
#define VB_CROWD 4u
/* A thread judges anew after it has run for so many ns. In a shorter time, one late wakeup would look like a crowd. */
#define VB_CROWD_LOOK_NS 1000000u

/* The latest judgement of a thread, and the times at which it was made. All members are 0 before the first one. */
struct vb_crowd_look {
    uint64_t ran, waited; /* how long it had run, and waited for a processor, when it last judged, ns */
    bool crowded; /* the judgement */
};

/* Did the thread wait in a crowd since its last judgement? ran, waited: its times since it started, ns (the first two
 * numbers of /proc/thread-self/schedstat). If the thread has hardly run since, the last judgement holds. */
bool vb_waited_in_crowd(struct vb_crowd_look *l, uint64_t ran, uint64_t waited);

/* Is the machine crowded? The library counts the threads that are runnable at this moment. It also looks at how long the
 * calling thread has lately waited for a processor.
 * Ranks of a job that start together often sleep for a moment, so few may be runnable when the library looks. False if
 * the kernel tells neither. It takes some microseconds, so it is not for the path of messages. */
bool vb_machine_is_crowded(void);

#endif
