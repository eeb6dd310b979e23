// SPDX-License-Identifier: BSD-2-Clause
/* One pass of a device: handles doorbells, receives and sends packets, and publishes completions. Used by the loop,
 * and by tests without a loop. */
#ifndef PUMICE_DAEMON_LOOP_PASS_H
#define PUMICE_DAEMON_LOOP_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/device.h"

/* Handles doorbells, datagrams and timers, then completions and packets until there is nothing more to do. Limits
 * keep one kind of work from starving another. Returns true if there was anything to do. Then there may be more. */
bool device_pass(struct device *d, uint64_t now);
/* Sends the requests that the program has posted to q, as far as q may send them, before q is destroyed. A NIC starts a
 * request when it is posted, and programs rely on that: many destroy a QP right after they posted its last datagram. */
void device_send_posted(struct device *d, struct client_qp *q);
/* An unkind device gives its programs what it holds back. To be called before a control operation, which may free objects
 * and memory that this needs. */
void device_settle(struct device *d);
/* Returns when the next pass will have work that no descriptor or doorbell announces: retransmissions, delayed
 * packets, events of moderated CQs. NEVER: nothing. */
uint64_t device_deadline(const struct device *d);

#endif
