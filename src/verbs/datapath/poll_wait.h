// SPDX-License-Identifier: BSD-2-Clause
/* What an empty poll does. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_POLL_WAIT_H
#define PUMICE_SRC_VERBS_DATAPATH_POLL_WAIT_H

#include "src/verbs/objects/cq.h"

/* Called without locks when a poll of cq found nothing: gives the processor away. A yield that comes back late says that
 * others hog the processors; then a process that sleeps gets them sooner than one that yields, so empty polls sleep
 * for some time. A thread that only polls now and then has no wait, and one that polls several queues in turn one for
 * all; several threads that poll the same queue hardly ever wait. Now and then looks whether the daemon lives. */
void vb_poll_wait(struct vb_cq *cq);

#endif
