// SPDX-License-Identifier: BSD-2-Clause
/* The simulated network: a chain of nodes that each packet passes, and the queue of timed events. */
#ifndef PUMICE_TESTS_SIM_NETWORK_NET_H
#define PUMICE_TESTS_SIM_NETWORK_NET_H

#include "tests/sim/prng.h"

/* --- events ------------------------------------------------------------------------------------ */

enum event_kind {
    EV_PACKET, /* p: a struct wirepkt arrives at its destination */
    EV_WAKE, /* n: host that processes the packets that arrived */
    EV_POST, /* n: host whose users have requests to post */
    EV_POLL, /* n: host whose users poll completions */
    EV_STEP, /* n: number of the end; v: enum end_step */
};
struct timed {
    uint64_t at; /* ns */
    uint64_t seq; /* orders events of equal time: first in, first out */
    enum event_kind kind;
    int n;
    int v;
    void *p;
};
/* A binary heap. */
struct evq {
    struct timed *heap;
    size_t n, cap;
    uint64_t seq;
};
void evq_push(struct evq *q, struct timed ev);
/* Removes the earliest event if it is due at `now`. */
bool evq_pop(struct evq *q, uint64_t now, struct timed *ev);
uint64_t evq_next(const struct evq *q); /* time of the earliest event; UINT64_MAX: none */

/* --- packets ----------------------------------------------------------------------------------- */

/* The fields that a third party that forged the packet did not know. */
enum stranger {
    STRANGER_NONE, /* the packet is not forged */
    STRANGER_SOURCE, /* the source address: it is the host's other one */
    STRANGER_DESTINATION, /* the destination address: it is the host's other one */
    STRANGER_PSN, /* the PSN: it is far from those that are in use */
};

struct wirepkt {
    int src, dst; /* hosts */
    bool v6; /* the packet uses the hosts' IPv6 addresses */
    bool loop; /* within one host: no ICRC */
    bool ce; /* congestion experienced */
    bool corrupted; /* a bit that the ICRC covers was flipped */
    bool rogue; /* its sender wrote invalid values */
    int group; /* multicast group of the destination, from 1; 0: none */
    uint8_t tclass, hops; /* fields of its IP header */
    enum stranger stranger; /* forged */
    uint16_t ip_id;
    uint32_t len; /* of data */
    uint32_t number; /* in the order of sending */
    uint8_t data[]; /* UDP payload */
};

/* The faults of the path, drawn by the scenario. Probabilities in per mille. */
struct net_faults {
    uint64_t mask; /* packet number n is lost if bit n % 64 is set */
    bool mask_once; /* the mask applies only to the first 64 packets */
    uint32_t loss, dup, corrupt, reorder, ce;
    uint64_t delay_ns, jitter_ns; /* one way; jitter keeps the order */
    uint32_t rate; /* bytes per ms of each link; 0: no limit */
    uint32_t buffer; /* packets that wait in front of a link with a limited rate; further ones are lost. 0: no limit */
    /* Hosts with even numbers share one link, and hosts with odd numbers share another one. Otherwise each pair of hosts
     * has its own link in each direction. */
    bool bottleneck;
    uint64_t reorder_ns; /* the longest extra delay of a reordered packet */
    uint32_t most_bytes; /* longer packets are lost; 0: no limit */
    uint64_t dead_from, dead_until; /* all packets in this time are lost; 0, 0: never */
    /* Loses the packets numbered drop_first … drop_last among those of this opcode … */
    uint8_t drop_opcode;
    uint8_t drop_syndrome; /* … and, if not 0, of this AETH syndrome */
    uint32_t drop_first, drop_last; /* counted from 1; 0: none */
};

/* A link with a limited rate, and the packets that wait in front of it. */
struct link {
    uint64_t busy_until; /* ns */
    uint64_t *starts; /* ring of [faults.buffer]: times at which the transmission of waiting packets starts */
    uint32_t head, waiting;
    uint64_t long_sent, long_lost, lost; /* packets with more than LONG_PACKET bytes; all packets */
};
#define LONG_PACKET 200u

struct net;
struct node {
    void (*forward)(struct node *self, struct wirepkt *p, uint64_t now); /* takes ownership of p */
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
    struct link link[NET_HOSTS][NET_HOSTS];
    uint32_t sent; /* number of packets so far */
    uint32_t lost, duplicated, corrupted, reordered;
    uint32_t matched; /* packets that matched drop_opcode */
    uint32_t inflight; /* packets in the event queue */
};
void net_init(struct net *n, struct evq *events, const struct net_faults *faults, uint64_t seed);
/* Frees what the network allocated, without the packets in the event queue. */
void net_free(struct net *n);
/* Returns a packet with room for len bytes, for the caller to fill and send. */
struct wirepkt *net_alloc(uint32_t len);
void net_send(struct net *n, struct wirepkt *p, uint64_t now);

#endif
