// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_NET
#include "daemon/monitor/peer_identity.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/monitor/path_check.h"
#include "wire/pumice/probe.h"

#define TRY_NS (250 * NS_PER_MS) /* between two probes */
#define TRIES 4u /* unanswered probes, after which a peer is PEER_OTHER */
#define TRIES_KNOWN 12u /* the same for a peer that has answered before */
#define FRESH_NS NS_PER_S /* so long an answer is believed without another probe */
#define OTHER_NS (60 * NS_PER_S) /* so long a peer that does not answer is left in peace */

/* Powers of two. Peers: as many as addresses that have a window of their own. Strangers: no QP is connected to them. */
#define IDENTITY_SLOTS 1024u
#define STRANGER_SLOTS 256u
#define REACH 8u /* slots that an address may be in */
#define STRANGERS_NEW 16u /* in a second; each gets TRIES probes at most. Addresses beyond that may be forged */

struct peer_identity {
    uint8_t gid[16];
    uint8_t kind; /* enum peer_kind */
    bool used;
    uint32_t tries; /* unanswered probes */
    uint64_t token; /* of all probes to the peer; an answer can't be guessed */
    uint64_t asked; /* time of the last probe, ns */
    uint64_t known; /* time of the last answer, or when the device gave up, ns */
};
struct table {
    struct peer_identity *slot;
    unsigned slots;
};
struct peer_identities {
    struct peer_identity peer[IDENTITY_SLOTS], stranger[STRANGER_SLOTS];
    uint64_t second; /* when the count of new strangers began, ns */
    unsigned added;
};

void peer_identity_fini(struct device *d)
{
    free(d->peer_identities);
    d->peer_identities = NULL;
}

static struct table peers(struct device *d)
{
    return (struct table){d->peer_identities ? d->peer_identities->peer : NULL, IDENTITY_SLOTS};
}

static struct table strangers(struct device *d)
{
    return (struct table){d->peer_identities ? d->peer_identities->stranger : NULL, STRANGER_SLOTS};
}

static struct peer_identity *nth_slot(struct table t, const uint8_t gid[16], unsigned n)
{
    uint64_t a, b;

    memcpy(&a, gid, 8);
    memcpy(&b, gid + 8, 8);
    return &t.slot[(((a ^ b) * 0x9e3779b97f4a7c15ull >> 32) + n) & (t.slots - 1)];
}

static struct peer_identity *find(struct table t, const uint8_t gid[16])
{
    for (unsigned i = 0; t.slot && i < REACH; i++) {
        struct peer_identity *p = nth_slot(t, gid, i);

        if (p->used && memcmp(p->gid, gid, sizeof(p->gid)) == 0)
            return p;
    }
    return NULL;
}

/* Takes a free slot, or that of the address that was asked longest ago. */
static struct peer_identity *add(struct table t, const uint8_t gid[16])
{
    struct peer_identity *p = NULL;

    for (unsigned i = 0; t.slot && i < REACH; i++) {
        struct peer_identity *q = nth_slot(t, gid, i);

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

static enum peer_kind kind_now(struct device *d, struct peer_identity *p, uint64_t now)
{
    if (p->kind == PEER_OTHER && now - p->known >= OTHER_NS)
        p->kind = PEER_UNKNOWN;
    if (p->kind == PEER_UNKNOWN || (peer_is_pumice(p->kind) && now - p->known >= FRESH_NS))
        ask(d, p, now);
    return p->kind;
}

/* Packets with forged addresses must not make the device send many probes. */
static bool may_add_stranger(struct peer_identities *t, uint64_t now)
{
    if (now - t->second >= NS_PER_S) {
        t->second = now;
        t->added = 0;
    }
    return t->added < STRANGERS_NEW && ++t->added;
}

/* Until a stranger answers, its packets are accepted: nobody would repeat those that are dropped. */
static enum peer_kind check_stranger(struct device *d, const uint8_t gid[16], uint64_t now)
{
    struct peer_identity *p = find(strangers(d), gid);

    if (!p && may_add_stranger(d->peer_identities, now))
        p = add(strangers(d), gid);
    enum peer_kind kind = p ? kind_now(d, p, now) : PEER_OTHER;
    return kind == PEER_UNKNOWN ? PEER_OTHER : kind;
}

enum peer_kind peer_identity_check(struct device *d, const uint8_t gid[16], uint64_t now)
{
    struct peer_identity *p = find(peers(d), gid);

    if (!p) {
        if (!d->peer_identities) /* most devices never need the table */
            d->peer_identities = calloc(1, sizeof(*d->peer_identities));
        if (!d->peer_identities)
            return PEER_OTHER;
        if (!engine_has_peer(d->engine, gid))
            return check_stranger(d, gid, now);
        const struct peer_identity *stranger = find(strangers(d), gid);
        p = add(peers(d), gid);
        if (stranger && peer_is_pumice(stranger->kind))
            *p = *stranger;
    }
    return kind_now(d, p, now);
}

bool peer_identity_answer(struct device *d, const struct check *answer, uint64_t now)
{
    struct peer_identity *p = find(peers(d), answer->peer), *stranger = find(strangers(d), answer->peer);
    char text[ADDR_TEXT_MAX];

    if (!p || p->token != answer->token)
        p = stranger;
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
