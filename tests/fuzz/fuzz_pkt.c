// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer target: packets from the network, any bytes as UDP payload. The sanitizers detect reads out of bounds,
 * because the fuzzer's buffers end where the data end. The target checks the invariants of the decoder. */
#include <stdlib.h>
#include <string.h>

#include "wire/icrc.h"
#include "wire/pkt.h"
#include "wire/pumice/probe.h"
#include "wire/pumice/sack.h"
#include "wire/tmh.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* The packet's headers as they come out of the encoder: equal to the input but for reserved bits, and stable. */
static void check_codec(const uint8_t *data, size_t size)
{
    uint8_t once[PKT_HEADERS_MAX], twice[PKT_HEADERS_MAX], bth[BTH_LEN];
    struct pkt p, q;
    size_t header_len, n;
    uint8_t *again;

    if (pkt_decode(data, size, &p) != PKT_OK)
        return;
    header_len = op_table[p.opcode].header_len;
    must(op_table[p.opcode].name && p.tver == 0 && p.pad < 4 && p.dest_qpn <= QPN_MASK && p.psn <= PSN_MASK);
    must(p.payload == data + header_len && header_len + p.payload_len + p.pad + ICRC_LEN == size);
    must(p.payload_len <= PKT_MTU_MAX && pkt_pad(p.payload_len) == p.pad);

    must(pkt_encode(&p, once) == header_len);
    memcpy(bth, data, BTH_LEN);
    bth[4] &= 0xc0; /* the reserved bits */
    bth[8] &= 0x80;
    must(memcmp(once, bth, BTH_LEN) == 0);

    again = malloc(size);
    must(again != NULL);
    memcpy(again, data, size);
    memcpy(again, once, header_len);
    must(pkt_decode(again, size, &q) == PKT_OK);
    n = pkt_encode(&q, twice);
    must(n == header_len && memcmp(once, twice, n) == 0);
    free(again);
}

/* Encoding a decoded probe gives the same bytes, except for the reserved flags. */
static void check_probe(const uint8_t *data, size_t size)
{
    uint8_t again[PROBE_LEN], want[PROBE_LEN];
    struct probe p;

    if (!probe_decode(data, (uint32_t)size, &p))
        return;
    must(p.kind == PROBE_ASK ? p.size == size : size == PROBE_LEN);
    memcpy(want, data, PROBE_LEN);
    want[7] &= 5; /* flags 1 and 4 */
    probe_encode(&p, again);
    must(memcmp(again, want, PROBE_LEN) == 0);
}

/* The same for a SACK, which has no reserved bits. */
static void check_sack(const uint8_t *data, size_t size)
{
    uint8_t again[SACK_LEN_MOST];
    struct sack s;

    if (!sack_decode(data, (uint32_t)size, &s))
        return;
    must(s.gaps <= SACK_GAPS_MOST && sack_len(&s) == size);
    sack_encode(&s, again);
    must(memcmp(again, data, size) == 0);
}

static void check_icrc(const uint8_t *data, size_t size)
{
    struct icrc_flow flow = {.src_port = (uint16_t)size, .dst_port = ROCE_PORT, .is_v6 = size & 4};
    struct icrc_ctx ctx;
    uint16_t hint = size >= 2 ? (uint16_t)(data[0] << 8 | data[1]) : 0, id = 0;
    uint8_t *copy;

    icrc_ctx_init(&ctx, &flow);
    if (icrc_check_any_id(&ctx, hint, data, size, &id))
        must(icrc_check(&ctx, id, data, size));
    else
        must(!icrc_check(&ctx, hint, data, size));
    if (size < BTH_LEN + ICRC_LEN || size > 65507)
        return;
    copy = malloc(size);
    must(copy != NULL);
    memcpy(copy, data, size);
    icrc_store(copy + size - ICRC_LEN, icrc_compute(&ctx, hint, copy, size - ICRC_LEN));
    must(icrc_check(&ctx, hint, copy, size));
    must(icrc_check_any_id(&ctx, (uint16_t)~hint, copy, size, &id) && (flow.is_v6 || id == hint));
    free(copy);
}

static void check_tmh(const uint8_t *data, size_t size)
{
    uint8_t again[TMH_LEN];
    struct tmh t;
    struct rvh r;

    must(tmh_decode(data, size, &t) == (size >= TMH_LEN));
    if (size >= TMH_LEN)
        must(tmh_encode(&t, again) == TMH_LEN && memcmp(again, data, TMH_LEN) == 0);
    must(rvh_decode(data, size, &r) == (size >= RVH_LEN));
    if (size >= RVH_LEN)
        must(rvh_encode(&r, again) == RVH_LEN && memcmp(again, data, RVH_LEN) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_codec(data, size);
    check_icrc(data, size);
    check_tmh(data, size);
    check_probe(data, size);
    check_sack(data, size);
    return 0;
}
