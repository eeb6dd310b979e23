// SPDX-License-Identifier: BSD-2-Clause
/* The simulated network: a chain of nodes that each packet passes, and the queue of what happens when. */
#ifndef PUMICE_SIM_NET_H
#define PUMICE_SIM_NET_H

#include "tests/sim/prng.h"

/* --- events --------------------------------------------------------------------------------------------------------- */

enum event_kind {
    EV_PACKET, /* p: struct wirepkt, at its destination */
    EV_WAKE, /* n: host that takes in what arrived */
    EV_POST, /* n: host whose users have something to post */
    EV_POLL, /* n: host whose users take completions */
    EV_STEP, /* n: number of the end, v: enum end_step */
};
struct timed {
    uint64_t at; /* ns */
    uint64_t seq; /* ties: first in, first out */
    enum event_kind kind;
    int n;
    int v;
    void *p;
};
struct evq { /* a binary heap */
    struct timed *heap;
    size_t n, cap;
    uint64_t seq;
};
void evq_push(struct evq *q, struct timed ev);
/* Takes the earliest event if it is due at `now`. */
bool evq_pop(struct evq *q, uint64_t now, struct timed *ev);
uint64_t evq_next(const struct evq *q); /* UINT64_MAX: none */

/* --- packets -------------------------------------------------------------------------------------------------------- */

struct wirepkt {
    int src, dst; /* hosts */
    bool v6; /* which of the hosts' addresses carried it */
    bool loop; /* within one host: no ICRC */
    bool ce; /* congestion experienced */
    bool corrupted; /* some bit was flipped that the ICRC covers */
    bool rogue; /* its sender wrote nonsense */
    int group; /* multicast group that it was sent to, from 1; 0: none */
    uint8_t tclass, hops; /* of its IP header */
    bool stranger; /* it is forged, and comes from an address that is not the peer's */
    uint16_t ip_id;
    uint32_t len; /* of data */
    uint32_t number; /* in order of sending */
    uint8_t data[]; /* UDP payload */
};

/* What the path does; drawn by the scenario. Chances in per mille. */
struct net_faults {
    uint64_t mask; /* packet number n is lost if bit n % 64 is set */
    bool mask_once; /* only the first 64 packets */
    uint32_t loss, dup, corrupt, reorder, ce;
    uint64_t delay_ns, jitter_ns; /* one way; jitter keeps the order */
    uint32_t rate; /* bytes per us that each link takes; 0: no bound */
    uint64_t reorder_ns; /* how much later a reordered packet may come */
    uint32_t most_bytes; /* longer packets are lost; 0: no bound */
    uint64_t dead_from, dead_until; /* all is lost in between; 0, 0: never */
    uint8_t drop_opcode; /* the packets numbered drop_first … drop_last among those of this opcode are lost, too, … */
    uint8_t drop_syndrome; /* … of this AETH syndrome, if not 0 */
    uint32_t drop_first, drop_last; /* counted from 1; 0: none */
};

struct net;
struct node {
    void (*forward)(struct node *self, struct wirepkt *p, uint64_t now); /* takes p over */
    struct node *next;
    struct net *net;
};
#define NET_NODES 7
#define NET_HOSTS 4
struct net {
    struct net_faults faults;
    struct prng rng;
    struct evq *events;
    struct node node[NET_NODES];
    uint64_t last_arrival[NET_HOSTS][NET_HOSTS];
    uint64_t busy_until[NET_HOSTS][NET_HOSTS]; /* links of bounded rate */
    uint32_t sent; /* packets numbered so far */
    uint32_t lost, duplicated, corrupted, reordered;
    uint32_t matched; /* by drop_opcode */
    uint32_t inflight; /* packets in the event queue */
};
void net_init(struct net *n, struct evq *events, const struct net_faults *faults, uint64_t seed);
/* A packet with room for len bytes, to be filled and sent. */
struct wirepkt *net_alloc(uint32_t len);
void net_send(struct net *n, struct wirepkt *p, uint64_t now);

#endif
