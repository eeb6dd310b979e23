// SPDX-License-Identifier: BSD-2-Clause
#include "wire/opcode.h"

#include <stddef.h>

/* The length of the BTH and all headers of a set. The compiler computes it, so the length in each row is right. */
#define LEN_IF(set, header, len) (((set) & (header)) ? (len) : 0)
#define HEADER_LEN(set)                                                                                                \
    (BTH_LEN + LEN_IF(set, OP_HAS_XRCETH, XRCETH_LEN) + LEN_IF(set, OP_HAS_DETH, DETH_LEN) +                           \
     LEN_IF(set, OP_HAS_FETH, FETH_LEN) + LEN_IF(set, OP_HAS_RETH, RETH_LEN) +                                         \
     LEN_IF(set, OP_HAS_ATOMICETH, ATOMICETH_LEN) + LEN_IF(set, OP_HAS_AETH, AETH_LEN) +                               \
     LEN_IF(set, OP_HAS_ATOMICACKETH, ATOMICACKETH_LEN) + LEN_IF(set, OP_HAS_IMMDT, IMMDT_LEN) +                       \
     LEN_IF(set, OP_HAS_IETH, IETH_LEN))

#define ROW(service, op, name, headers, properties, payload)                                                           \
    [(service) | (op)] = {name, (uint16_t)(headers), (uint16_t)(properties), HEADER_LEN(headers), payload}

/* Short names for the columns of the table. */
#define RC OP_SERVICE_RC
#define UC OP_SERVICE_UC
#define UD OP_SERVICE_UD
#define XRC OP_SERVICE_XRC
#define CNP OP_SERVICE_CNP
#define XRCETH OP_HAS_XRCETH
#define DETH OP_HAS_DETH
#define FETH OP_HAS_FETH
#define RETH OP_HAS_RETH
#define ATOMICETH OP_HAS_ATOMICETH
#define AETH OP_HAS_AETH
#define ATOMICACK OP_HAS_ATOMICACKETH
#define IMMDT OP_HAS_IMMDT
#define IETH OP_HAS_IETH
#define REQ OP_IS_REQUEST
#define RSP OP_IS_RESPONSE
#define FIRST OP_IS_FIRST
#define MIDDLE OP_IS_MIDDLE
#define LAST OP_IS_LAST
#define ONLY OP_IS_ONLY
#define SEND OP_IS_SEND
#define WRITE OP_IS_WRITE
#define READ OP_IS_READ
#define ATOMIC OP_IS_ATOMIC
#define RECV OP_NEEDS_RECV
#define P_NONE OP_PAYLOAD_NONE
#define P_FULL OP_PAYLOAD_FULL
#define P_LAST OP_PAYLOAD_LAST
#define P_ONLY OP_PAYLOAD_ONLY
#define P_8 OP_PAYLOAD_8
#define P_CNP OP_PAYLOAD_CNP

/* IBA 9.2.1, table 38, in its order; FLUSH and ATOMIC WRITE: A19; XRC: A14; CNP: A17.9.3. */
/* clang-format off */
const struct op_info op_table[256] = {
    ROW(RC,  0x00, "SEND First",                     0,                REQ | FIRST  | SEND | RECV,  P_FULL),
    ROW(RC,  0x01, "SEND Middle",                    0,                REQ | MIDDLE | SEND | RECV,  P_FULL),
    ROW(RC,  0x02, "SEND Last",                      0,                REQ | LAST   | SEND | RECV,  P_LAST),
    ROW(RC,  0x03, "SEND Last with Immediate",       IMMDT,            REQ | LAST   | SEND | RECV,  P_LAST),
    ROW(RC,  0x04, "SEND Only",                      0,                REQ | ONLY   | SEND | RECV,  P_ONLY),
    ROW(RC,  0x05, "SEND Only with Immediate",       IMMDT,            REQ | ONLY   | SEND | RECV,  P_ONLY),
    ROW(RC,  0x06, "RDMA WRITE First",               RETH,             REQ | FIRST  | WRITE,        P_FULL),
    ROW(RC,  0x07, "RDMA WRITE Middle",              0,                REQ | MIDDLE | WRITE,        P_FULL),
    ROW(RC,  0x08, "RDMA WRITE Last",                0,                REQ | LAST   | WRITE,        P_LAST),
    ROW(RC,  0x09, "RDMA WRITE Last with Immediate", IMMDT,            REQ | LAST   | WRITE | RECV, P_LAST),
    ROW(RC,  0x0a, "RDMA WRITE Only",                RETH,             REQ | ONLY   | WRITE,        P_ONLY),
    ROW(RC,  0x0b, "RDMA WRITE Only with Immediate", RETH | IMMDT,     REQ | ONLY   | WRITE | RECV, P_ONLY),
    ROW(RC,  0x0c, "RDMA READ Request",              RETH,             REQ | ONLY   | READ,         P_NONE),
    ROW(RC,  0x0d, "RDMA READ response First",       AETH,             RSP | FIRST  | READ,         P_FULL),
    ROW(RC,  0x0e, "RDMA READ response Middle",      0,                RSP | MIDDLE | READ,         P_FULL),
    ROW(RC,  0x0f, "RDMA READ response Last",        AETH,             RSP | LAST   | READ,         P_LAST),
    ROW(RC,  0x10, "RDMA READ response Only",        AETH,             RSP | ONLY   | READ,         P_ONLY),
    ROW(RC,  0x11, "Acknowledge",                    AETH,             RSP | ONLY,                  P_NONE),
    ROW(RC,  0x12, "ATOMIC Acknowledge",             AETH | ATOMICACK, RSP | ONLY   | ATOMIC,       P_NONE),
    ROW(RC,  0x13, "CmpSwap",                        ATOMICETH,        REQ | ONLY   | ATOMIC,       P_NONE),
    ROW(RC,  0x14, "FetchAdd",                       ATOMICETH,        REQ | ONLY   | ATOMIC,       P_NONE),
    ROW(RC,  0x16, "SEND Last with Invalidate",      IETH,             REQ | LAST   | SEND | RECV,  P_LAST),
    ROW(RC,  0x17, "SEND Only with Invalidate",      IETH,             REQ | ONLY   | SEND | RECV,  P_ONLY),
    ROW(RC,  0x1c, "FLUSH",                          FETH | RETH,      REQ | ONLY,                  P_NONE),
    ROW(RC,  0x1d, "ATOMIC WRITE",                   RETH,             REQ | ONLY,                  P_8),

    ROW(UC,  0x00, "SEND First",                     0,                REQ | FIRST  | SEND | RECV,  P_FULL),
    ROW(UC,  0x01, "SEND Middle",                    0,                REQ | MIDDLE | SEND | RECV,  P_FULL),
    ROW(UC,  0x02, "SEND Last",                      0,                REQ | LAST   | SEND | RECV,  P_LAST),
    ROW(UC,  0x03, "SEND Last with Immediate",       IMMDT,            REQ | LAST   | SEND | RECV,  P_LAST),
    ROW(UC,  0x04, "SEND Only",                      0,                REQ | ONLY   | SEND | RECV,  P_ONLY),
    ROW(UC,  0x05, "SEND Only with Immediate",       IMMDT,            REQ | ONLY   | SEND | RECV,  P_ONLY),
    ROW(UC,  0x06, "RDMA WRITE First",               RETH,             REQ | FIRST  | WRITE,        P_FULL),
    ROW(UC,  0x07, "RDMA WRITE Middle",              0,                REQ | MIDDLE | WRITE,        P_FULL),
    ROW(UC,  0x08, "RDMA WRITE Last",                0,                REQ | LAST   | WRITE,        P_LAST),
    ROW(UC,  0x09, "RDMA WRITE Last with Immediate", IMMDT,            REQ | LAST   | WRITE | RECV, P_LAST),
    ROW(UC,  0x0a, "RDMA WRITE Only",                RETH,             REQ | ONLY   | WRITE,        P_ONLY),
    ROW(UC,  0x0b, "RDMA WRITE Only with Immediate", RETH | IMMDT,     REQ | ONLY   | WRITE | RECV, P_ONLY),

    ROW(UD,  0x04, "SEND only",                      DETH,             REQ | ONLY   | SEND | RECV,  P_ONLY),
    ROW(UD,  0x05, "SEND only with Immediate",       DETH | IMMDT,     REQ | ONLY   | SEND | RECV,  P_ONLY),

    ROW(CNP, 0x00, "CNP",                            0,                ONLY,                        P_CNP),
    ROW(CNP, 0x01, "CNP",                            0,                ONLY,                        P_CNP),

    ROW(XRC, 0x00, "SEND First",                     XRCETH,                REQ | FIRST  | SEND | RECV,  P_FULL),
    ROW(XRC, 0x01, "SEND Middle",                    XRCETH,                REQ | MIDDLE | SEND | RECV,  P_FULL),
    ROW(XRC, 0x02, "SEND Last",                      XRCETH,                REQ | LAST   | SEND | RECV,  P_LAST),
    ROW(XRC, 0x03, "SEND Last with Immediate",       XRCETH | IMMDT,        REQ | LAST   | SEND | RECV,  P_LAST),
    ROW(XRC, 0x04, "SEND Only",                      XRCETH,                REQ | ONLY   | SEND | RECV,  P_ONLY),
    ROW(XRC, 0x05, "SEND Only with Immediate",       XRCETH | IMMDT,        REQ | ONLY   | SEND | RECV,  P_ONLY),
    ROW(XRC, 0x06, "RDMA WRITE First",               XRCETH | RETH,         REQ | FIRST  | WRITE,        P_FULL),
    ROW(XRC, 0x07, "RDMA WRITE Middle",              XRCETH,                REQ | MIDDLE | WRITE,        P_FULL),
    ROW(XRC, 0x08, "RDMA WRITE Last",                XRCETH,                REQ | LAST   | WRITE,        P_LAST),
    ROW(XRC, 0x09, "RDMA WRITE Last with Immediate", XRCETH | IMMDT,        REQ | LAST   | WRITE | RECV, P_LAST),
    ROW(XRC, 0x0a, "RDMA WRITE Only",                XRCETH | RETH,         REQ | ONLY   | WRITE,        P_ONLY),
    ROW(XRC, 0x0b, "RDMA WRITE Only with Immediate", XRCETH | RETH | IMMDT, REQ | ONLY   | WRITE | RECV, P_ONLY),
    ROW(XRC, 0x0c, "RDMA READ Request",              XRCETH | RETH,         REQ | ONLY   | READ,         P_NONE),
    ROW(XRC, 0x0d, "RDMA READ response First",       AETH,                  RSP | FIRST  | READ,         P_FULL),
    ROW(XRC, 0x0e, "RDMA READ response Middle",      0,                     RSP | MIDDLE | READ,         P_FULL),
    ROW(XRC, 0x0f, "RDMA READ response Last",        AETH,                  RSP | LAST   | READ,         P_LAST),
    ROW(XRC, 0x10, "RDMA READ response Only",        AETH,                  RSP | ONLY   | READ,         P_ONLY),
    ROW(XRC, 0x11, "Acknowledge",                    AETH,                  RSP | ONLY,                  P_NONE),
    ROW(XRC, 0x12, "ATOMIC Acknowledge",             AETH | ATOMICACK,      RSP | ONLY   | ATOMIC,       P_NONE),
    ROW(XRC, 0x13, "CmpSwap",                        XRCETH | ATOMICETH,    REQ | ONLY   | ATOMIC,       P_NONE),
    ROW(XRC, 0x14, "FetchAdd",                       XRCETH | ATOMICETH,    REQ | ONLY   | ATOMIC,       P_NONE),
    ROW(XRC, 0x16, "SEND Last with Invalidate",      XRCETH | IETH,         REQ | LAST   | SEND | RECV,  P_LAST),
    ROW(XRC, 0x17, "SEND Only with Invalidate",      XRCETH | IETH,         REQ | ONLY   | SEND | RECV,  P_ONLY),
    ROW(XRC, 0x1c, "FLUSH",                          XRCETH | FETH | RETH,  REQ | ONLY,                  P_NONE),
    ROW(XRC, 0x1d, "ATOMIC WRITE",                   XRCETH | RETH,         REQ | ONLY,                  P_8),
};
/* clang-format on */

const char *op_service_name(uint8_t opcode)
{
    switch (opcode & OP_SERVICE_MASK) {
    case OP_SERVICE_RC:
        return "RC";
    case OP_SERVICE_UC:
        return "UC";
    case OP_SERVICE_UD:
        return "UD";
    case OP_SERVICE_CNP:
        return "CNP";
    case OP_SERVICE_XRC:
        return "XRC";
    default:
        return "?";
    }
}
