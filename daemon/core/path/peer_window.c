// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/path/peer_window.h"

#include <string.h>

#include "daemon/core/engine_priv.h"

/* --- the table ----------------------------------------------------------------------------------------------------------- */

void peer_window_table_init(struct peer_window_table *t, struct peer_window *peers, uint32_t size)
{
    for (uint32_t i = 0; i < PEER_WINDOW_BUCKETS; i++)
        list_init(&t->bucket[i]);
    t->peers = peers;
    t->size = size;
}

static uint32_t bucket_of(const uint8_t gid[16])
{
    uint32_t h = 0;
    for (unsigned i = 0; i < 16; i++)
        h = h * 31 + gid[i];
    return h * 2654435761u >> 24 & (PEER_WINDOW_BUCKETS - 1);
}

struct peer_window *peer_window_lookup(const struct peer_window_table *t, const uint8_t gid[16])
{
    const struct list_node *head = &t->bucket[bucket_of(gid)];
    for (struct list_node *l = head->next; l != head; l = l->next) {
        struct peer_window *p = list_entry(l, struct peer_window, bucket);
        if (memcmp(p->gid, gid, 16) == 0)
            return p;
    }
    return NULL;
}

static bool may_be_taken(const struct peer_window *p)
{
    return p->users == 0 && p->inflight == 0 && datagram_flow_is_idle(&p->flow) && list_empty(&p->waiting);
}

static struct peer_window *take(struct peer_window_table *t)
{
    if (t->untouched < t->size)
        return &t->peers[t->untouched++];
    for (uint32_t i = 0; i < t->size; i++) {
        struct peer_window *p = &t->peers[t->hand++ % t->size];
        if (may_be_taken(p)) {
            list_remove(&p->bucket);
            return p;
        }
    }
    return NULL;
}

struct peer_window *peer_window_find(struct peer_window_table *t, const uint8_t gid[16])
{
    struct peer_window *p = peer_window_lookup(t, gid);
    if (p)
        return p;
    p = take(t);
    if (!p)
        return &t->peers[t->size - 1];
    memcpy(p->gid, gid, 16);
    p->users = 0;
    p->inflight = 0;
    list_init(&p->waiting);
    datagram_flow_init(&p->flow, gid);
    list_init(&p->bucket);
    list_append(&t->bucket[bucket_of(gid)], &p->bucket);
    return p;
}

struct peer_window *peer_window_get(struct peer_window_table *t, const uint8_t gid[16])
{
    struct peer_window *p = peer_window_find(t, gid);
    p->users++;
    return p;
}

void peer_window_put(struct peer_window *p)
{
    p->users--;
}

/* --- the window ---------------------------------------------------------------------------------------------------------- */

void peer_wait(struct qp *qp, struct peer_window *p)
{
    if (!list_empty(&qp->peer_wait))
        return;
    COUNT(qp, peer_window_full);
    list_append(&p->waiting, &qp->peer_wait);
}

bool peer_window_admits(struct qp *qp, uint64_t cost)
{
    struct peer_window *p = qp->peer;
    /* Who has nothing in flight may always send its request: so no QP waits for ever behind others that are stuck. */
    if (qp->req.inflight == 0 || p->inflight + cost <= qp->e->cfg.peer_window_bytes)
        return true;
    peer_wait(qp, p);
    return false;
}

void peer_window_charge(struct qp *qp, uint64_t cost)
{
    qp->req.inflight += cost;
    qp->peer->inflight += cost;
}

void peer_window_free(struct peer_window *p, uint64_t cost)
{
    p->inflight -= cost;
    while (cost && !list_empty(&p->waiting)) {
        struct qp *waiter = list_entry(p->waiting.next, struct qp, peer_wait);
        list_remove(&waiter->peer_wait);
        engine_ready(waiter);
    }
}

void peer_window_release(struct qp *qp, uint64_t cost)
{
    qp->req.inflight -= cost;
    if (qp->peer)
        peer_window_free(qp->peer, cost);
}

uint64_t peer_window_room(const struct engine *e, const struct peer_window *p)
{
    return p->inflight < e->cfg.peer_window_bytes ? e->cfg.peer_window_bytes - p->inflight : 0;
}
