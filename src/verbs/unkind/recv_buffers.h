// SPDX-License-Identifier: BSD-2-Clause
/* Receive requests of an unkind NIC (pumice/unkind.h, docs/unkind.md): their buffers are filled with a pattern when they are
 * posted and when they fail, and the daemon is told when they were posted. */
#ifndef PUMICE_SRC_VERBS_UNKIND_RECV_BUFFERS_H
#define PUMICE_SRC_VERBS_UNKIND_RECV_BUFFERS_H

#include "pumice/unkind.h"
#include "src/verbs/session/context.h"

/* Kinds for which a QP needs vb_unkind_posted. */
#define VB_UNKIND_RECV (UNKIND_BUFFERS | UNKIND_RNR)

/* A receive request is about to be posted to a QP. */
void vb_unkind_posted(struct vb_context *c, struct pm_recv_wqe *w);
/* Fills receive buffers with a pattern, as far as they are in regions of this context. Of long ones, it fills the
 * beginning and the end. With a kind device, it does nothing. */
void vb_unkind_fill(struct vb_context *c, const struct pm_sge *sge, uint32_t num);

#endif
