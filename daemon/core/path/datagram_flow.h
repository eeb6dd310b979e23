// SPDX-License-Identifier: BSD-2-Clause
/* Flow control of UC and UD packets, which are never acknowledged. Between two Pumice devices a full socket buffer
 * should not make UC and UD lose many packets at once. So the bytes that these QPs send count for the window of the
 * destination address. A probe (wire/pumice/probe.h) follows every quarter of the window. The other device's answer says that
 * it took everything before the probe from its socket, and releases that many bytes.
 *
 *     no answer in time           The probe may be lost. If the address has answered before, the engine sends another
 *                                 probe and doubles the wait. After several misses, or if the address never answered,
 *                                 the bytes in flight are released by time.
 *     several misses in a row     The other device does not understand probes (a NIC, rxe). From now on the window is
 *                                 refilled at a steady pace, and the engine tries a probe now and then.
 *     multicast groups            Always refilled at a steady pace, and never probed: all members would answer.
 *     few bytes at the end        Released by time.
 *
 * A forged answer can at most release the bytes of one outstanding probe, once. A forged probe gets one answer that is
 * not longer than the probe, and leaves no state.
 *
 * The engine's owner also sends its checks in this way. A check is a probe that finds out whether packets of a size
 * arrive. */
#ifndef PUMICE_DAEMON_CORE_PATH_DATAGRAM_FLOW_H
#define PUMICE_DAEMON_CORE_PATH_DATAGRAM_FLOW_H

#include "daemon/core/base/config.h"
#include "daemon/core/base/rx_meta.h"
#include "daemon/core/base/timer_wheel.h"
#include "daemon/core/base/tx_batch.h"
#include "daemon/core/path/peer_window.h"
#include "wire/pumice/probe.h"

#define FLOW_ANSWERS 64u /* answers that may wait to be sent; the engine ignores more probes between two sends */
#define FLOW_ANSWER_SLOTS (2 * FLOW_ANSWERS) /* twice as many: a batch still points to the av of the answers in it */
#define FLOW_CHECKS 32u /* received checks, and answers to checks, that the owner has not taken yet */

struct datagram_answer { /* an answer, or the owner's check, that waits to be sent */
    struct av av;
    struct probe probe;
};
struct datagram_flow_table {
    const struct engine_config *cfg;
    struct timer_wheel *timers;
    struct peer_window_table *peers;
    struct engine_counters *counters;
    struct list_node due; /* flows that must send a probe */
    uint32_t sequence; /* of the newest probe */
    struct datagram_answer answer[FLOW_ANSWER_SLOTS]; /* a ring */
    uint32_t head, tail;
    struct check seen[FLOW_CHECKS]; /* a ring */
    uint32_t seen_head, seen_tail;
};

/* cfg, timers, peers and counters are parts of the engine, and stay valid as long as the table. */
void datagram_flow_table_init(struct datagram_flow_table *t, const struct engine_config *cfg,
                              struct timer_wheel *timers, struct peer_window_table *peers,
                              struct engine_counters *counters);
/* Packets of so many bytes in all were put into a batch for p. av: the destination. */
void datagram_flow_charge(struct datagram_flow_table *t, struct peer_window *p, const struct av *av, uint64_t cost,
                          uint64_t now);
/* Has the packet for PROBE_QPN the form of one between Pumice devices? */
bool datagram_flow_is_own(const struct pkt *p);
/* Takes in a packet for PROBE_QPN. False: the packet is no valid probe. */
bool datagram_flow_rx(struct datagram_flow_table *t, const struct pkt *p, const struct rx_meta *meta, uint64_t now);
/* Appends the probes and answers that are due. False: the batch is full. */
bool datagram_flow_tx(struct datagram_flow_table *t, struct tx_batch *b, uint64_t now);
/* The timer of the flow to p has expired. */
void datagram_flow_expire(struct datagram_flow_table *t, struct peer_window *p, uint64_t now);

/* See engine_check and engine_pop_check. */
int datagram_flow_check(struct datagram_flow_table *t, const struct av *av, uint32_t size, uint32_t sequence,
                        uint64_t token);
/* Lets the next batch carry a probe that asks what the device at an address can do (peer_features.h). -EAGAIN: too many
 * wait. */
int datagram_flow_ask_features(struct datagram_flow_table *t, const struct av *av, uint32_t sequence, uint64_t token);
bool datagram_flow_pop_check(struct datagram_flow_table *t, struct check *c);

#endif
