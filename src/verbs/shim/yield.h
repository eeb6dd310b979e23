// SPDX-License-Identifier: BSD-2-Clause
/* A thread that polls gives its processor away, by a yield of its own or by one of the program. While other programs
 * compute there, it waits with a short time slice (base/poll_brief.h), and has its usual slice again afterwards. So the
 * program never runs with another slice than its own, and no thread or process that it starts inherits one.
 *
 * The library replaces sched_yield of the C library. An MPI with more ranks than processors calls it between its polls,
 * so there the library hardly ever yields itself. */
#ifndef PUMICE_SRC_VERBS_SHIM_YIELD_H
#define PUMICE_SRC_VERBS_SHIM_YIELD_H

#include <stdint.h>

#include "src/verbs/base/poll_state.h"

/* The state of the calling thread. (initial-exec: an access never allocates memory.) */
extern _Thread_local __attribute__((tls_model("initial-exec"))) struct vb_poll_thread vb_poll_self;

/* To be called before and after the calling thread waits. before: ns of CLOCK_MONOTONIC. */
void vb_slice_begin(uint64_t before);
void vb_slice_end(void);

/* Yields between vb_slice_begin and vb_slice_end, which began at the time before. Returns the time after. */
uint64_t vb_yield(uint64_t before);

#endif
