// SPDX-License-Identifier: BSD-2-Clause
/* Control operations that create and destroy queue pairs (QPs). */
#ifndef PUMICE_DAEMON_OBJECTS_QP_QP_CONTROL_H
#define PUMICE_DAEMON_OBJECTS_QP_QP_CONTROL_H

struct client_qp;
struct session;
struct control_reply;

/* Control operations. rq: the payload that pumice/abi.h defines for the operation. Return 0, or -errno with the
 * reason in *rp. */
int client_qp_create(struct session *s, const void *rq, struct control_reply *rp);
/* Before this call, the data path must have sent the client's posted requests, as far as the QP may send them
 * (control/dispatch.c does that). */
int client_qp_destroy(struct session *s, const void *rq, struct control_reply *rp);

/* Frees a QP. Its send ring is no longer read. */
void client_qp_free(struct client_qp *q);

#endif
