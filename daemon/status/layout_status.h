// SPDX-License-Identifier: BSD-2-Clause
/* Describes memory windows and their layouts as JSON, for `pumice layout`: their bindings, and where their bytes are.
 * A request without a key gets all windows that can be bound to layouts.
 *
 *   { name, answers (false: the device's thread is stuck), windows: [ WINDOW ] }
 *
 * WINDOW: key, session, pid, comm, pd, type, max_entries, bound. If bound, also: qpn (type 2; else null), access (enum
 *     ibv_access_flags), start (its first address), length (bytes), depth, region (the key of the region beneath; only
 *     without a layout), round (bytes of a full round; only if all entries end together), entry_count. If the request
 *     names the window, also: entries: [ ENTRY ], pieces: [ PIECE ], rest ("": pieces is complete; "more": there are
 *     more; "gone": the next memory no longer exists, or is beyond the end)
 * ENTRY: object (key), kind ("region", "window", "gone"), address, length (bytes of an item), items, repeat,
 *     dimensions: [ { stride, count } ]. This is the device's own form, in which adjacent patterns are joined.
 * PIECE: offset, length, address, object (key of the region), path ([ entry, the inner window's entry, ... ])
 * Keys, and numbers that may exceed 63 bits, are texts with 0x. */
#ifndef PUMICE_DAEMON_STATUS_LAYOUT_STATUS_H
#define PUMICE_DAEMON_STATUS_LAYOUT_STATUS_H

#include <jansson.h>

#include "daemon/base/user.h"
#include "daemon/device/device.h"
#include "pumice/abi.h"

/* The windows that the user may see. rq->pieces is at most PM_LAYOUT_PIECES. Any thread but the device's may call it, and several at once, as with
 * status_device. */
json_t *layout_status_device(struct device *d, const struct user *u, const struct pm_layout_req *rq);

#endif
