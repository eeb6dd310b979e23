// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/base/handles.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(elt) ((elt)->obj = NULL) /* handles_add_at sees that the table has not grown */
#include <uthash.h>

struct handle {
    uint32_t id;
    void *obj;
    UT_hash_handle hh;
};

static struct handle *find(const struct handles *t, uint32_t id)
{
    struct handle *h;

    HASH_FIND(hh, t->hash, &id, sizeof(id), h);
    return h;
}

int handles_add_at(struct handles *t, void *obj, uint32_t id)
{
    struct handle *h;

    if (find(t, id))
        return -EEXIST;
    if (t->limit && t->count >= t->limit)
        return -ENOSPC;
    h = calloc(1, sizeof(*h));
    if (!h)
        return -ENOMEM;
    h->id = id;
    h->obj = obj;
    HASH_ADD(hh, t->hash, id, sizeof(h->id), h);
    if (!h->obj) {
        free(h);
        return -ENOMEM;
    }
    t->count++;
    return 0;
}

int handles_add(struct handles *t, void *obj, uint32_t *id)
{
    uint32_t limit = t->limit && t->limit < HANDLES_MAX ? t->limit : HANDLES_MAX;
    uint32_t last = limit < HANDLES_MAX / HANDLES_SPREAD ? limit * HANDLES_SPREAD : HANDLES_MAX;

    if (t->count >= limit)
        return -ENOSPC;
    do {
        t->next = t->next < last ? t->next + 1 : 1;
    } while (find(t, t->next));
    *id = t->next;
    return handles_add_at(t, obj, *id);
}

void *handles_get(const struct handles *t, uint32_t id)
{
    const struct handle *h = find(t, id);

    return h ? h->obj : NULL;
}

void handles_remove(struct handles *t, uint32_t id)
{
    struct handle *h = find(t, id);

    if (!h)
        return;
    if (t->walk == h)
        t->walk = h->hh.next;
    HASH_DEL(t->hash, h);
    free(h);
    t->count--;
}

void *handles_any(const struct handles *t)
{
    const UT_hash_table *table = t->hash ? t->hash->hh.tbl : NULL;

    return table ? ((const struct handle *)(const void *)((const char *)table->tail - table->hho))->obj : NULL;
}

void handles_each(const struct handles *t, void (*fn)(void *obj, void *ctx), void *ctx)
{
    for (const struct handle *h = t->hash; h; h = h->hh.next)
        fn(h->obj, ctx);
}

void handles_walk_begin(struct handles *t)
{
    t->walk = t->hash;
}

void *handles_walk_next(struct handles *t)
{
    struct handle *h = t->walk;

    if (!h)
        return NULL;
    t->walk = h->hh.next;
    return h->obj;
}
