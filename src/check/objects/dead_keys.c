// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/objects/dead_keys.h"

#define KEYS 256u

static struct key {
    const struct ibv_context *context; /* NULL: no key */
    uint32_t lkey;
    const struct trace *where;
} dead[KEYS];
static unsigned newest;

static struct key *find(const struct ibv_context *context, uint32_t lkey)
{
    for (unsigned i = 0; i < KEYS; i++) {
        if (dead[i].context == context && dead[i].lkey == lkey)
            return &dead[i];
    }
    return NULL;
}

void dead_keys_add(const struct ibv_context *context, uint32_t lkey, const struct trace *where)
{
    if (find(context, lkey))
        return;
    newest = (newest + 1) % KEYS;
    dead[newest] = (struct key){context, lkey, where};
}

void dead_keys_remove(const struct ibv_context *context, uint32_t lkey)
{
    struct key *k = find(context, lkey);

    if (k)
        *k = (struct key){0};
}

bool dead_keys_has(const struct ibv_context *context, uint32_t lkey, const struct trace **where)
{
    const struct key *k = find(context, lkey);

    if (k)
        *where = k->where;
    return k != NULL;
}
