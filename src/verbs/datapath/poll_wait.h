// SPDX-License-Identifier: BSD-2-Clause
/* Carries out the decision of base/poll_state.h after a poll that found nothing: the thread returns at once, yields its
 * processor, or sleeps. This module makes the system calls. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_POLL_WAIT_H
#define PUMICE_SRC_VERBS_DATAPATH_POLL_WAIT_H

#include "src/verbs/base/poll_state.h"
#include "src/verbs/objects/cq.h"
#include "src/verbs/shim/yield.h"

/* To be called when the thread posted a send request. */
static inline void vb_poll_posted(void)
{
    vb_poll_self.posted = true;
}

/* To be called without locks when a poll of cq found nothing. Every VB_POLL_CHECK_NS it checks that the daemon
 * lives. */
void vb_poll_wait(struct vb_cq *cq);
/* The same, for anything else of the context that a program polls until the daemon publishes a change. */
void vb_poll_wait_at(struct vb_context *c, struct vb_poll_queue *queue);

#endif
