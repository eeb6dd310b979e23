// SPDX-License-Identifier: BSD-2-Clause
/* One table of the opcodes of the Base Transport Header (IBA 9.2.1, table 38; annexes A14 (XRC), A17 (RoCEv2 CNP) and
 * A19 (memory extensions)). For each opcode the table has the headers that follow, the legal length of the payload, and
 * properties such as "a requester sends it". */
#ifndef PUMICE_WIRE_OPCODE_H
#define PUMICE_WIRE_OPCODE_H

#include <stdbool.h>
#include <stdint.h>

/* The three upper bits of an opcode are the transport service, the five lower bits are the operation. */
enum op_service {
    OP_SERVICE_RC = 0x00,
    OP_SERVICE_UC = 0x20,
    OP_SERVICE_UD = 0x60,
    OP_SERVICE_CNP = 0x80,
    OP_SERVICE_XRC = 0xa0,
};
#define OP_SERVICE_MASK 0xe0
#define OP_OPERATION_MASK 0x1f

/* Operations. An opcode is a service OR an operation. */
enum op_operation {
    OP_SEND_FIRST = 0x00,
    OP_SEND_MIDDLE = 0x01,
    OP_SEND_LAST = 0x02,
    OP_SEND_LAST_IMM = 0x03,
    OP_SEND_ONLY = 0x04,
    OP_SEND_ONLY_IMM = 0x05,
    OP_WRITE_FIRST = 0x06,
    OP_WRITE_MIDDLE = 0x07,
    OP_WRITE_LAST = 0x08,
    OP_WRITE_LAST_IMM = 0x09,
    OP_WRITE_ONLY = 0x0a,
    OP_WRITE_ONLY_IMM = 0x0b,
    OP_READ_REQUEST = 0x0c,
    OP_READ_RESP_FIRST = 0x0d,
    OP_READ_RESP_MIDDLE = 0x0e,
    OP_READ_RESP_LAST = 0x0f,
    OP_READ_RESP_ONLY = 0x10,
    OP_ACK = 0x11,
    OP_ATOMIC_ACK = 0x12,
    OP_CMP_SWAP = 0x13,
    OP_FETCH_ADD = 0x14,
    OP_SEND_LAST_INV = 0x16,
    OP_SEND_ONLY_INV = 0x17,
    OP_FLUSH = 0x1c,
    OP_ATOMIC_WRITE = 0x1d,
};
#define OP_CNP 0x81 /* the CNP that RoCEv2 NICs send (A17.9.3) */
#define OP_CNP_ALT 0x80 /* also accepted: Wireshark 4.0 and some stacks use this opcode for a CNP */

/* Headers that follow the BTH, in the order of the wire. */
enum op_header {
    OP_HAS_XRCETH = 1 << 0,
    OP_HAS_DETH = 1 << 1,
    OP_HAS_FETH = 1 << 2, /* flush: placement type and selectivity */
    OP_HAS_RETH = 1 << 3,
    OP_HAS_ATOMICETH = 1 << 4,
    OP_HAS_AETH = 1 << 5,
    OP_HAS_ATOMICACKETH = 1 << 6,
    OP_HAS_IMMDT = 1 << 7,
    OP_HAS_IETH = 1 << 8,
};

/* Bytes of each header on the wire, and of the BTH before them. */
#define BTH_LEN 12
enum op_header_len {
    XRCETH_LEN = 4,
    DETH_LEN = 8,
    FETH_LEN = 4,
    RETH_LEN = 16,
    ATOMICETH_LEN = 28,
    AETH_LEN = 4,
    ATOMICACKETH_LEN = 8,
    IMMDT_LEN = 4,
    IETH_LEN = 4,
};

/* Properties of an opcode, for dispatch. Each opcode has exactly one of FIRST, MIDDLE, LAST and ONLY; ACKs and CNPs
 * count as ONLY. Each opcode except CNP has exactly one of REQUEST and RESPONSE. FLUSH and ATOMIC WRITE have none of
 * SEND, WRITE, READ and ATOMIC: test the operation instead. */
enum op_property {
    OP_IS_REQUEST = 1 << 0, /* sent by a requester */
    OP_IS_RESPONSE = 1 << 1, /* sent by a responder */
    OP_IS_FIRST = 1 << 2, /* begins a message of several packets */
    OP_IS_MIDDLE = 1 << 3,
    OP_IS_LAST = 1 << 4, /* ends a message of several packets */
    OP_IS_ONLY = 1 << 5, /* a message of one packet */
    OP_IS_SEND = 1 << 6,
    OP_IS_WRITE = 1 << 7,
    OP_IS_READ = 1 << 8, /* READ request or READ response */
    OP_IS_ATOMIC = 1 << 9,
    OP_NEEDS_RECV = 1 << 10, /* the packet consumes or continues a receive work request */
};

/* The legal number of payload bytes, without pad. */
enum op_payload {
    OP_PAYLOAD_NONE, /* 0 */
    OP_PAYLOAD_FULL, /* exactly the path MTU: FIRST and MIDDLE */
    OP_PAYLOAD_LAST, /* 1 ... path MTU */
    OP_PAYLOAD_ONLY, /* 0 ... path MTU */
    OP_PAYLOAD_8, /* exactly 8: ATOMIC WRITE */
    OP_PAYLOAD_CNP, /* 16 reserved bytes */
};

struct op_info {
    const char *name; /* Wireshark's name without the service, such as "SEND First"; NULL: no such opcode */
    uint16_t headers; /* enum op_header */
    uint16_t properties; /* enum op_property */
    uint8_t header_len; /* bytes of BTH and all headers */
    uint8_t payload; /* enum op_payload */
};

/* All 256 opcodes. An opcode that is not assigned has a NULL name. */
extern const struct op_info op_table[256];

/* The name of the opcode's service: "RC", "UC", "UD", "XRC", "CNP", or "?". */
const char *op_service_name(uint8_t opcode);

#endif
