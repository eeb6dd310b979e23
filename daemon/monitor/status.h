// SPDX-License-Identifier: BSD-2-Clause
/* What the daemon tells about itself, as JSON; the command's `status` and `why` read it.
 *
 *   { version, pid, uid, socket, uptime_s, fault, seed, devices: [ DEVICE ] }
 *
 * DEVICE: name, use (see use.h), address, gid, guid, netdev, port ("active", "down"), mtu (bytes of payload), gso, loopback, ecn, rcvbuf,
 *     sndbuf, peer_window (bytes), window_pkts, counters: { name: number } (engine, I/O and faults in one),
 *     hw_counters, mlx5_counters, port_counters, usnic_counters (the same by rxe's, mlx5's, InfiniBand's and usnic's names, foreign.h),
 *     sessions: [ SESSION ], qps: [ QP ], srqs: [ SRQ ], xrcds: [ XRCD ],
 *     cqs: [ CQ ], mrs: [ MR ], mws: [ MW ],
 *     groups: [ { gid, members } ] (multicast)
 * SESSION: session (number), pid, uid, comm, memory ("process_vm", "proc_mem", "none"), and how many: pds, mrs, mws,
 *     channels, cqs, srqs, qps, xrcds, targets (XRC, that it has open)
 * QP: qpn, session, pid, comm (an XRC target: session null, openers: [ session ]), type, state, dest_qpn, dgid, path_mtu, pd, send_cq, recv_cq, srq, xrcd (null: none),
 *     requester ("free", "queued", "in hotel": waiting for an ACK, "on re-send list"), sq_posted, rq_posted (with the engine), sq_ring, rq_ring (written by the client and not yet read; null: nonsense),
 *     sq_max, rq_max, una_psn, next_psn, max_psn, epsn, msn, retries_left, rnr_retries_left, reads_outstanding,
 *     deadline_us (from now; null: no timer), srtt_us, window_bytes, inflight_bytes,
 *     rate (bytes per second that congestion has lowered it to; null: no limit), waiting_rate, waiting_rnr, waiting_fence, waiting_reads, broken (text, or null), counters (those that are not 0), hw_counters, mlx5_counters and usnic_counters (likewise)
 *     retry_cnt, rnr_retry, max_rd_atomic (attributes), waiting_window, waiting_peer (windows that are full), waiting_drain (SQD),
 *     retransmitting, probes (tail probes since the last progress), silent_us (since the oldest unacknowledged packet became that; null: none is), rnr_us (left of the peer's RNR timer; null: none runs),
 *     timeout_us (the QP's; null: none), failure (its first cause of error: see reports.h; null: none)
 * SRQ: srq (handle), session, type ("basic", "XRC"), srqn, xrcd, cq (null: not of XRC), pd, qps (how many use it), max, limit (0: not armed), posted (with the engine),
 *     ring (written by the client and not yet read; null: nonsense), broken (text, or null)
 * XRCD: xrcd (number), inode (null: anonymous), opens, srqs, targets (how many)
 * CQ: cq (handle), session, entries, unread (null: nonsense), overrun, armed ("no", "solicited", "any"), channel
 * MR: key, session, pd, va, length, access (enum ibv_access_flags)
 * MW: key (its low byte, which changes, as 0), session, pd, type */
#ifndef PUMICE_DAEMON_STATUS_H
#define PUMICE_DAEMON_STATUS_H

#include <jansson.h>

#include "daemon/device/device.h"

/* A device's part; runs in the device's thread. NULL: out of memory. The caller gets the reference. */
json_t *status_device(struct device *d);

/* Writes JSON text to a new memfd; a descriptor or -errno. */
int status_memfd(const json_t *root);

#endif
