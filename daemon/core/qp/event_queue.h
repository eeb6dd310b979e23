// SPDX-License-Identifier: BSD-2-Clause
/* Completions and asynchronous events, queued until the engine's owner takes them. */
#ifndef PUMICE_DAEMON_CORE_QP_EVENT_QUEUE_H
#define PUMICE_DAEMON_CORE_QP_EVENT_QUEUE_H

#include "daemon/core/base/types.h"

struct engine;
struct qp;
struct srq;

/* The oldest completion not yet taken; NULL: none. Valid until engine_drop_completion, which removes it. */
const struct completion *engine_peek_completion(struct engine *e);
void engine_drop_completion(struct engine *e);
/* Takes the oldest event. False: there is none. */
bool engine_pop_event(struct engine *e, struct event *ev);

/* --- inside the engine ------------------------------------------------------------------------ */

/* Free slots of the completion queue. */
uint32_t completion_room(const struct engine *e);
/* Adds a completion and fills in the fields that all completions of the QP have in common. The caller has checked that
 * there is room. */
struct completion *completion_add(struct qp *qp, bool is_recv, uint8_t status, uint64_t now);
/* As completion_add, for an operation on an SRQ's matching list. */
struct completion *completion_add_srq(struct srq *srq, uint8_t status, uint64_t now);
/* Drops the completions and events of a QP that is being destroyed. */
void completion_forget(struct qp *qp);
/* Drops the completions and events of an SRQ that is being destroyed. */
void completion_forget_srq(const struct srq *srq);

/* Is there a free slot in the event queue? */
bool event_room(const struct engine *e);
/* Adds an asynchronous event. Without room it is dropped and counted. */
void event_add(struct qp *qp, uint8_t type);
void event_add_srq(const struct srq *srq, uint8_t type);

#endif
