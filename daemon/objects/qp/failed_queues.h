// SPDX-License-Identifier: BSD-2-Clause
/* Handles queues that failed: QPs that went to ERR, and QPs and SRQs whose rings hold something invalid. A failure
 * may be found inside a call of the engine. Then the queue only goes to a list of the device, and the loop calls this
 * module later. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_FAILED_QUEUES_H
#define PUMICE_DAEMON_OBJECTS_QP_FAILED_QUEUES_H

#include <stdint.h>

struct device;

/* Handles all queues in the device's lists `failed_srqs` and `failed`. A queue with an invalid ring fails, its client
 * gets an event, and its rings are flushed. Returns how many queues were handled. */
unsigned failed_queues_settle(struct device *d);

#endif
