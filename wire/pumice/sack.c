// SPDX-License-Identifier: BSD-2-Clause
#include "wire/pumice/sack.h"

#include "wire/bth.h"
#include "wire/bytes.h"
#include "wire/pkt.h"
#include "wire/pumice/probe.h"

#define MAGIC 0x504d4353u /* "PMCS" */
#define VERSION 2u
#define VERSION_AT 4u /* byte of the payload */
#define SPAN_MOST (PSN_MASK / 2) /* PSNs farther apart can't be compared */

/* Reads the gaps. Each one begins behind the one before it and behind at least one PSN that has arrived. */
static bool get_gaps(const uint8_t *p, uint32_t span, struct sack *out)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < out->gaps; i++) {
        uint32_t distance, count;

        p = get_be24(p, &distance);
        p = get_be24(p, &count);
        if (i == 0 ? distance != 0 : distance <= at)
            return false;
        if (count == 0 || distance >= span || count > span - distance)
            return false;
        at = distance + count;
        out->gap[i].start = (out->expected + distance) & PSN_MASK;
        out->gap[i].end = (out->expected + at) & PSN_MASK;
    }
    return true;
}

bool sack_is_named(const uint8_t *payload, uint32_t len)
{
    uint32_t magic;
    uint8_t version;

    if (len <= VERSION_AT)
        return false;
    get_u8(get_be32(payload, &magic), &version);
    return magic == MAGIC && version == VERSION;
}

bool sack_decode(const uint8_t *payload, uint32_t len, struct sack *out)
{
    uint32_t span;
    uint16_t beyond;
    uint8_t gaps;
    const uint8_t *p;

    if (len < SACK_HEAD || !sack_is_named(payload, len))
        return false;
    p = get_u8(payload + VERSION_AT + 1, &gaps);
    p = get_be16(p, &beyond);
    p = get_be32(p, &out->requester);
    p = get_be32(p, &out->responder);
    p = get_be32(p, &out->expected);
    p = get_be32(p, &out->end);
    p = get_be32(p, &out->twice);
    out->gaps = gaps;
    out->newest = (out->end + beyond) & PSN_MASK;
    if (gaps == 0 || gaps > SACK_GAPS_MOST || len != sack_len(out))
        return false;
    if (out->requester > QPN_MASK || out->responder > QPN_MASK || out->expected > PSN_MASK || out->end > PSN_MASK)
        return false;
    span = (out->end - out->expected) & PSN_MASK;
    return span <= SPAN_MOST && get_gaps(p, span, out);
}

bool sack_of_packet(const uint8_t *pkt, size_t len, struct sack *out)
{
    const uint8_t *payload = pkt + BTH_LEN + DETH_LEN;
    uint32_t qkey, used;

    if (len < BTH_LEN + DETH_LEN + SACK_HEAD || bth_opcode(pkt) != (OP_SERVICE_UD | OP_SEND_ONLY) ||
        bth_dest_qpn(pkt) != PROBE_QPN)
        return false;
    get_be32(pkt + BTH_LEN, &qkey);
    used = SACK_HEAD + payload[5] * SACK_GAP; /* pad and ICRC follow */
    return qkey == PROBE_QKEY && len - BTH_LEN - DETH_LEN >= used && sack_decode(payload, used, out);
}

static uint32_t beyond_end(const struct sack *s)
{
    return (s->newest - s->end) & PSN_MASK;
}

bool sack_is_far(const struct sack *s)
{
    return beyond_end(s) >= SACK_BEYOND_MOST;
}

void sack_encode(const struct sack *s, uint8_t *dst)
{
    uint32_t beyond = beyond_end(s);
    uint8_t *p = put_be32(dst, MAGIC);

    p = put_u8(p, VERSION);
    p = put_u8(p, (uint8_t)s->gaps);
    p = put_be16(p, (uint16_t)(beyond < SACK_BEYOND_MOST ? beyond : SACK_BEYOND_MOST));
    p = put_be32(p, s->requester);
    p = put_be32(p, s->responder);
    p = put_be32(p, s->expected);
    p = put_be32(p, s->end);
    p = put_be32(p, s->twice);
    for (uint32_t i = 0; i < s->gaps; i++) {
        p = put_be24(p, (s->gap[i].start - s->expected) & PSN_MASK);
        p = put_be24(p, (s->gap[i].end - s->gap[i].start) & PSN_MASK);
    }
}
