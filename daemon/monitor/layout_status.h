// SPDX-License-Identifier: BSD-2-Clause
/* Memory windows over layouts as JSON, for `pumice layout`: what they are bound to, and where their bytes are. In the device's
 * thread.
 *
 *   { name, windows: [ WINDOW ] }
 *
 * WINDOW: key, session, pid, comm, pd, type, max_entries, bound, and if it is: qpn (type 2; else null), access (enum ibv_access_flags), start
 *     (its first address), length (bytes), depth, region (the key of the one beneath; only without a layout), round (bytes of a full
 *     round; only if all entries run out together), entry_count; and if it was asked for: entries: [ ENTRY ], pieces: [ PIECE ], rest
 *     ("": the pieces are all; "more": there are more; "gone": what follows is not there any more, or beyond the end)
 * ENTRY: object (key), kind ("region", "window", "gone"), address, length (bytes of an item), items, repeat, dimensions: [ { stride, count } ];
 *     as the device keeps it: patterns that could be joined are
 * PIECE: offset, length, address, object (key of the region), path ([ entry, the inner window's entry, ... ])
 * Keys and numbers that may exceed 63 bits are texts with 0x. */
#ifndef PUMICE_DAEMON_LAYOUTSTATUS_H
#define PUMICE_DAEMON_LAYOUTSTATUS_H

#include <jansson.h>

#include "daemon/device/device.h"
#include "pumice/abi.h"

json_t *layout_status_device(struct device *d, const struct pm_layout_req *rq);

#endif
