// SPDX-License-Identifier: BSD-2-Clause
/* The protocol engine of one device. It does what a NIC does in hardware, without any I/O, clock, thread, allocation or
 * randomness.
 *
 * Its owner (the daemon's device loop, or the simulator) drives it:
 *
 *     for each received batch:  engine_rx(packet) …            packets in; engine_rx_run for those of the device itself
 *     work requests:            qp_post_send, qp_post_recv     copies in
 *     timers:                   engine_expire when now >= engine_deadline
 *     then, until all are empty:
 *         carry out deferred memory writes
 *         engine_peek_completion, engine_pop_event,            results for the users
 *         engine_pop_cntr
 *         engine_tx                                            packets out
 *
 * The engine calls out through two tables only: mem_ops and owner_ops. Only engine_tx makes packets. Any call may make
 * completions. When the completion queue has no room left, work stops, and nothing is lost. It goes on when the owner
 * has taken completions and calls engine_tx again.
 *
 * One thread must make all calls of one engine. Time is CLOCK_MONOTONIC-like nanoseconds and never runs backwards.
 *
 * This header has the engine as a whole. The headers that it includes have the calls for QPs, SRQs, keys, completions
 * and reports. */
#ifndef PUMICE_DAEMON_CORE_ENGINE_H
#define PUMICE_DAEMON_CORE_ENGINE_H

#include "daemon/core/base/config.h"
#include "daemon/core/base/mem_ops.h"
#include "daemon/core/base/owner_ops.h"
#include "daemon/core/base/rx_meta.h"
#include "daemon/core/base/scheduler.h"
#include "daemon/core/base/tx_batch.h"
#include "daemon/core/base/types.h"
#include "daemon/core/control/keys.h"
#include "daemon/core/control/qp_life.h"
#include "daemon/core/control/qp_modify.h"
#include "daemon/core/control/qp_query.h"
#include "daemon/core/path/gsi.h"
#include "daemon/core/path/mcast.h"
#include "daemon/core/qp/comp_cntr.h"
#include "daemon/core/qp/error_report.h"
#include "daemon/core/qp/event_queue.h"
#include "daemon/core/requester/post.h"
#include "daemon/core/responder/recv_queue.h"
#include "daemon/core/responder/srq.h"
#include "daemon/core/rx.h"
#include "wire/pkt.h"

struct engine; /* opaque */
struct qp; /* opaque */
struct srq; /* opaque */
struct tag_list; /* opaque, see tm/tag_list.h */

/* --- life ------------------------------------------------------------------------------------- */

/* Sensible values for everything but gids. */
void engine_config_defaults(struct engine_config *cfg);

/* Bytes of zeroed, 64-byte aligned memory that engine_init wants. Most of it is touched only when it is used. */
size_t engine_size(const struct engine_config *cfg);
/* The caller frees mem after the last call of the engine, and keeps the tables valid until then. NULL: cfg breaks a
 * bound. */
struct engine *engine_init(void *mem, const struct engine_config *cfg, const struct mem_ops *mem_ops, void *mem_ctx,
                           const struct owner_ops *owner_ops, void *owner_ctx);

/* Makes a share for the QPs of one user (qp_init.share). It needs no end. */
void engine_share_init(struct engine *e, struct sched_share *share);

const struct engine_counters *engine_counters(const struct engine *e);
struct qp *qp_find(struct engine *e, uint32_t qpn); /* NULL: none */

/* Sets an entry of the GID table; all zeros empty it. index is below num_gids. QPs that use the index have the new
 * address from now on. */
void engine_set_gid(struct engine *e, uint8_t index, const uint8_t gid[16]);

/* Sets the longest delay of an ACK and the shortest timeout. Timers that run already keep their time. */
void engine_set_timing(struct engine *e, uint64_t ack_delay_ns, uint64_t min_timeout_ns);

/* --- packets ---------------------------------------------------------------------------------- */

/* Appends packets that are due. The QPs take turns as base/scheduler.h says, until nothing is due or the batch has no room. Returns how many
 * packets were added; 0: nothing is due, or nothing can be sent until completions have been taken. */
uint32_t engine_tx(struct engine *e, struct tx_batch *batch, uint64_t now);

/* A deferred memory write for this QP failed (see mem_ops.write). Completions of the QP that the owner has not taken
 * yet, and that report data written to memory, turn to WC_LOC_PROT_ERR. A reliable QP goes to ERR, and its peer gets a
 * NAK. A UC or UD QP goes to ERR only if a receive request failed. */
void engine_mem_fault(struct engine *e, uint32_t qpn, uint64_t now);
/* n deferred memory writes for this QP met unmapped memory and were dropped (see mem_ops.write). This is counted, and
 * nothing else: the QP goes on, as with a NIC that has the pages pinned. */
void engine_mem_unmapped(struct engine *e, uint32_t qpn, uint32_t n);

/* --- connectivity checks ---------------------------------------------------------------------- */

/* Lets the next engine_tx send a check: a probe (wire/pumice/probe.h) that finds out whether packets of a size arrive. size:
 * bytes of the packet's payload after the transport headers, PROBE_LEN … 4096. -EINVAL: another size, a multicast
 * group, or no such sgid_index. -EAGAIN: too many checks and answers wait to be sent. */
int engine_check(struct engine *e, const struct av *av, uint32_t size, uint32_t sequence, uint64_t token);
/* Takes the oldest check of another device, or answer to an own check. False: there is none. While FLOW_CHECKS of them
 * wait for the owner, new ones are dropped. The engine answers the checks of other devices by itself. */
bool engine_pop_check(struct engine *e, struct check *c);

/* --- QP 1 ------------------------------------------------------------------------------------- */

/* Lets engine_tx send a management datagram from QP 1 to QP 1 of another device, or of this one. -EAGAIN: too many wait
 * to be sent. -EINVAL: no such sgid_index, or no address of a device. */
int engine_send_mad(struct engine *e, const struct av *av, const uint8_t mad[MAD_LEN]);
/* Takes the oldest management datagram that QP 1 received. False: there is none. While GSI_SLOTS of them wait for the
 * owner, new ones are dropped. */
bool engine_pop_mad(struct engine *e, struct gsi_mad *out);

/* Is a QP connected to this address, or are packets to it in flight? */
bool engine_has_peer(const struct engine *e, const uint8_t gid[16]);

/* --- time ------------------------------------------------------------------------------------- */

/* Returns the next moment at which engine_expire has something to do, or NEVER. It may be early. */
uint64_t engine_deadline(const struct engine *e);
/* Does the work of all timers that are due. */
void engine_expire(struct engine *e, uint64_t now);

#endif
