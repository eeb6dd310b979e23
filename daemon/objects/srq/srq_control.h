// SPDX-License-Identifier: BSD-2-Clause
/* Control operations that create, change, resize, query and destroy shared receive queues (SRQs). */
#ifndef PUMICE_DAEMON_OBJECTS_SRQ_SRQ_CONTROL_H
#define PUMICE_DAEMON_OBJECTS_SRQ_SRQ_CONTROL_H

struct session;
struct control_reply;
struct client_srq;

/* Control operations. rq: the payload that pumice/abi.h defines for the operation. Return 0, or -errno with the
 * reason in *rp. */
int client_srq_create(struct session *s, const void *rq, struct control_reply *rp);
int client_srq_modify(struct session *s, const void *rq, struct control_reply *rp);
int client_srq_resize(struct session *s, const void *rq, struct control_reply *rp);
int client_srq_switch(struct session *s, const void *rq, struct control_reply *rp);
int client_srq_query(struct session *s, const void *rq, struct control_reply *rp);
int client_srq_destroy(struct session *s, const void *rq, struct control_reply *rp);

/* Frees an SRQ that no QP uses. */
void client_srq_free(struct client_srq *srq);

#endif
