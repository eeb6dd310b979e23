// SPDX-License-Identifier: BSD-2-Clause
/* Decisions about single packets, as a part of the contract (pumice/abi.h): how `pumice run --record` and `pumice
 * replay` name a packet, and the memory that they share with a daemon of their lab (pumiced --decisions-fd).
 * PM_ABI_VERSION is also the version of this header.
 *
 * A name must fit the same packet in another run, so it has nothing that changes from run to run: no QP number, PSN,
 * address or time. A QP is the nth QP of the nth program that opened the device. A packet is the nth of its stream, by
 * the distance of its PSN from the first one, and was sent for the nth time. */
#ifndef PUMICE_ABI_DECISIONS_H
#define PUMICE_ABI_DECISIONS_H

#include <stdatomic.h>
#include <stdint.h>

/* The packets of a QP are numbered in several streams. The others are numbered for the whole device. */
enum pm_stream {
    PM_STREAM_REQUEST, /* of a QP: what it sends as requester */
    PM_STREAM_RESPONSE, /* of a QP: ACKs, NAKs, READ responses. They have the PSNs of the requests */
    PM_STREAM_CNP, /* of a QP: notifications of congestion */
    PM_STREAM_ARRIVAL, /* of a QP: requests that arrive and need a receive request. The attempt counts their arrivals */
    PM_STREAM_SACK, /* of a QP: selective acknowledgements between Pumice devices, by the PSN that it expects */
    PM_STREAM_CM, /* messages of connection management of one kind, in the order of their sending */
    PM_STREAM_PROBE, /* probes between daemons and their answers, in the order of their sending */
    PM_STREAMS,
};

struct pm_packet {
    uint32_t
        program; /* of a QP: the nth program that opened the device, from 1. 0: the QP belongs to none (XRC), or none sent it */
    uint32_t qp; /* of a QP: the nth that the program created there, from 1 */
    uint32_t life; /* of a QP: how often it was reset before */
    uint32_t attempt; /* the packet is sent for the nth time, from 1 */
    uint64_t number; /* in the stream, from 1. 0: a packet before the first (an ACK of nothing) */
    uint16_t message; /* PM_STREAM_CM: enum cm_attribute, else 0 */
    uint8_t device; /* index in the daemon */
    uint8_t stream; /* enum pm_stream */
    uint8_t opcode; /* BTH opcode */
    uint8_t reserved[3];
};

/* X(name, what it is in a recording) */
#define PM_STRIKES(X)                                                                                                  \
    X(PM_STRIKE_NONE, "") /* only late or marked */                                                                    \
    X(PM_STRIKE_LOST, "lost")                                                                                          \
    X(PM_STRIKE_TWICE, "twice")                                                                                        \
    X(PM_STRIKE_DAMAGED, "damaged")                                                                                    \
    X(PM_STRIKE_TRUNCATED, "truncated")                                                                                \
    X(PM_STRIKE_REFUSED, "refused") /* PM_STREAM_ARRIVAL: answered with RNR NAK */
enum pm_strike {
#define X(name, text) name,
    PM_STRIKES(X)
#undef X
        PM_STRIKES_END,
};

enum pm_met {
    PM_MET_NOT, /* no such packet was sent */
    PM_MET_STRUCK,
    PM_MET_OTHER, /* a packet of another kind was sent in its place, and passed */
};

struct pm_decision {
    struct pm_packet packet;
    uint64_t delay_ns; /* the packet is sent so much later */
    /* PM_STRIKE_DAMAGED, PM_STRIKE_TRUNCATED: chooses the bit or the length. At most INT64_MAX, because recordings have
     * signed numbers. */
    uint64_t random;
    uint8_t strike; /* enum pm_strike */
    uint8_t marked; /* 1: with congestion experienced */
    uint8_t met; /* of a planned decision, written by the daemon: enum pm_met */
    uint8_t reserved[5];
};
_Static_assert(sizeof(struct pm_packet) == 32 && sizeof(struct pm_decision) == 56, "decisions");

/* The memory: this page, then the planned decisions, then room for the recorded ones. The command fills in the page and
 * the planned decisions before the daemon starts. The daemon checks them and copies them. */
#define PM_DECISIONS_MAGIC 0x736e6f6973696365ull
#define PM_DECISIONS_MAX (1u << 20)
enum pm_decisions_flags {
    /* The planned decisions take the place of all rules for packets. Rules for the link and the daemon stay. */
    PM_DECISIONS_REPLAY = 1,
};
struct pm_decisions_page {
    uint64_t magic;
    uint32_t abi_version;
    uint32_t planned; /* at most PM_DECISIONS_MAX */
    uint32_t capacity; /* recorded decisions that have room, at most PM_DECISIONS_MAX */
    uint32_t flags; /* enum pm_decisions_flags */
    /* Daemon: decisions that were made, also those without room. All threads of devices count here. Entry i is complete
     * when its packet.attempt is not 0. */
    _Atomic uint64_t recorded;
};
#define PM_DECISIONS_AT 4096u /* where the planned ones begin */

#endif
