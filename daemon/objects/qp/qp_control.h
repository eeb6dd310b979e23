// SPDX-License-Identifier: BSD-2-Clause
/* Control operations that create and destroy queue pairs (QPs). */
#ifndef PUMICE_DAEMON_OBJECTS_QP_QP_CONTROL_H
#define PUMICE_DAEMON_OBJECTS_QP_QP_CONTROL_H

struct client_qp;
struct session;
struct control_reply;

/* Control operations: each takes the payload that pumice/abi.h has for it. 0, or -errno with the reason in *rp. */
int client_qp_create(struct session *s, const void *rq, struct control_reply *rp);
/* The caller has settled the data path before: what the client posted has left as far as it may be sent (control/dispatch.h). */
int client_qp_destroy(struct session *s, const void *rq, struct control_reply *rp);

/* Frees a QP. Its send ring is not read any more. */
void client_qp_free(struct client_qp *q);

#endif
