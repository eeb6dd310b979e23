// SPDX-License-Identifier: BSD-2-Clause
/* Layouts of memory windows: what libpumice.so asks for (pumice/provider.h). */
#ifndef VERBS_LAYOUT_H
#define VERBS_LAYOUT_H

#include "pumice/layout.h"
#include "src/verbs/base/objects.h"

/* Fills the fields of a bind request to a layout, which is copied; the copy stays until the request is done. 0 or errno value. Under
 * the send queue's lock. */
int vb_wqe_layout(struct pm_send_wqe *w, struct vb_qp *qp, const struct vb_mw *mw, const struct ibv_mw_bind_info *info);
/* Frees the copies of a QP that is going. */
void vb_layouts_free(struct vb_qp *qp);

#endif
