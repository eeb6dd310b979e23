// SPDX-License-Identifier: BSD-2-Clause
/* The plan of an emulated network: the text that users write (--net FILE), and the way of a packet from host to host.
 *
 *     # two racks with a slow link between them
 *     rack left: 0-1
 *     rack right: 2, 3
 *     default: rate 25Gbit, latency 5us
 *     left <-> right: rate 10Gbit, latency 20us, jitter 1us, queue 256KiB, mark 16KiB to 128KiB
 *     to each: rate 25Gbit, queue 1MiB
 *     0 -> 3: latency 1ms
 *     host 0: 10.0.0.1, fd00::1
 *
 *     PLAN := { LINE }        # begins a comment
 *     LINE := rack NAME ':' HOSTS
 *           | host N ':' ADDRESS { ',' ADDRESS }   the addresses of a host; `pumice run` adds these lines
 *           | PATH ':' LINK
 *     PATH := N '->' N | N '<->' N                 the link of a pair of hosts, in one direction or in both
 *           | default                              the links of all other pairs, each with a queue of its own
 *           | NAME '->' NAME | NAME '<->' NAME     the link of two racks, which all their hosts share
 *           | from N | to N                        what all packets from or to a host share: its own link, the switch port
 *           | from each | to each                  the same for all other hosts
 *     LINK := PART { ',' PART }
 *     PART := rate R | latency T | jitter T | queue SIZE | mark SIZE [to SIZE]
 *
 * R is a number with kbit, Mbit or Gbit (per second), SIZE one with B, kB, KiB, MB or MiB, T one with ns, us, ms or s. A packet
 * passes, in this order: from its host, rack to rack, the link of the pair, to its host; those that the plan has. Packets
 * within a host pass none. */
#ifndef PUMICE_DAEMON_NETEM_NETEM_PLAN_H
#define PUMICE_DAEMON_NETEM_NETEM_PLAN_H

#include <stddef.h>

#include "daemon/netem/netem_link.h"

#define NETEM_HOSTS 256u
#define NETEM_RACKS 16u
#define NETEM_LINKS 256u
#define NETEM_ADDRESSES 4096u
#define NETEM_HOPS 4u
#define NETEM_WHY_MAX 256
#define NETEM_NAME_MAX 16
/* Queues in shared memory: of pairs of hosts, pairs of racks, from hosts, to hosts. */
#define NETEM_QUEUES (NETEM_HOSTS * NETEM_HOSTS + NETEM_RACKS * NETEM_RACKS + 2 * NETEM_HOSTS)
#define NETEM_NOWHERE UINT32_MAX

#define NETEM_LATENCY_MAX_NS 10000000000ull

struct netem_plan {
    /* Indices of links, plus 1; 0: there is none. */
    uint16_t pair[NETEM_HOSTS][NETEM_HOSTS], racks[NETEM_RACKS][NETEM_RACKS];
    uint16_t from[NETEM_HOSTS], to[NETEM_HOSTS];
    uint16_t from_each, to_each, all_pairs;
    uint8_t rack_of[NETEM_HOSTS]; /* plus 1; 0: in no rack */
    char rack_name[NETEM_RACKS][NETEM_NAME_MAX];
    unsigned num_racks, num_links, num_addresses;
    struct netem_link link[NETEM_LINKS];
    struct netem_address {
        uint8_t gid[16];
        uint8_t host;
    } address[NETEM_ADDRESSES];
    uint16_t by_gid[2 * NETEM_ADDRESSES]; /* a hash table: index of the address, plus 1 */
};

struct netem_hop {
    const struct netem_link *link;
    uint32_t queue; /* index of its queue */
};

/* Parses a text. If it has addresses of hosts, all hosts need one. Returns 0 or -EINVAL. On -EINVAL, why holds a sentence with the line and the column of the wrong part. */
int netem_plan_parse(const char *text, struct netem_plan *plan, char why[NETEM_WHY_MAX]);

/* The host with this address. NETEM_NOWHERE: none. */
uint32_t netem_plan_host(const struct netem_plan *plan, const uint8_t gid[16]);

/* The fewest waiting bytes from which on a link marks packets; 0: none marks. */
uint64_t netem_plan_first_mark(const struct netem_plan *plan);

/* The links between two hosts. Returns their number. */
unsigned netem_plan_route(const struct netem_plan *plan, uint32_t from, uint32_t to, struct netem_hop hops[NETEM_HOPS]);

#endif
