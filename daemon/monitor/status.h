// SPDX-License-Identifier: BSD-2-Clause
/* The daemon's status as JSON. The command's `status` and `why` read it.
 *
 *   { version, pid, uid, socket, uptime_s, fault, seed, devices: [ DEVICE ] }
 *
 * DEVICE: name, use (see usage.h), address, gid, guid, netdev, port ("active", "down"), mtu (bytes of payload), gso,
 *     loopback, ecn, rcvbuf, sndbuf, peer_window (bytes), window_pkts,
 *     counters: { name: number } (engine, I/O and faults together),
 *     hw_counters, mlx5_counters, port_counters, usnic_counters (the same under other systems' names, counter_names.h),
 *     sessions: [ SESSION ], qps: [ QP ], srqs: [ SRQ ], xrcds: [ XRCD ], cqs: [ CQ ], mrs: [ MR ], mws: [ MW ],
 *     groups: [ { gid, members } ] (multicast), connectivity (see path_check.h)
 * SESSION: session (number), pid, uid, comm, memory ("process_vm", "proc_mem", "none"); and the number of its pds, mrs,
 *     mws, channels, cqs, srqs, qps, xrcds, targets (XRC targets that it has open)
 * QP: qpn, session, pid, comm (an XRC target instead has session null and openers: [ session ]), type, state,
 *     dest_qpn, dgid, path_mtu, pd, send_cq, recv_cq, srq, xrcd (null: none),
 *     requester ("free", "queued", "in hotel": waiting for an ACK, "on re-send list"),
 *     sq_posted, rq_posted (requests that the engine has),
 *     sq_ring, rq_ring (requests that the client wrote and the daemon has not read; null: the ring is broken),
 *     sq_max, rq_max, una_psn, next_psn, max_psn, epsn, msn, retries_left, rnr_retries_left, reads_outstanding,
 *     deadline_us (from now; null: no timer), srtt_us, window_bytes, inflight_bytes,
 *     rate (bytes per second; congestion has lowered it; null: no limit), waiting_rate, waiting_rnr, waiting_fence,
 *     waiting_reads, broken, unreachable (texts, or null),
 *     counters, hw_counters, mlx5_counters, usnic_counters (only those that are not 0),
 *     retry_cnt, rnr_retry, max_rd_atomic (attributes),
 *     waiting_window, waiting_peer (full windows), waiting_drain (SQD), waiting_srqn (null: none),
 *     retransmitting, probes (tail probes since the last progress),
 *     silent_us (age of the oldest unacknowledged packet as such; null: none is),
 *     rnr_us (rest of the peer's RNR timer; null: none runs),
 *     timeout_us (of the QP; null: none), failure (the first cause of its error, see error_log.h; null: none)
 * SRQ: srq (handle), session, type ("basic", "XRC", "TM"), srqn, xrcd (null: not of XRC), cq (null: not of XRC or TM),
 *     pd, qps (how many use it), max, limit (0: not armed), posted (requests that the engine has),
 *     ring (requests that the client wrote and the daemon has not read; null: the ring is broken),
 *     broken (text, or null), tm (see tm_status.h; null: no tag matching)
 * XRCD: xrcd (number), inode (null: anonymous), and the number of its opens, srqs, targets
 * CQ: cq (handle), session, entries, unread (null: the index is broken), overrun, armed ("no", "solicited", "any"),
 *     channel
 * MR: key, session, pd, va, length, access (enum ibv_access_flags)
 * MW: key (its low byte, which changes, is 0), session, pd, type, max_entries */
#ifndef PUMICE_DAEMON_STATUS_H
#define PUMICE_DAEMON_STATUS_H

#include <jansson.h>

#include "daemon/device/device.h"

/* Returns the status of one device. Runs in the device's thread. NULL: out of memory. The caller owns the reference. */
json_t *status_device(struct device *d);

/* Writes JSON text to a new memfd. Returns a descriptor or -errno. */
int status_memfd(const json_t *root);

#endif
