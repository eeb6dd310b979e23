// SPDX-License-Identifier: BSD-2-Clause
/* Malicious packets. Their ICRC is always right. */
#include "tests/sim/sim.h"

#include <string.h>

/* A packet that looks like one of the peer's but comes from the sender's other address, or goes to the receiver's other
 * address. It must not have any effect. */
void rogue_stranger(struct host *h, const struct wirepkt *real)
{
    struct sim *s = h->sim;
    struct wirepkt *p = net_alloc(real->len);
    memcpy(p, real, sizeof *p + real->len);
    p->stranger = real->number & 1 ? STRANGER_SOURCE : STRANGER_DESTINATION;
    if (prng_chance(&s->rng, 700)) { /* a PSN close to the real one */
        p->data[11] = (uint8_t)(p->data[11] + prng_range(&s->rng, 0, 20) - 10);
    }
    for (uint32_t i = BTH_LEN + 16; i + ICRC_LEN < p->len; i++) {
        p->data[i] ^= 0xff;
    }
    icrc_store(p->data + p->len - ICRC_LEN,
               icrc_compute(&h->icrc[p->dst][p->v6], p->ip_id, p->data, p->len - ICRC_LEN));
    net_send(&s->net, p, s->now);
}

/* Packets that a window or the READs of an exchange can hold. A real PSN plus a number of at least this size is not
 * plausible in any direction. */
#define FAR_PSN (1u << 21)

void rogue_psn(struct host *h, const struct wirepkt *real)
{
    struct sim *s = h->sim;
    struct wirepkt *p = net_alloc(real->len);
    memcpy(p, real, sizeof *p + real->len);
    p->stranger = STRANGER_PSN;
    uint32_t psn = (uint32_t)p->data[9] << 16 | (uint32_t)p->data[10] << 8 | p->data[11];
    psn += (uint32_t)prng_range(&s->rng, FAR_PSN, (1u << 24) - FAR_PSN);
    p->data[9] = (uint8_t)(psn >> 16);
    p->data[10] = (uint8_t)(psn >> 8);
    p->data[11] = (uint8_t)psn;
    icrc_store(p->data + p->len - ICRC_LEN,
               icrc_compute(&h->icrc[p->dst][p->v6], p->ip_id, p->data, p->len - ICRC_LEN));
    net_send(&s->net, p, s->now);
}

/* Changes one field of the packet to a value that a hostile or broken peer might write. */
static void spoil(struct sim *s, struct wirepkt *p)
{
    struct prng *r = &s->rng;
    static const uint32_t lengths[] = {0, 1, 256, 4096, 1u << 31, (1u << 31) + 1, UINT32_MAX};
    uint8_t *d = p->data;
    uint32_t n;
    bool xrc = (d[0] & OP_SERVICE_MASK) == OP_SERVICE_XRC;
    switch (prng_range(r, 0, xrc ? 13 : 7)) {
    case 0: /* any operation of the connection's service, or of RC */
        d[0] = (uint8_t)((prng_chance(r, 700) ? d[0] & OP_SERVICE_MASK : 0) | prng_range(r, 0, 0x1f));
        break;
    case 1: /* a PSN close to the real one */
        d[11] = (uint8_t)(d[11] + prng_range(r, 0, 40) - 20);
        break;
    case 2: /* any PSN */
        prng_fill(r, d + 9, 3);
        break;
    case 3: /* flags, P_Key, AckReq */
        d[prng_pick(r, 1, 2, 3, 8)] ^= (uint8_t)(1u << prng_range(r, 0, 7));
        break;
    case 4: /* syndrome, or the top of an address */
        if (p->len > BTH_LEN + ICRC_LEN) {
            d[BTH_LEN] = (uint8_t)prng_next(r);
        }
        break;
    case 5: /* the length in the RETH */
        if (p->len >= BTH_LEN + RETH_LEN + ICRC_LEN) {
            n = lengths[prng_range(r, 0, sizeof lengths / sizeof lengths[0] - 1)];
            for (int i = 0; i < 4; i++) {
                d[BTH_LEN + 12 + i] = (uint8_t)(n >> (24 - 8 * i));
            }
        }
        break;
    case 6: /* any bytes */
        if (p->len > BTH_LEN + ICRC_LEN) {
            n = (uint32_t)prng_range(r, BTH_LEN, p->len - ICRC_LEN - 1);
            prng_fill(r, d + n, (size_t)prng_range(r, 1, p->len - ICRC_LEN - n));
        }
        break;
    case 7: /* shorter */
        p->len -= 4 * (uint32_t)prng_range(r, 0, (p->len - BTH_LEN - ICRC_LEN) / 4);
        break;
    default: /* another SRQ number, existing or not */
        if (p->len >= BTH_LEN + XRCETH_LEN + ICRC_LEN && s->npools > 0) {
            n = s->pool[prng_range(r, 0, (uint64_t)s->npools - 1)].number + (prng_chance(r, 100) ? 100 : 0);
            for (int i = 1; i < 4; i++) {
                d[BTH_LEN + i] = (uint8_t)(n >> (24 - 8 * i));
            }
        }
        break;
    }
}

void rogue_peer(struct host *h, const struct wirepkt *real)
{
    struct sim *s = h->sim;
    struct wirepkt *p = net_alloc(real->len);
    memcpy(p, real, sizeof *p + real->len);
    p->rogue = true;
    for (uint64_t n = prng_pick(&s->rng, 1, 1, 2, 3); n > 0; n--) {
        spoil(s, p);
    }
    if (!p->loop) {
        uint32_t crc = icrc_compute(&h->icrc[p->dst][p->v6], p->ip_id, p->data, p->len - ICRC_LEN);
        icrc_store(p->data + p->len - ICRC_LEN, crc);
    }
    capture_packet(s, p, "sent, spoilt");
    net_send(&s->net, p, s->now);
}
