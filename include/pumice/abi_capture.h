// SPDX-License-Identifier: BSD-2-Clause
/* Packet captures, as a part of the contract (pumice/abi.h): the request of PM_OP_CAPTURE, and the segment that the
 * daemon writes packets to. PM_ABI_VERSION is also the version of this header. */
#ifndef PUMICE_ABI_CAPTURE_H
#define PUMICE_ABI_CAPTURE_H

#include <stdatomic.h>
#include <stdint.h>

/* Request of a capture. A connection may have one capture. Several connections may capture at the same device.
 * -ENODEV: no such device. -EINVAL: neither direction is set, or ring_bytes is not a power of two within the limits.
 * -EBUSY: this connection already has a capture. -EPERM: the client has neither the daemon's uid nor root's. */
enum pm_capture_flags {
    PM_CAPTURE_OUT = 1, /* packets that the device sends, and packets that stay inside it */
    PM_CAPTURE_IN = 2, /* packets that the device receives, and packets that stay inside it */
    /* Sent packets as they are before faults are injected. Without this flag: as they leave the device. */
    PM_CAPTURE_BEFORE = 4,
    /* Also the packets that injected faults lose, as PM_RECORD_LOST. Not with PM_CAPTURE_BEFORE. */
    PM_CAPTURE_LOST = 8,
};
#define PM_CAPTURE_RING_MIN (64u << 10)
#define PM_CAPTURE_RING_MAX (1u << 30)
struct pm_capture_req {
    uint32_t device; /* index in pm_list_rep */
    uint32_t flags; /* enum pm_capture_flags */
    /* The number of bytes to copy of each packet, from the BTH on. 0: the whole packet. */
    uint32_t snaplen;
    uint32_t ring_bytes;
    uint32_t qpn; /* only packets from or to this QP; 0: any QP */
    uint32_t has_peer; /* 1: only packets from or to the address `peer` */
    uint8_t peer[16]; /* IPv6 or ::ffff:a.b.c.d */
    /* Bit (o % 64) of word (o / 64) selects packets with BTH opcode o. All zero: any opcode. */
    uint64_t opcodes[4];
};

/* The segment of a capture: this page, then, from PM_CAPTURE_RING on, ring_bytes of records. head and tail count bytes
 * and run freely. A record lies at its count modulo ring_bytes, at a multiple of 8. A record never crosses the end of
 * the ring: a record with PM_RECORD_SKIP fills the rest. The daemon never waits for room: it drops a packet that does
 * not fit, and counts it in `dropped`. */
struct pm_capture_page {
    /* Daemon: end of the records written. Stored with release order after the records. */
    _Alignas(64) _Atomic uint64_t head;
    /* Daemon: packets that passed the filters, including the dropped ones. */
    _Atomic uint64_t packets;
    /* Daemon: packets that passed the filters but had no room in the ring. */
    _Atomic uint64_t dropped;
    /* Daemon: packets that passed the filters, but that an injected fault lost. 0 with PM_CAPTURE_BEFORE. */
    _Atomic uint64_t lost;
    /* Client: end of the records read. Stored with release order after reading. */
    _Alignas(64) _Atomic uint64_t tail;
};
#define PM_CAPTURE_RING 4096u

enum pm_record_flags {
    PM_RECORD_SKIP = 1, /* filler, not a packet; only size is valid */
    PM_RECORD_OUT = 2, /* sent by the device; else received */
    /* The packet had no ICRC: its last four bytes are not filled in. */
    PM_RECORD_NO_ICRC = 4,
    PM_RECORD_RETRANSMIT = 8, /* the packet was sent before */
    PM_RECORD_WR = 16, /* wr_id is valid */
    PM_RECORD_INSIDE = 32, /* the packet stays inside the device */
    /* The packet as it was before faults. A fault may still drop it. */
    PM_RECORD_BEFORE = 64,
    /* Faults that struck the packet. */
    PM_RECORD_LOST = 128, /* the packet was not sent */
    PM_RECORD_DAMAGED = 256, /* its ICRC is wrong */
    PM_RECORD_TWICE = 512, /* it was sent twice; both copies have the flag */
    PM_RECORD_LATE = 1024,
    PM_RECORD_MARKED = 2048, /* with congestion experienced */
};
/* A header, then len bytes of the packet, then padding. */
struct pm_capture_record {
    uint32_t size; /* of the whole record; a multiple of 8 */
    uint32_t flags; /* enum pm_record_flags */
    uint32_t len; /* bytes of the packet that follow */
    uint32_t orig_len; /* length of the packet on the wire, BTH to ICRC */
    uint64_t time; /* CLOCK_MONOTONIC, ns */
    uint64_t wr_id; /* of the work request that the packet belongs to */
    uint8_t src[16], dst[16]; /* addresses: IPv6 or ::ffff:a.b.c.d */
    uint16_t src_port; /* UDP source port; the destination port is 4791 */
    uint16_t ip_id; /* IPv4 identification that makes the ICRC right */
    uint8_t tos; /* IPv4 TOS or IPv6 traffic class */
    uint8_t reserved[3];
    uint32_t qpn; /* the device's QP that sends or receives the packet; 0: not known */
    uint32_t pid; /* of the process that owns the QP; 0: not known */
    char comm[16]; /* name of that process */
};
_Static_assert(sizeof(struct pm_capture_record) == 96, "capture record header");

#endif
