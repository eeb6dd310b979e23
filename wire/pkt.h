// SPDX-License-Identifier: BSD-2-Clause
/* Decodes and encodes RoCEv2 packets. A packet here is the UDP payload: BTH, headers, payload, pad, ICRC. In struct pkt
 * all numbers are in host byte order. Immediate data is opaque and keeps the bytes of the wire. */
#ifndef PUMICE_WIRE_PKT_H
#define PUMICE_WIRE_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/opcode.h"

#define ROCE_PORT 4791 /* UDP destination port, A17.3.1 */
#define ICRC_LEN 4
#define PKT_HEADERS_MAX (BTH_LEN + 4 + 28 + 16) /* an upper bound over op_table */
#define PKT_MTU_MIN 256 /* the smallest path MTU, bytes of payload */
#define PKT_MTU_MAX 4096 /* the largest path MTU, bytes of payload */
#define PKT_CNP_LEN 16 /* bytes of reserved payload that a CNP carries, A17.9.3 */
#define PKEY_DEFAULT 0xffff
#define PSN_MASK 0xffffffu
#define QPN_MASK 0xffffffu
#define QPN_MULTICAST 0xffffffu /* destination QP of packets to a multicast group */

struct pkt_reth { /* RDMA extended transport header, 9.3.3 */
    uint64_t va;
    uint32_t rkey;
    uint32_t length;
};
struct pkt_atomic { /* AtomicETH, 9.3.4.1 */
    uint64_t va;
    uint32_t rkey;
    uint64_t swap_add;
    uint64_t compare;
};
struct pkt_aeth { /* 9.3.5 */
    uint8_t syndrome; /* see syndrome.h */
    uint32_t msn; /* 24 bits */
};
struct pkt_deth { /* 9.3.2 */
    uint32_t qkey;
    uint32_t src_qpn; /* 24 bits */
};
struct pkt_feth { /* A19 */
    uint8_t selectivity; /* 0: memory range, 1: whole region */
    uint8_t placement; /* bit 0: global visibility, bit 1: persistence */
};

struct pkt {
    uint8_t opcode;
    uint8_t pad; /* 0 ... 3 bytes of pad after the payload */
    uint8_t tver; /* transport header version: 0 */
    bool solicited;
    bool migreq;
    bool fecn, becn;
    bool ackreq;
    uint16_t pkey;
    uint32_t dest_qpn; /* 24 bits */
    uint32_t psn; /* 24 bits */

    /* The fields up to inv_rkey are set only if op_table[opcode].headers has their header. */
    uint32_t srqn; /* XRCETH, 24 bits */
    struct pkt_deth deth;
    struct pkt_feth feth;
    struct pkt_reth reth;
    struct pkt_atomic atomic;
    struct pkt_aeth aeth;
    uint64_t atomic_orig; /* AtomicAckETH: the value before the atomic operation */
    uint8_t imm[4]; /* ImmDt, opaque */
    uint32_t inv_rkey; /* IETH */

    const uint8_t *payload; /* points into the decoded buffer */
    uint32_t payload_len; /* without pad */
};

/* Why a packet can't be decoded. */
enum pkt_error {
    PKT_OK = 0,
    PKT_SHORT, /* too short for its headers and the ICRC */
    PKT_OPCODE, /* no such opcode */
    PKT_VERSION, /* TVer is not 0 */
    PKT_LENGTH, /* the pad is longer than the payload, or the opcode does not allow this payload at any MTU */
};

/* Decodes the UDP payload data[0 ... len). The payload includes the ICRC, but the function does not verify it (see
 * icrc.h). On PKT_OK it sets the fields of the BTH, the fields of the headers in op_table[out->opcode].headers, payload
 * and payload_len. It leaves the other fields as they were. out->payload points into data. On an error the contents of
 * *out are undefined. The engine checks length rules that depend on the path MTU. This function checks the others:
 * FIRST and MIDDLE have the length of some MTU (256 ... 4096), LAST and ONLY have at most 4096 bytes, and payload and
 * pad together are a multiple of four. Reserved fields are ignored. */
enum pkt_error pkt_decode(const uint8_t *data, size_t len, struct pkt *out);

/* Reads only the BTH of a packet. It is for logs about packets that pkt_decode refuses, or that have a wrong ICRC.
 * Returns false if the packet is too short for a BTH. */
bool pkt_peek(const uint8_t *data, size_t len, struct pkt *out);

/* Writes the BTH and the headers in op_table[p->opcode] to dst, which must have room for PKT_HEADERS_MAX bytes. Returns
 * the number of bytes written (header_len). The caller writes payload, pad and ICRC. A value that is wider
 * than its field on the wire is masked. Reserved fields are written as 0. */
size_t pkt_encode(const struct pkt *p, uint8_t *dst);

/* Sets the acknowledge request bit in a packet that is already encoded. bth points to its first byte. */
void pkt_ask_ack(uint8_t *bth);

/* Bytes of pad after len bytes of payload: 0 ... 3. */
static inline uint32_t pkt_pad(uint32_t len)
{
    return (0u - len) & 3u;
}

/* The name of an error, for logs: "ok", "short", … */
const char *pkt_error_name(enum pkt_error e);

#endif
