// SPDX-License-Identifier: BSD-2-Clause
/* Describes a device as JSON (DEVICE below). server/query.c makes the whole document, which `pumice status` and
 * `pumice why` read.
 *
 *   { version, pid, uid, socket, uptime_s, fault, fault_script, shows (a text: whose objects), seed,
 *     threads (see server/watchdog.h), devices: [ DEVICE ] }
 *
 * DEVICE: name, answers (false: the device's thread is stuck, and only the name is known), usage (see usage_status.h),
 *     address, gid, guid, netdev, profile (its name), port ("active", "down"), mtu (payload bytes),
 *     gso, loopback, ecn, e2e_credits, selective, rcvbuf, sndbuf, peer_window (bytes), window_pkts, max_resends, ack_delay_us, min_timeout_us,
 *     counters: { name: number } (engine, I/O and faults together),
 *     tx_classes: { class: packets sent }, hw_counters, mlx5_counters, port_counters, usnic_counters (the same under
 *     other systems' names, counter_names.h),
 *     sessions: [ SESSION ], pds: [ PD ], qps: [ QP ], srqs: [ SRQ ], xrcds: [ XRCD ], cqs: [ CQ ], comp_cntrs: [ COMP_CNTR ],
 *     mrs: [ MR ], mws: [ MW ], groups: [ { gid, members } ] (multicast), connectivity (see path_check.h)
 * SESSION: session (number), pid, uid, comm, memory ("process_vm", "proc_mem", "none"), ending (the program has gone, and
 *     its objects are being freed); and the number of its pds, mrs,
 *     mws, channels, cqs, comp_cntrs, srqs, qps, xrcds, targets (XRC targets that it has open)
 * QP: qp_status.h. PD, SRQ, XRCD, CQ, COMP_CNTR, MR, MW: object_status.h.
 *
 * A user who does not administer the daemon (base/user.h) gets the lists with the objects of its own sessions only, and
 * the XRC domains and targets that these sessions have open. seed is missing, and connectivity is empty. Facts
 * of the device as a whole are for everybody: its settings and counters, its multicast groups, which /proc/net/igmp shows
 * as well. */
#ifndef PUMICE_DAEMON_STATUS_STATUS_H
#define PUMICE_DAEMON_STATUS_STATUS_H

#include <jansson.h>

#include "daemon/base/user.h"
#include "daemon/device/device.h"

/* Returns the status of one device for a user. Any thread but the device's may call it, and several at once: they take turns. The
 * device's thread does the work in slices (base/slice.h), between which it carries packets; object_walk.h says what
 * holds for objects that come and go meanwhile. If the device's thread does not answer, the status has "answers": false
 * and empty lists. The caller owns the reference. */
json_t *status_device(struct device *d, const struct user *u);

#endif
