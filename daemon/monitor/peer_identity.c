// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_NET
#include "daemon/monitor/peer_identity.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/monitor/path_check.h"
#include "wire/probe.h"

#define TRY_NS (250 * NS_PER_MS) /* between two probes */
#define TRIES 4u /* unanswered probes, after which a peer is PEER_OTHER */
#define TRIES_KNOWN 12u /* the same for a peer that has answered before */
#define FRESH_NS NS_PER_S /* so long an answer is believed without another probe */
#define OTHER_NS (60 * NS_PER_S) /* so long a peer that does not answer is left in peace */

#define SLOTS 1024u /* a power of two: as many as addresses that have a window of their own */
#define REACH 8u /* slots that an address may be in */

struct peer_identity {
    uint8_t gid[16];
    uint8_t kind; /* enum peer_kind */
    bool used;
    uint32_t tries; /* unanswered probes */
    uint64_t token; /* of all probes to the peer; an answer can't be guessed */
    uint64_t asked; /* time of the last probe, ns */
    uint64_t known; /* time of the last answer, or when the device gave up, ns */
};
struct peer_identities {
    struct peer_identity slot[SLOTS];
};

void peer_identity_fini(struct device *d)
{
    free(d->peer_identities);
    d->peer_identities = NULL;
}

static struct peer_identity *first_slot(struct peer_identities *t, const uint8_t gid[16])
{
    uint64_t a, b;

    memcpy(&a, gid, 8);
    memcpy(&b, gid + 8, 8);
    return &t->slot[((a ^ b) * 0x9e3779b97f4a7c15ull >> 32) & (SLOTS - 1)];
}

static struct peer_identity *nth_slot(struct peer_identities *t, const uint8_t gid[16], unsigned n)
{
    return &t->slot[((size_t)(first_slot(t, gid) - t->slot) + n) & (SLOTS - 1)];
}

static struct peer_identity *find(struct peer_identities *t, const uint8_t gid[16])
{
    for (unsigned i = 0; t && i < REACH; i++) {
        struct peer_identity *p = nth_slot(t, gid, i);

        if (p->used && memcmp(p->gid, gid, sizeof(p->gid)) == 0)
            return p;
    }
    return NULL;
}

/* Takes a free slot, or that of the address that was asked longest ago. The first packet that needs it allocates the
 * table: most devices never do. */
static struct peer_identity *add(struct device *d, const uint8_t gid[16])
{
    struct peer_identity *p = NULL;

    if (!d->peer_identities)
        d->peer_identities = calloc(1, sizeof(*d->peer_identities));
    for (unsigned i = 0; d->peer_identities && i < REACH; i++) {
        struct peer_identity *q = nth_slot(d->peer_identities, gid, i);

        if (!p || !q->used || (p->used && q->asked < p->asked))
            p = q;
        if (!q->used)
            break;
    }
    if (!p)
        return NULL;
    *p = (struct peer_identity){.used = true, .kind = PEER_UNKNOWN, .token = path_check_token()};
    memcpy(p->gid, gid, sizeof(p->gid));
    return p;
}

static void give_up(struct device *d, struct peer_identity *p, uint64_t now)
{
    char text[ADDR_TEXT_MAX];

    if (peer_is_pumice(p->kind))
        log_write(
            LOG_AREA, LOG_LEVEL_WARN,
            "device %s: %s no longer answers as a Pumice daemon: from now on its packets may come from any UDP port",
            d->name, gid_text(p->gid, text));
    p->kind = PEER_OTHER;
    p->known = now;
    p->tries = 0;
}

/* Sends a probe, unless there was one a moment ago. */
static void ask(struct device *d, struct peer_identity *p, uint64_t now)
{
    struct av av = {.hop_limit = 64};
    int from = gid_table_source(&d->gids, p->gid);

    if (p->tries && now - p->asked < TRY_NS)
        return;
    if (p->tries >= (peer_is_pumice(p->kind) ? TRIES_KNOWN : TRIES)) {
        give_up(d, p, now);
        return;
    }
    memcpy(av.dgid, p->gid, sizeof(av.dgid));
    av.sgid_index = (uint8_t)from;
    if (from < 0 || engine_check(d->engine, &av, PROBE_LEN, p->tries, p->token) != 0)
        return; /* too many probes wait to be sent; a later packet asks again */
    p->tries++;
    p->asked = now;
}

enum peer_kind peer_identity_check(struct device *d, const uint8_t gid[16], uint64_t now)
{
    struct peer_identity *p = find(d->peer_identities, gid);

    if (!p) {
        p = engine_has_peer(d->engine, gid) ? add(d, gid) : NULL;
        if (!p)
            return PEER_OTHER;
    }
    if (p->kind == PEER_OTHER && now - p->known >= OTHER_NS)
        p->kind = PEER_UNKNOWN;
    if (p->kind == PEER_UNKNOWN || (peer_is_pumice(p->kind) && now - p->known >= FRESH_NS))
        ask(d, p, now);
    return p->kind;
}

bool peer_identity_answer(struct device *d, const struct check *answer, uint64_t now)
{
    struct peer_identity *p = find(d->peer_identities, answer->peer);
    char text[ADDR_TEXT_MAX];

    if (!p || p->token != answer->token)
        return false;
    if (!peer_is_pumice(p->kind))
        log_info("device %s: %s is a Pumice daemon: its packets must come from UDP port 4791", d->name,
                 gid_text(p->gid, text));
    p->kind = answer->icrc_ids ? PEER_PUMICE : PEER_PUMICE_OLD;
    p->known = now;
    p->tries = 0;
    return true;
}
