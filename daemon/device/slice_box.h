// SPDX-License-Identifier: BSD-2-Clause
/* Runs work of other threads in a device's thread, one slice (base/slice.h) at a time, and waits for it for a bounded
 * time. The mailbox is for calls that the main thread needs done. A slice is for work that can be given up: if the
 * device's thread does not take it in time, because it is stuck, the caller goes on without, and the box frees it
 * later. Several threads may call; their slices take turns. */
#ifndef PUMICE_DAEMON_DEVICE_SLICE_BOX_H
#define PUMICE_DAEMON_DEVICE_SLICE_BOX_H

#include <ev.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/loop_wake.h"

/* A part of some larger work, usually the first member of its struct. */
struct slice_job {
    /* Runs one slice. Called in the device's thread. */
    void (*run)(struct slice_job *job);
    /* Frees a job that was given up. Called in any thread, after `run`. */
    void (*drop)(struct slice_job *job);
    bool done, given_up; /* the box's own */
};

struct slice_box {
    struct loop_wake wake; /* not started: slice_box_init has failed */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* monotonic clock */
    struct slice_job *job; /* NULL: none. Protected by lock, as done and given_up of the job are. */
};

/* Returns 0, or -errno; slice_box_fini may be called also then. */
int slice_box_init(struct slice_box *b, struct ev_loop *loop);
/* The thread of the loop has ended, and nobody waits. Frees a job that was given up. */
void slice_box_fini(struct slice_box *b);

/* Runs one slice in the thread that runs the loop. True: it has run, and the job is the caller's again. False: the
 * thread did not run it within wait_ns. Then the job belongs to the box, which drops it. */
bool slice_box_run(struct slice_box *b, struct slice_job *job, uint64_t wait_ns);

#endif
