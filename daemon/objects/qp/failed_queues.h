// SPDX-License-Identifier: BSD-2-Clause
/* Follows up on queues that failed: QPs that went to ERR, and QPs and SRQs whose rings hold something invalid. The failure may be found
 * inside of a call of the engine, so the queue only goes to a list of the device then, and the loop calls this later. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_FAILED_QUEUES_H
#define PUMICE_DAEMON_OBJECTS_QP_FAILED_QUEUES_H

#include <stdint.h>

struct device;

/* Settles all queues of the device's lists `failed_srqs` and `failed`. A broken queue fails, its client gets an event, and its rings are
 * flushed. Returns how many. */
unsigned failed_queues_settle(struct device *d, uint64_t now);

#endif
