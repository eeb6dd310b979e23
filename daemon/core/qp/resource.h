// SPDX-License-Identifier: BSD-2-Clause
/* Resources of the responder (IBA 9.7.4.1.4): for each of the last READs, atomics, ATOMIC WRITEs and FLUSHes, its
 * response and the state to repeat it. */
#ifndef PUMICE_DAEMON_CORE_QP_RESOURCE_H
#define PUMICE_DAEMON_CORE_QP_RESOURCE_H

#include "daemon/core/qp/qp.h"

/* The ring is at least so long. So a duplicate of an older request still finds its response. */
#define RESOURCES_LEAST 16u

/* Takes the oldest resource for a new request. NULL: the response of the oldest resource is still to be sent for the first
 * time. */
struct resource *resp_new_resource(struct qp *qp);
/* Packets [start, end) of the response are to be sent. again: they were sent before. */
void resp_answer_later(struct qp *qp, struct resource *res, uint32_t start, uint32_t end, bool again);
/* A repeated READ asks for packets [start, end). If others of this READ are still to be sent, these follow them. */
void resp_answer_again(struct qp *qp, struct resource *res, uint32_t start, uint32_t end);
/* A round of the response was sent. The next part that was asked for again is to be sent. */
void resp_round_done(struct qp *qp, struct resource *res);
/* The response was sent, or will not be sent. */
void resp_response_done(struct qp *qp, struct resource *res);
/* Drops the responses that wait to be sent. */
void resp_drop_responses(struct qp *qp);
/* The rest of an unread READ was copied to memory of engine.copies. The copy lasts until the response is sent or
 * dropped. */
void resp_set_copy(struct qp *qp, struct resource *res, uint8_t *copy);
/* The data of a READ of at most READ_SMALL bytes were copied to res->data. */
void resp_set_kept(struct qp *qp, struct resource *res);
/* The free-running index of a resource in the ring. */
uint32_t resp_resource_index(const struct responder *r, const struct resource *res);
/* The resource of this operation whose responses hold psn; NULL: there is none. */
struct resource *resp_find_resource(struct qp *qp, uint32_t psn, uint8_t operation);
/* The peer may have n requests outstanding that need a resource. The ring grows if needed, and never shrinks. */
void resp_set_resources(struct qp *qp, uint32_t n);

#endif
