// SPDX-License-Identifier: BSD-2-Clause
/* The matching list of a shared receive queue of type TM: what it is made of, and the way of its operations from their
 * ring to the engine. They are carried out when the doorbell rang, and before each message is matched, so that a program
 * finds in force what it posted before the message was sent. */
#ifndef PUMICE_DAEMON_OBJECTS_SRQ_TM_SRQ_H
#define PUMICE_DAEMON_OBJECTS_SRQ_TM_SRQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/objects/srq/srq.h"

struct control_reply;
struct device;

/* Checks what a client asks for against the device's profile. 0, or -EINVAL told in *rp. */
int tm_srq_check(const struct device *d, const struct pm_create_srq_req *r, struct control_reply *rp,
                 struct tm_params *p);
/* Makes the engine's part; nothing if p->max_num_tags is 0. 0 or -ENOMEM; tm_srq_release in either case. */
int tm_srq_acquire(struct tm_srq *l, const struct tm_params *p);
/* Frees it, after srq_destroy. */
void tm_srq_release(struct tm_srq *l);
/* Bytes of the ring, 0 if there is none; and tells the list that it is at offset in q's segment. */
size_t tm_srq_ring_bytes(const struct tm_params *p);
void tm_srq_map(struct client_srq *q, uint32_t offset);
/* Before the queue is freed: it waits for nothing any more. */
void tm_srq_forget(struct client_srq *q);

/* Carries out what is in the ring. Returns how many operations. */
unsigned tm_srq_drain(struct client_srq *q, uint64_t now);
/* owner_ops.list_ops. */
void tm_srq_before_match(void *client_srq);
/* Goes on with the rings that there was no room for (struct device.waiting_tm_srqs). Returns how many operations. */
unsigned tm_srq_drain_waiting(struct device *d, uint64_t now);
/* Are there operations in the ring, even after all that is possible was done? */
bool tm_srq_busy(struct client_srq *q, uint64_t now);

#endif
