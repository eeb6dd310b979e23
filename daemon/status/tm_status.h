// SPDX-License-Identifier: BSD-2-Clause
/* Describes matching lists as JSON: their state, their entries, and their recent events.
 *
 *   { name, answers (false: the device's thread is stuck), lists: [ LIST ] }
 *
 * LIST: in_sync, hw_cnt, sw_cnt, inflight (unexpected messages that are arriving), active, pending, consumed (entries),
 *     masks (distinct masks), max_num_tags, max_ops, profile, buffers (receive requests in the SRQ),
 *     counters: { name: number }, srq (handle), session, pid, comm, qps (how many use the SRQ), entries: [ ENTRY ],
 *     events: [ EVENT ]
 * ENTRY: handle, tag, mask, bytes (capacity), recv_wr_id, state ("active", "pending"), age_us
 * EVENT: number, age_us, event (its name), hw_cnt, sw_cnt, inflight; qpn, kind and depth (messages); tag, mask, active,
 *     handle, entries, why, why_text (where they apply)
 * Tags, masks and handles are texts with 0x. */
#ifndef PUMICE_DAEMON_STATUS_TM_STATUS_H
#define PUMICE_DAEMON_STATUS_TM_STATUS_H

#include <jansson.h>

#include "daemon/base/user.h"
#include "daemon/device/device.h"
#include "daemon/objects/srq/srq.h"

/* Synchronization, lengths and counters of a list, as JSON. buffers: receive requests in its SRQ. In any thread. */
json_t *tm_status_summary(const struct tm_info *i, uint32_t buffers);
/* All lists of the device that the user may see, with as many entries and events as rq asks for. Any thread but the device's may call it, and
 * several at once, as with status_device. Each list is shown at one moment. */
json_t *tm_status_device(struct device *d, const struct user *u, const struct pm_tm_req *rq);

#endif
