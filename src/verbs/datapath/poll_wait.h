// SPDX-License-Identifier: BSD-2-Clause
/* What a thread does after a poll that found nothing: it returns at once, gives its processor away by a yield, or
 * sleeps. base/poll_state.h decides which, and explains why; this module makes the system calls. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_POLL_WAIT_H
#define PUMICE_SRC_VERBS_DATAPATH_POLL_WAIT_H

#include "src/verbs/objects/cq.h"

/* To be called without locks when a poll of cq found nothing. Every VB_POLL_CHECK_NS it looks whether the daemon
 * lives. */
void vb_poll_wait(struct vb_cq *cq);

#endif
