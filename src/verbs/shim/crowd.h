// SPDX-License-Identifier: BSD-2-Clause
/* Tells whether the machine is crowded: many more threads are runnable than there are processors. */
#ifndef PUMICE_SRC_VERBS_SHIM_CROWD_H
#define PUMICE_SRC_VERBS_SHIM_CROWD_H

#include <stdbool.h>
#include <stdint.h>

/* So many runnable threads for each processor are a crowd. In a crowd of this size a thread waits for a processor for
 * VB_CROWD - 1 times as long as it runs. */
#define VB_CROWD 4u
/* A thread judges how long it waited when it has run for this time, ns. */
#define VB_CROWD_LOOK_NS 1000000u

/* What a thread knows of its waiting. Zeroed at first. */
struct vb_crowd_look {
    uint64_t ran, waited; /* how long it had run, and waited for a processor, when it last judged, ns */
    bool crowded; /* the judgement */
};

/* Did the thread wait in a crowd since it last judged? ran, waited: in all, ns (the first two numbers of
 * /proc/thread-self/schedstat). If it has hardly run since, the last judgement holds. */
bool vb_waited_in_crowd(struct vb_crowd_look *l, uint64_t ran, uint64_t waited);

/* By the threads that are runnable at this moment, and by how long the calling thread has waited for a processor lately.
 * Ranks of a job that start together often sleep for a moment, so few may be runnable when the library looks. False if
 * the kernel tells neither. It takes some microseconds, so it is not for the path of messages. */
bool vb_machine_is_crowded(void);

#endif
