// SPDX-License-Identifier: BSD-2-Clause
/* What the daemon tells about itself, as JSON; the command's `status` and `why` read it.
 *
 *   { "version", "pid", "uid", "socket", "uptime_s", "fault", "seed",
 *     "devices": [ { "name", "address", "gid", "guid", "netdev", "port" ("active", "down"), "mtu" (bytes of payload), "gso", "loopback",
 *                    "rcvbuf", "sndbuf", "peer_window", "window_pkts", "counters": { name: number } (engine, I/O and faults in one),
 *                    "sessions": [ { "session", "pid", "uid", "comm", "memory", "pds", "mrs", "channels", "cqs", "qps" } ],
 *                    "qps": [ { "qpn", "session", "pid", "comm", "type", "state", "dest_qpn", "dgid", "path_mtu", "pd", "send_cq", "recv_cq",
 *                               "sq_posted", "sq_max", "sq_ring", "rq_posted", "rq_max", "rq_ring" (ring: written by the client, not yet read),
 *                               "una_psn", "next_psn", "max_psn", "epsn", "msn", "retries_left", "rnr_retries_left", "reads_outstanding",
 *                               "deadline_us" (from now; null: no timer), "srtt_us", "window_bytes", "inflight_bytes",
 *                               "waiting_rnr", "waiting_fence", "waiting_reads", "broken" (text or null),
 *                               "counters": { name: number } (those that are not 0) } ],
 *                    "cqs": [ { "cq", "session", "entries", "unread", "overrun", "armed" ("no", "solicited", "any"), "channel" } ],
 *                    "mrs": [ { "key", "session", "pd", "va", "length", "access" } ] } ] } */
#ifndef PUMICE_DAEMON_STATUS_H
#define PUMICE_DAEMON_STATUS_H

#include <jansson.h>

#include "device.h"

/* A device's part; runs in the device's thread. NULL: out of memory. The caller gets the reference. */
json_t *status_device(struct device *d);

/* Writes JSON text to a new memfd; a descriptor or -errno. */
int status_memfd(const json_t *root);

#endif
