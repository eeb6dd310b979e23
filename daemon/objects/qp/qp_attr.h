// SPDX-License-Identifier: BSD-2-Clause
/* Control operations that change and query the attributes of a QP. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_QP_ATTR_H
#define PUMICE_DAEMON_OBJECTS_QP_QP_ATTR_H

struct session;
struct control_reply;

/* Control operations. rq: the payload that pumice/abi.h defines for the operation. Return 0, or -errno with the
 * reason in *rp. */
int client_qp_modify(struct session *s, const void *rq, struct control_reply *rp);
int client_qp_query(struct session *s, const void *rq, struct control_reply *rp);

/* Checks a request of client_qp_modify as far as possible without the engine: the QP, the ranges, and the destination
 * address. */
int client_qp_check_modify(struct session *s, const void *rq, struct control_reply *rp);

#endif
