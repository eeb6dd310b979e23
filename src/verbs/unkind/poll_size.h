// SPDX-License-Identifier: BSD-2-Clause
/* Polls of an unkind NIC (pumice/unkind.h, docs/unkind.md): they return fewer completions than there are, as if the others
 * came a moment later. If the program has asked for an event, it gets one for the completions that are left
 * (datapath/cq_notify.h). */
#ifndef PUMICE_SRC_VERBS_UNKIND_POLL_SIZE_H
#define PUMICE_SRC_VERBS_UNKIND_POLL_SIZE_H

#include "pumice/unkind.h"
#include "src/verbs/objects/cq.h"

/* How many completions the next poll of the CQ may take, of the num that the program asks for: at least one. The caller
 * holds the lock. */
int vb_unkind_poll_size(const struct vb_cq *cq, int num);
/* Extended polling: may the poll go on to the next completion? The caller holds the lock. */
bool vb_unkind_goes_on(const struct vb_cq *cq);

#endif
