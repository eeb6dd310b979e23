// SPDX-License-Identifier: BSD-2-Clause
/* Flow control of what nobody acknowledges. Between two Pumice devices a full socket buffer should not be a storm of
 * losses for UC and UD either. So what these QPs send counts for the window of the destination address, too, and
 * every quarter of the window a probe (wire/probe.h) follows it; the other device's answer says that all before the probe
 * was taken from its socket, and releases that much.
 *
 *     no answer in time           the probe may be lost: another one, with patience that doubles, if the address has
 *                                 answered before; then, or if it never has, what is in flight is released by time
 *     several in a row            nobody there understands probes (a NIC, rxe): from now on the window is refilled at a
 *                                 steady pace, and a probe is tried now and then
 *     multicast groups            always the latter, and never a probe: all members would answer
 *     little left at the end      is released by time
 *
 * A forged answer can do no more than release once what a probe that is under way stands for. A forged probe gets one
 * answer that is not longer, and no state is kept of it. */
#ifndef PUMICE_CORE_DATAGRAM_FLOW_H
#define PUMICE_CORE_DATAGRAM_FLOW_H

#include "daemon/core/base/timer_wheel.h"
#include "daemon/core/engine.h"
#include "wire/probe.h"

#define FLOW_PROBES 4u /* unanswered ones per address */
#define FLOW_ANSWERS 64u /* that wait to be sent; more probes than that between two sends are not answered */
#define FLOW_ANSWER_SLOTS (2 * FLOW_ANSWERS) /* so that those just put into a batch stay as they are meanwhile */

struct peer_window;

struct datagram_flow { /* one address */
    struct av av; /* how it was reached last */
    struct timer timer;
    struct list_node due; /* in datagram_flow_table.due while a probe is to be sent */
    uint64_t charged; /* bytes sent so far */
    uint64_t released; /* … and no longer counted as in flight */
    uint64_t probed; /* `charged` at the newest probe */
    uint64_t probed_at; /* ns; 0: never */
    struct datagram_probe {
        uint32_t sequence;
        uint64_t mark; /* what its answer releases up to */
    } probe[FLOW_PROBES]; /* unanswered, oldest first */
    uint8_t count; /* of them */
    uint8_t misses; /* times in a row that no answer came in time */
    bool answers; /* it has answered since the last time that it was given up */
    bool unprobed; /* it is not probed, but paced */
};
struct datagram_answer { /* or the owner's check */
    struct av av;
    struct probe probe;
};
#define FLOW_CHECKS 32u /* of checks and their answers that came in, and nobody has taken yet */
struct datagram_flow_table {
    struct list_node due; /* flows with a probe to be sent */
    uint32_t sequence; /* of the newest probe */
    struct datagram_answer answer[FLOW_ANSWER_SLOTS]; /* ring */
    uint32_t head, tail;
    struct check seen[FLOW_CHECKS]; /* ring */
    uint32_t seen_head, seen_tail;
};

void datagram_flow_table_init(struct datagram_flow_table *t);
/* A new address. */
void datagram_flow_init(struct datagram_flow *f, const uint8_t gid[16]);
static inline bool datagram_flow_is_idle(const struct datagram_flow *f)
{
    return f->charged == f->released;
}
/* cost bytes were planned for p, to leave the way that av says. */
void datagram_flow_charge(struct engine *e, struct peer_window *p, const struct av *av, uint64_t cost, uint64_t now);
/* A packet for PROBE_QPN. */
void datagram_flow_rx(struct engine *e, const struct pkt *p, const struct rx_meta *meta, uint64_t now);
/* Appends what is due; false: the batch is full. */
bool datagram_flow_tx(struct engine *e, struct tx_batch *b, uint64_t now);
void datagram_flow_expire(struct engine *e, struct peer_window *p, uint64_t now);

#endif
