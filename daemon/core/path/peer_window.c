// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/path/peer_window.h"

#include <string.h>

#include "wire/gid.h"

void peer_window_table_init(struct peer_window_table *t, const struct engine_config *cfg, struct peer_window *peers,
                            uint32_t size)
{
    t->cfg = cfg;
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
    return p->users == 0 && p->inflight == 0 && datagram_flow_is_idle(&p->flow) && list_empty(&p->waiting) &&
           p->congestion.timer.when == NEVER;
}

static void init_flow(struct datagram_flow *f, const uint8_t gid[16])
{
    memset(f, 0, sizeof(*f));
    timer_init(&f->timer);
    f->timer.kind = TIMER_PEER;
    list_init(&f->due);
    f->unprobed = gid_is_multicast(gid);
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
    congestion_init(&p->congestion, t->cfg);
    p->features = (struct peer_features){0};
    p->reordering = (struct reordering){0};
    p->reports = false;
    init_flow(&p->flow, gid);
    list_init(&p->bucket);
    list_append(&t->bucket[bucket_of(gid)], &p->bucket);
    return p;
}

struct peer_window *peer_window_get(struct peer_window_table *t, const uint8_t gid[16])
{
    struct peer_window *p = peer_window_find(t, gid);
    if (p->users == 0) {
        p->features = (struct peer_features){0};
        p->reordering = (struct reordering){0};
        p->reports = false;
    }
    if (p->users++ == 0 && p->congestion.timer.when == NEVER)
        congestion_init(&p->congestion, t->cfg);
    return p;
}

void peer_window_put(struct peer_window *p)
{
    p->users--;
}
