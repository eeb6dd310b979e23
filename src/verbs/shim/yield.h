// SPDX-License-Identifier: BSD-2-Clause
/* Yields the processor of a thread that polls. While other programs compute there, the thread yields and waits with a
 * short time slice (base/poll_brief.h). It gets its usual slice back after each wait. So the program itself always runs
 * with its own slice, and no thread or process that it starts inherits the short one.
 *
 * The library replaces sched_yield of the C library. An MPI with more ranks than processors calls sched_yield between its
 * polls. Then the library hardly ever yields itself, and must see these yields. */
#ifndef PUMICE_SRC_VERBS_SHIM_YIELD_H
#define PUMICE_SRC_VERBS_SHIM_YIELD_H

#include <stdint.h>

#include "src/verbs/base/poll_state.h"

/* The state of the calling thread. (initial-exec: an access never allocates memory.) */
extern _Thread_local __attribute__((tls_model("initial-exec"))) struct vb_poll_thread vb_poll_self;

/* To be called before and after the calling thread waits. before: ns of CLOCK_MONOTONIC. */
void vb_slice_begin(uint64_t before);
void vb_slice_end(void);

/* Yields. To be called between vb_slice_begin(before) and vb_slice_end. Returns the time after the yield. */
uint64_t vb_yield(uint64_t before);

#endif
