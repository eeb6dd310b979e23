// SPDX-License-Identifier: BSD-2-Clause
/* One pass of a device: what comes in, what goes out. Used by the loop, and by tests that have no loop. */
#ifndef PUMICE_DAEMON_LOOP_PASS_H
#define PUMICE_DAEMON_LOOP_PASS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/device.h"

/* Doorbells, datagrams, timers, then completions and packets until there is nothing more to do, within bounds that keep
 * one kind of work from starving another. Returns true if there was anything to do; then there may be more. */
bool device_pass(struct device *d, uint64_t now);
/* What q's program has posted leaves now, as far as it may be sent: before q goes. A NIC begins with a request when it is posted,
 * and programs count on that: the last datagram of a conversation is often followed by the end of its queue pair. */
void device_send_posted(struct device *d, struct client_qp *q);
/* When the next pass has something to do that nobody announces: retransmissions, delayed packets, events of
 * moderated completion queues. NEVER: nothing. */
uint64_t device_deadline(const struct device *d);

#endif
