// SPDX-License-Identifier: BSD-2-Clause
/* The part of abi.h, to whose version it belongs, that is about captures: what PM_OP_CAPTURE asks for, and the segment that
 * the daemon writes packets to. */
#ifndef PUMICE_ABI_CAPTURE_H
#define PUMICE_ABI_CAPTURE_H

#include <stdatomic.h>
#include <stdint.h>

/* What to copy. One capture per connection; several connections may capture at the same device. -ENODEV: no such device;
 * -EINVAL: neither direction, or ring_bytes is no power of two within the limits; -EBUSY: this connection has one;
 * -EPERM: the client is neither of the daemon's user nor root. */
enum pm_capture_flags {
    PM_CAPTURE_OUT = 1, /* what the device sends, and what stays inside of it */
    PM_CAPTURE_IN = 2, /* what it receives, and what stays inside of it */
    PM_CAPTURE_BEFORE = 4, /* sent packets as they are before faults are injected; else as they leave */
};
#define PM_CAPTURE_RING_MIN (64u << 10)
#define PM_CAPTURE_RING_MAX (1u << 30)
struct pm_capture_req {
    uint32_t device; /* index in pm_list_rep */
    uint32_t flags; /* enum pm_capture_flags */
    uint32_t snaplen; /* bytes to copy of each packet, from the BTH on; 0: all */
    uint32_t ring_bytes;
    uint32_t qpn; /* only packets of or to this queue pair; 0: any */
    uint32_t has_peer; /* 1: only packets from or to the address `peer` */
    uint8_t peer[16]; /* IPv6 or ::ffff:a.b.c.d */
    uint64_t opcodes[4]; /* bit (o % 64) of word (o / 64): packets with BTH opcode o; all zero: any */
};

/* A capture's segment: this page, and from PM_CAPTURE_RING on ring_bytes of records. head and tail count bytes and run freely; a record lies
 * at its count modulo ring_bytes, at a multiple of 8, and never across the end (a record with PM_RECORD_SKIP fills that).
 * The daemon never waits: a packet for which there is no room is counted in `dropped`. */
struct pm_capture_page {
    /* Daemon: end of what is written; stored with release order after the records. */
    _Alignas(64) _Atomic uint64_t head;
    _Atomic uint64_t packets; /* daemon: that passed the filters, dropped ones included */
    _Atomic uint64_t dropped; /* daemon: of these, those without room */
    /* Client: end of what it has read; stored with release order after reading. */
    _Alignas(64) _Atomic uint64_t tail;
};
#define PM_CAPTURE_RING 4096u

enum pm_record_flags {
    PM_RECORD_SKIP = 1, /* no packet; only size means something */
    PM_RECORD_OUT = 2, /* sent by the device; else received */
    PM_RECORD_NO_ICRC = 4, /* the last four bytes are not filled in: the packet had no ICRC there */
    PM_RECORD_RETRANSMIT = 8, /* sent before */
    PM_RECORD_WR = 16, /* wr_id is valid */
    PM_RECORD_INSIDE = 32, /* stays inside of the device */
    PM_RECORD_BEFORE = 64, /* as it was before faults, which may lose it yet */
};
struct pm_capture_record { /* then len bytes, and pad */
    uint32_t size; /* of all of it: a multiple of 8 */
    uint32_t flags; /* enum pm_record_flags */
    uint32_t len; /* bytes of the packet that follow */
    uint32_t orig_len; /* bytes that it has, BTH to ICRC */
    uint64_t time; /* CLOCK_MONOTONIC, ns */
    uint64_t wr_id; /* of the request that the packet belongs to */
    uint8_t src[16], dst[16]; /* addresses: IPv6 or ::ffff:a.b.c.d */
    uint16_t src_port; /* UDP; the destination's is 4791 */
    uint16_t ip_id; /* IPv4 identification with which the ICRC is right */
    uint8_t tos; /* TOS or traffic class */
    uint8_t reserved[3];
    uint32_t qpn; /* queue pair of the device that sends or receives it; 0: not known */
    uint32_t pid; /* whose it is; 0: not known */
    char comm[16]; /* that program's name */
};
_Static_assert(sizeof(struct pm_capture_record) == 96, "capture record header");

#endif
