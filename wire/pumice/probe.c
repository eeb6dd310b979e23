// SPDX-License-Identifier: BSD-2-Clause
#include "wire/pumice/probe.h"

#include "wire/bytes.h"

#define MAGIC 0x504d4345u /* "PMCE" */
#define VERSION 1u
#define FLAG_ICRC_IDS 1u
#define FLAG_SACKS 4u

bool probe_decode(const uint8_t *payload, uint32_t len, struct probe *out)
{
    uint32_t magic;
    uint8_t version, flags;
    const uint8_t *p = payload;

    if (len < PROBE_LEN)
        return false;
    p = get_be32(p, &magic);
    p = get_u8(p, &version);
    p = get_u8(p, &out->kind);
    p = get_u8(p, &out->purpose);
    p = get_u8(p, &flags);
    out->icrc_ids = flags & FLAG_ICRC_IDS;
    out->sacks = flags & FLAG_SACKS;
    p = get_be32(p, &out->sequence);
    p = get_be32(p, &out->size);
    get_be64(p, &out->token);
    if (magic != MAGIC || version != VERSION || out->size < PROBE_LEN)
        return false;
    return out->kind == PROBE_ASK ? len == out->size : out->kind == PROBE_ANSWER && len == PROBE_LEN;
}

void probe_encode(const struct probe *probe, uint8_t *dst)
{
    uint8_t *p = put_be32(dst, MAGIC);

    p = put_u8(p, VERSION);
    p = put_u8(p, probe->kind);
    p = put_u8(p, probe->purpose);
    p = put_u8(p, (uint8_t)((probe->icrc_ids ? FLAG_ICRC_IDS : 0) | (probe->sacks ? FLAG_SACKS : 0)));
    p = put_be32(p, probe->sequence);
    p = put_be32(p, probe->size);
    put_be64(p, probe->token);
}
