// SPDX-License-Identifier: BSD-2-Clause
/* Receive requests of an unkind NIC (pumice/unkind.h, docs/unkind.md): their buffers are filled with a pattern when they are
 * posted and when they fail, and the daemon is told when they were posted. */
#ifndef PUMICE_SRC_VERBS_UNKIND_RECV_BUFFERS_H
#define PUMICE_SRC_VERBS_UNKIND_RECV_BUFFERS_H

#include "pumice/unkind.h"
#include "src/verbs/objects/qp.h"
#include "src/verbs/objects/srq.h"

/* Kinds for which a QP needs vb_unkind_posted. */
#define VB_UNKIND_RECV (UNKIND_BUFFERS | UNKIND_RNR)

/* Request w is about to be posted to a QP, under the index next. A buffer that another request of the QP has already is not
 * filled: many programs post one buffer again and again, and look at the last message in it. */
void vb_unkind_posted(struct vb_qp *qp, struct pm_recv_wqe *w, uint32_t next);
/* The same for an SRQ. */
void vb_unkind_srq_posted(struct vb_srq *srq, uint32_t wqe_index);
/* A request has failed: fills its buffers. Of long ones, it fills the beginning and the end. With a kind device, these
 * functions do nothing. */
void vb_unkind_failed(struct vb_context *c, const struct pm_sge *sge, uint32_t num);

#endif
