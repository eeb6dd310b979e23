// SPDX-License-Identifier: BSD-2-Clause
#include "wire/pkt.h"

#include <string.h>

#include "wire/bytes.h"

/* BTH (IBA 9.2): opcode 8 | SE 1, MigReq 1, pad 2, TVer 4 | P_Key 16 | FECN 1, BECN 1, reserved 6 | dest QP 24 |
 * AckReq 1, reserved 7 | PSN 24. */
#define BTH_SE 0x80
#define BTH_MIGREQ 0x40
#define BTH_PAD_SHIFT 4
#define BTH_PAD_MASK 0x3
#define BTH_TVER_MASK 0x0f
#define BTH_FECN 0x80
#define BTH_BECN 0x40
#define BTH_ACKREQ 0x80

/* FETH (IBA A19): reserved 26 | selectivity 2 | placement 4. */
#define FETH_SEL_SHIFT 4
#define FETH_SEL_MASK 0x3
#define FETH_PLT_MASK 0xf

/* Minimum and maximum payload of each kind at any path MTU, in the order of enum op_payload. */
/* clang-format off */
static const struct {
    uint16_t min, max;
} payload_range[] = {
    [OP_PAYLOAD_NONE] = {           0,           0},
    [OP_PAYLOAD_FULL] = { PKT_MTU_MIN, PKT_MTU_MAX}, /* also a power of two (payload_legal) */
    [OP_PAYLOAD_LAST] = {           1, PKT_MTU_MAX},
    [OP_PAYLOAD_ONLY] = {           0, PKT_MTU_MAX},
    [OP_PAYLOAD_8]    = {           8,           8},
    [OP_PAYLOAD_CNP]  = { PKT_CNP_LEN, PKT_CNP_LEN},
};
/* clang-format on */

static bool payload_legal(uint8_t kind, size_t len)
{
    if (len < payload_range[kind].min || len > payload_range[kind].max)
        return false;
    return kind != OP_PAYLOAD_FULL || (len & (len - 1)) == 0;
}

/* Reads the BTH. Several fields share byte 1, byte 4 and byte 8. All other fields have whole bytes. */
static const uint8_t *get_bth(const uint8_t *p, struct pkt *out)
{
    uint8_t flags, ecn, ack;

    p = get_u8(p, &out->opcode);
    p = get_u8(p, &flags);
    p = get_be16(p, &out->pkey);
    p = get_u8(p, &ecn);
    p = get_be24(p, &out->dest_qpn);
    p = get_u8(p, &ack);
    p = get_be24(p, &out->psn);
    out->solicited = (flags & BTH_SE) != 0;
    out->migreq = (flags & BTH_MIGREQ) != 0;
    out->pad = flags >> BTH_PAD_SHIFT & BTH_PAD_MASK;
    out->tver = flags & BTH_TVER_MASK;
    out->fecn = (ecn & BTH_FECN) != 0;
    out->becn = (ecn & BTH_BECN) != 0;
    out->ackreq = (ack & BTH_ACKREQ) != 0;
    return p;
}

/* Reads the headers after the BTH, in the order of the wire, which is also the order of enum op_header. */
static const uint8_t *get_headers(const uint8_t *p, uint16_t headers, struct pkt *out)
{
    if (headers & OP_HAS_XRCETH)
        p = get_be24(p + 1, &out->srqn);
    if (headers & OP_HAS_DETH) {
        p = get_be32(p, &out->deth.qkey);
        p = get_be24(p + 1, &out->deth.src_qpn);
    }
    if (headers & OP_HAS_FETH) {
        uint8_t bits;

        p = get_u8(p + 3, &bits);
        out->feth.selectivity = bits >> FETH_SEL_SHIFT & FETH_SEL_MASK;
        out->feth.placement = bits & FETH_PLT_MASK;
    }
    if (headers & OP_HAS_RETH) {
        p = get_be64(p, &out->reth.va);
        p = get_be32(p, &out->reth.rkey);
        p = get_be32(p, &out->reth.length);
    }
    if (headers & OP_HAS_ATOMICETH) {
        p = get_be64(p, &out->atomic.va);
        p = get_be32(p, &out->atomic.rkey);
        p = get_be64(p, &out->atomic.swap_add);
        p = get_be64(p, &out->atomic.compare);
    }
    if (headers & OP_HAS_AETH) {
        p = get_u8(p, &out->aeth.syndrome);
        p = get_be24(p, &out->aeth.msn);
    }
    if (headers & OP_HAS_ATOMICACKETH)
        p = get_be64(p, &out->atomic_orig);
    if (headers & OP_HAS_IMMDT) {
        memcpy(out->imm, p, IMMDT_LEN);
        p += IMMDT_LEN;
    }
    if (headers & OP_HAS_IETH)
        p = get_be32(p, &out->inv_rkey);
    return p;
}

enum pkt_error pkt_decode(const uint8_t *data, size_t len, struct pkt *out)
{
    size_t body; /* payload and pad */

    if (len < BTH_LEN + ICRC_LEN)
        return PKT_SHORT;
    const uint8_t *p = get_bth(data, out);
    if (out->tver != 0) /* checked first: in another version the opcodes may mean something else */
        return PKT_VERSION;
    const struct op_info *info = &op_table[out->opcode];
    if (!info->name)
        return PKT_OPCODE;
    if (len < (size_t)info->header_len + ICRC_LEN)
        return PKT_SHORT;

    body = len - info->header_len - ICRC_LEN;
    if (body % 4 != 0 || body < out->pad || !payload_legal(info->payload, body - out->pad))
        return PKT_LENGTH;
    if (info->headers)
        p = get_headers(p, info->headers, out);
    out->payload = p;
    out->payload_len = (uint32_t)(body - out->pad);
    return PKT_OK;
}

bool pkt_peek(const uint8_t *data, size_t len, struct pkt *out)
{
    if (len < BTH_LEN)
        return false;
    get_bth(data, out);
    return true;
}

static uint8_t *put_bth(uint8_t *d, const struct pkt *p)
{
    unsigned flags = (p->solicited ? BTH_SE : 0u) | (p->migreq ? BTH_MIGREQ : 0u) |
                     (p->pad & (unsigned)BTH_PAD_MASK) << BTH_PAD_SHIFT | (p->tver & (unsigned)BTH_TVER_MASK);

    d = put_u8(d, p->opcode);
    d = put_u8(d, (uint8_t)flags);
    d = put_be16(d, p->pkey);
    d = put_u8(d, (uint8_t)((p->fecn ? BTH_FECN : 0) | (p->becn ? BTH_BECN : 0)));
    d = put_be24(d, p->dest_qpn);
    d = put_u8(d, p->ackreq ? BTH_ACKREQ : 0);
    return put_be24(d, p->psn);
}

static uint8_t *put_headers(uint8_t *d, uint16_t headers, const struct pkt *p)
{
    if (headers & OP_HAS_XRCETH)
        d = put_be32(d, p->srqn & QPN_MASK);
    if (headers & OP_HAS_DETH) {
        d = put_be32(d, p->deth.qkey);
        d = put_be32(d, p->deth.src_qpn & QPN_MASK);
    }
    if (headers & OP_HAS_FETH)
        d = put_be32(d, (p->feth.selectivity & (uint32_t)FETH_SEL_MASK) << FETH_SEL_SHIFT |
                            (p->feth.placement & (uint32_t)FETH_PLT_MASK));
    if (headers & OP_HAS_RETH) {
        d = put_be64(d, p->reth.va);
        d = put_be32(d, p->reth.rkey);
        d = put_be32(d, p->reth.length);
    }
    if (headers & OP_HAS_ATOMICETH) {
        d = put_be64(d, p->atomic.va);
        d = put_be32(d, p->atomic.rkey);
        d = put_be64(d, p->atomic.swap_add);
        d = put_be64(d, p->atomic.compare);
    }
    if (headers & OP_HAS_AETH) {
        d = put_u8(d, p->aeth.syndrome);
        d = put_be24(d, p->aeth.msn);
    }
    if (headers & OP_HAS_ATOMICACKETH)
        d = put_be64(d, p->atomic_orig);
    if (headers & OP_HAS_IMMDT) {
        memcpy(d, p->imm, IMMDT_LEN);
        d += IMMDT_LEN;
    }
    if (headers & OP_HAS_IETH)
        d = put_be32(d, p->inv_rkey);
    return d;
}

void pkt_ask_ack(uint8_t *bth)
{
    bth[8] |= BTH_ACKREQ;
}

size_t pkt_encode(const struct pkt *p, uint8_t *dst)
{
    uint16_t headers = op_table[p->opcode].headers;
    uint8_t *end = put_bth(dst, p);

    if (headers)
        end = put_headers(end, headers, p);
    return (size_t)(end - dst);
}

const char *pkt_error_name(enum pkt_error e)
{
    static const char *const names[] = {
        [PKT_OK] = "ok",           [PKT_SHORT] = "short",   [PKT_OPCODE] = "opcode",
        [PKT_VERSION] = "version", [PKT_LENGTH] = "length",
    };

    return (unsigned)e < sizeof(names) / sizeof(names[0]) ? names[e] : "?";
}
