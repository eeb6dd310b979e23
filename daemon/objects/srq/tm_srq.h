// SPDX-License-Identifier: BSD-2-Clause
/* Sets up the matching list of an SRQ of type TM, and passes list operations from their ring to the engine. Operations
 * are executed when the doorbell rang, and before each message is matched. So an operation that a program posted before
 * the message was sent takes effect in time. */
#ifndef PUMICE_DAEMON_OBJECTS_SRQ_TM_SRQ_H
#define PUMICE_DAEMON_OBJECTS_SRQ_TM_SRQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/objects/srq/srq.h"

struct control_reply;
struct device;

/* Events that the trace of a list remembers. Pages that the trace never uses cost nothing. */
#define TM_SRQ_TRACE_SLOTS 4096u

/* Checks the client's limits against the device's profile. Returns 0, or -EINVAL with the reason in *rp. */
int tm_srq_check(const struct device *d, const struct pm_create_srq_req *r, struct control_reply *rp,
                 struct tm_params *p);
/* Creates the engine's list; none if p->max_num_tags is 0. Returns 0, -ENOMEM or -EINVAL. Call tm_srq_release in any
 * case. */
int tm_srq_acquire(struct tm_srq *l, const struct tm_params *p, const struct quota_owner *owner,
                   struct control_reply *rp);
/* Frees the list, after srq_destroy. */
void tm_srq_release(struct tm_srq *l);
/* tm_srq_ring_bytes returns the bytes of the ring; 0: there is none. tm_srq_map places the ring at offset in q's
 * segment. */
size_t tm_srq_ring_bytes(const struct tm_params *p);
void tm_srq_map(struct client_srq *q, uint32_t offset);
/* To be called before the SRQ is freed. Removes it from the device's list of waiting SRQs. */
void tm_srq_forget(struct client_srq *q);

/* Executes the operations in the ring. Returns how many. */
unsigned tm_srq_drain(struct client_srq *q, uint64_t now);
/* The engine's callback owner_ops.list_ops. */
void tm_srq_before_match(void *client_srq);
/* Continues with the rings whose operations had no room for their completions (struct device.waiting_tm_srqs).
 * Returns how many operations were executed. */
unsigned tm_srq_drain_waiting(struct device *d, uint64_t now);
/* True if operations remain in the ring after all that could be executed were. */
bool tm_srq_busy(struct client_srq *q, uint64_t now);

#endif
