// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/path/peer_window.h"

#include <string.h>

#include "daemon/core/engine_priv.h"

/* --- the table ----------------------------------------------------------------------------------------------------------- */

void peer_table_init(struct peer_table *t, struct peer *peers, uint32_t size)
{
    for (uint32_t i = 0; i < PEER_BUCKETS; i++)
        link_init(&t->bucket[i]);
    t->peers = peers;
    t->size = size;
}

static uint32_t bucket_of(const uint8_t gid[16])
{
    uint32_t h = 0;
    for (unsigned i = 0; i < 16; i++)
        h = h * 31 + gid[i];
    return h * 2654435761u >> 24 & (PEER_BUCKETS - 1);
}

struct peer *peer_known(const struct peer_table *t, const uint8_t gid[16])
{
    const struct link *head = &t->bucket[bucket_of(gid)];
    for (struct link *l = head->next; l != head; l = l->next) {
        struct peer *p = link_owner(l, struct peer, bucket);
        if (memcmp(p->gid, gid, 16) == 0)
            return p;
    }
    return NULL;
}

static bool may_be_taken(const struct peer *p)
{
    return p->users == 0 && p->inflight == 0 && flow_is_idle(&p->flow) && link_alone(&p->waiting);
}

static struct peer *take(struct peer_table *t)
{
    if (t->untouched < t->size)
        return &t->peers[t->untouched++];
    for (uint32_t i = 0; i < t->size; i++) {
        struct peer *p = &t->peers[t->hand++ % t->size];
        if (may_be_taken(p)) {
            link_remove(&p->bucket);
            return p;
        }
    }
    return NULL;
}

struct peer *peer_find(struct peer_table *t, const uint8_t gid[16])
{
    struct peer *p = peer_known(t, gid);
    if (p)
        return p;
    p = take(t);
    if (!p)
        return &t->peers[t->size - 1];
    memcpy(p->gid, gid, 16);
    p->users = 0;
    p->inflight = 0;
    link_init(&p->waiting);
    flow_init(&p->flow, gid);
    link_init(&p->bucket);
    link_append(&t->bucket[bucket_of(gid)], &p->bucket);
    return p;
}

struct peer *peer_get(struct peer_table *t, const uint8_t gid[16])
{
    struct peer *p = peer_find(t, gid);
    p->users++;
    return p;
}

void peer_put(struct peer *p)
{
    p->users--;
}

/* --- the window ---------------------------------------------------------------------------------------------------------- */

void peer_wait(struct qp *qp, struct peer *p)
{
    if (!link_alone(&qp->peer_wait))
        return;
    COUNT(qp, peer_window_full);
    link_append(&p->waiting, &qp->peer_wait);
}

bool peer_admits(struct qp *qp, uint64_t cost)
{
    struct peer *p = qp->peer;
    /* Who has nothing in flight may always send its request: so no QP waits for ever behind others that are stuck. */
    if (qp->req.inflight == 0 || p->inflight + cost <= qp->e->cfg.peer_window_bytes)
        return true;
    peer_wait(qp, p);
    return false;
}

void peer_charge(struct qp *qp, uint64_t cost)
{
    qp->req.inflight += cost;
    qp->peer->inflight += cost;
}

void peer_free(struct peer *p, uint64_t cost)
{
    p->inflight -= cost;
    while (cost && !link_alone(&p->waiting)) {
        struct qp *waiter = link_owner(p->waiting.next, struct qp, peer_wait);
        link_remove(&waiter->peer_wait);
        engine_ready(waiter);
    }
}

void peer_release(struct qp *qp, uint64_t cost)
{
    qp->req.inflight -= cost;
    if (qp->peer)
        peer_free(qp->peer, cost);
}

uint64_t peer_room(const struct engine *e, const struct peer *p)
{
    return p->inflight < e->cfg.peer_window_bytes ? e->cfg.peer_window_bytes - p->inflight : 0;
}
