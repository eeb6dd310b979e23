// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/replay/stream.h"

#include <stdbool.h>
#include <string.h>

#include "wire/pkt.h"

#define TAG_BITS (~(uint64_t)0xffff)
#define PSN_SIGN 0x800000

void qp_streams_restart(struct qp_streams *s)
{
    s->life++;
    memset(s->newest, 0, sizeof(s->newest));
}

/* The finalizer of SplitMix64. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* Counts that the packet is sent again. Returns how often that was so, this time included. */
static uint32_t count_resend(struct resends *r, const struct pm_packet *p)
{
    uint64_t hash =
        mix(mix(mix((uint64_t)p->program << 32 | p->qp) ^ ((uint64_t)p->life << 8 | p->stream)) ^ p->number);
    uint64_t *set = r->entry[hash % RESEND_SETS], entry = hash & TAG_BITS;
    unsigned way;

    for (way = 0; way < RESEND_WAYS - 1; way++)
        if ((set[way] & TAG_BITS) == (hash & TAG_BITS))
            break;
    /* The last way holds either this packet or the one to push out. */
    if ((set[way] & TAG_BITS) == (hash & TAG_BITS))
        entry = set[way];
    memmove(&set[1], &set[0], way * sizeof(set[0]));
    set[0] = (entry & ~TAG_BITS) == UINT16_MAX ? entry : entry + 1;
    return (uint16_t)set[0];
}

/* PSNs have 24 bits, and numbers 64: the number is the one with this PSN that is nearest to the newest number. */
static uint64_t number_of(uint64_t newest, uint32_t first_psn, uint32_t psn)
{
    uint32_t distance = (uint32_t)(psn - (first_psn - 1 + newest)) & PSN_MASK;
    int64_t step = distance & PSN_SIGN ? (int64_t)distance - PSN_MASK - 1 : (int64_t)distance;
    int64_t number = (int64_t)newest + step;

    return number > 0 ? (uint64_t)number : 0;
}

uint64_t stream_number(struct qp_streams *s, struct resends *r, uint32_t first_psn, uint32_t psn, struct pm_packet *p)
{
    uint64_t newest = s->newest[p->stream];

    p->qp = s->qp;
    p->life = s->life;
    p->number = number_of(newest, first_psn, psn);
    if (p->number > newest) {
        s->newest[p->stream] = p->number;
        p->attempt = 1;
    } else {
        p->attempt = 1 + count_resend(r, p);
    }
    return newest;
}
