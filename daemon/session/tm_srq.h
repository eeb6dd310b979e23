// SPDX-License-Identifier: BSD-2-Clause
/* The matching list of a shared receive queue of type TM: what it is made of, and the way of its operations from their
 * ring to the engine. They are carried out when the doorbell rang, and before each message is matched, so that a program
 * finds in force what it posted before the message was sent. */
#ifndef PUMICE_DAEMON_TAGLIST_H
#define PUMICE_DAEMON_TAGLIST_H

#include "daemon/session/objects.h"

struct device;

/* Checks what a client asks for against the device's profile. 0, or -EINVAL told in *rp. */
int taglist_check(const struct device *d, const struct pm_create_srq_req *r, struct control_reply *rp,
                  struct tm_params *p);
/* Makes the engine's part; nothing if p->max_num_tags is 0. 0 or -ENOMEM; taglist_release in either case. */
int taglist_acquire(struct taglist *l, const struct tm_params *p);
/* Frees it, after srq_destroy. */
void taglist_release(struct taglist *l);
/* Bytes of the ring, 0 if there is none; and tells the list that it is at offset in q's segment. */
size_t taglist_ring_bytes(const struct tm_params *p);
void taglist_map(struct srqueue *q, uint32_t offset);
/* Before the queue is freed: it waits for nothing any more. */
void taglist_forget(struct srqueue *q);

/* Carries out what is in the ring. Returns how many operations. */
unsigned taglist_drain(struct srqueue *q, uint64_t now);
/* mem_ops.list_ops. */
void taglist_before_match(void *srqueue);
/* Goes on with the rings that there was no room for (struct device.waiting_lists). Returns how many operations. */
unsigned taglist_drain_waiting(struct device *d, uint64_t now);
/* Are there operations in the ring, even after all that is possible was done? */
bool taglist_busy(struct srqueue *q, uint64_t now);

#endif
