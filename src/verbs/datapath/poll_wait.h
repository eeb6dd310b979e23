// SPDX-License-Identifier: BSD-2-Clause
/* What an empty poll does, and how the daemon's death is noticed. */
#ifndef VERBS_WAIT_H
#define VERBS_WAIT_H

#include "src/verbs/base/objects.h"

/* ns of a clock (CLOCK_MONOTONIC, CLOCK_REALTIME). */
uint64_t vb_clock(int clock);

/* Called without locks when a poll of cq found nothing: gives the processor away. A yield that comes back late says that
 * others hog the processors; then a process that sleeps gets them sooner than one that yields, so empty polls sleep
 * for some time. A thread that only polls now and then has no wait, and one that polls several queues in turn one for
 * all; several threads that poll the same queue hardly ever wait. Now and then looks whether the daemon lives. */
void vb_poll_wait(struct vb_cq *cq);

/* Looks whether the daemon still has its end of the session, and marks the context if not. */
void vb_poll_wait_check(struct vb_context *c);

#endif
