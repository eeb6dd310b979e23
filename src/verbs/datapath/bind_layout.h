// SPDX-License-Identifier: BSD-2-Clause
/* Binds of a memory window to a layout (pumice/layout.h). The request points to a copy of the layout in memory of this
 * process. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_BIND_LAYOUT_H
#define PUMICE_SRC_VERBS_DATAPATH_BIND_LAYOUT_H

#include "src/verbs/memory/mw.h"
#include "src/verbs/objects/qp.h"

/* Fills the fields of a bind request to a layout. The layout is copied, and the QP keeps the copy until the request is
 * done. Returns 0 or an errno value: EINVAL or ENOMEM. The caller holds the lock of the send queue. */
int vb_wqe_bind_layout(struct pm_send_wqe *w, struct vb_qp *qp, const struct vb_mw *mw,
                       const struct ibv_mw_bind_info *info);
/* Frees the copies of a QP that is destroyed. */
void vb_layouts_free(struct vb_qp *qp);

#endif
