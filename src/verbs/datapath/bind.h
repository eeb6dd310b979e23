// SPDX-License-Identifier: BSD-2-Clause
/* Binding memory windows. ibv_bind_mw binds windows of type 1 and chooses their next rkey. A send request binds a
 * window of type 2 and names its rkey. Both are ordered with the other requests of the send queue.
 *
 * A window has its new key when the bind is posted, so that later requests can use it. If the bind is refused or
 * flushed, its completion brings the old key back. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_BIND_H
#define PUMICE_SRC_VERBS_DATAPATH_BIND_H

#include "src/verbs/objects/qp.h"

/* ibv_bind_mw, a function that a context points to. 0 or an errno value. */
int vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* Fills the fields of a bind request. For type 1, new_rkey is the next rkey of the window. For type 2, it is the wanted
 * rkey; only its low byte counts. Returns 0 or an errno value. The caller holds the lock of the send queue. */
int vb_wqe_bind(struct pm_send_wqe *w, struct vb_qp *qp, struct ibv_mw *mw, uint32_t new_rkey,
                const struct ibv_mw_bind_info *info);
/* Drops the binds among the requests from the tail to index end, which were built and will not be posted. Their windows
 * get their old keys again. The caller holds the lock of the send queue. */
void vb_binds_drop(struct vb_qp *qp, uint32_t end);
/* Undoes a bind request that was refused or flushed: its window gets its old key again. */
void vb_bind_undo(struct vb_qp *qp, const struct pm_send_wqe *w);

#endif
