// SPDX-License-Identifier: BSD-2-Clause
/* A link of an emulated network: a bandwidth, a latency, jitter, and a queue in front of it that loses packets when it is full
 * (tail drop) and marks them when it is long (ECN).
 *
 * The packets of a link never meet in one place: each sender computes when its packet leaves the link. All that senders share
 * is a struct netem_queue, two numbers in shared memory. So several daemons of one machine use one link without a lock.
 *
 * The module is pure: time is an argument. */
#ifndef PUMICE_DAEMON_NETEM_NETEM_LINK_H
#define PUMICE_DAEMON_NETEM_NETEM_LINK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct netem_link {
    uint64_t bits_per_s; /* 0: no limit */
    uint64_t latency_ns,
        jitter_ns; /* each packet is late by latency_ns, and by a part of jitter_ns; none overtakes another */
    uint64_t queue_bytes; /* a packet that does not fit behind so many waiting bytes is lost; 0: no limit */
    uint64_t mark_bytes; /* a packet behind so many waiting bytes may be marked; 0: none is */
    /* Behind so many it is marked. Between the two, the probability grows from 0 to 1. 0: as mark_bytes. */
    uint64_t mark_all_bytes;
};

/* All zero: nothing was sent yet. Its values are not trusted: other processes write them. */
struct netem_queue {
    _Atomic uint64_t busy_until; /* when the link has sent all packets so far, in units of 1/NETEM_UNITS ns */
    _Atomic uint64_t last_arrival; /* ns */
};
#define NETEM_UNITS 64u

/* Bytes of a packet on the wire beside those from BTH to ICRC: Ethernet with its FCS, IPv4 or IPv6, UDP. */
#define NETEM_OVERHEAD_V4 46u
#define NETEM_OVERHEAD_V6 66u

struct netem_passage {
    bool lost;
    bool marked;
    uint64_t arrival; /* at the end of the link, ns; not if it is lost */
};

/* Puts a packet of len bytes into the queue at time now. random: decides about the jitter and the mark. */
struct netem_passage netem_link_pass(const struct netem_link *l, struct netem_queue *q, uint32_t len, uint64_t random,
                                     uint64_t now);

#endif
