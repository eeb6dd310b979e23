// SPDX-License-Identifier: BSD-2-Clause
/* Control requests on the session of a context. vb_call and vb_call_simple fail with -EIO in a forked child, and when
 * the daemon is gone. In the second case they also mark the context as gone. */
#ifndef PUMICE_SRC_VERBS_SESSION_CALL_H
#define PUMICE_SRC_VERBS_SESSION_CALL_H

#include "src/verbs/session/context.h"

/* Sends a request of any form. The other results are those of vb_session_call. */
int vb_call(struct vb_context *c, const struct vb_call *call);
/* Sends a request without descriptors. */
int vb_call_simple(struct vb_context *c, uint32_t op, const void *req, size_t req_len, void *rep, size_t rep_len);
/* Destroys the object with this handle in the daemon. Returns 0 or an errno value, and sets errno. Returns 0 without a
 * request for a forked child's copy of an object, and if the daemon is gone. */
int vb_drop(struct ibv_context *context, uint32_t op, uint32_t handle);

#endif
