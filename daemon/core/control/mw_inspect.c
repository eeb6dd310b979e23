// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/control/mw_inspect.h"

#include "daemon/core/memory/mw.h"
#include "daemon/core/memory/sge_iter.h"
#include "daemon/core/qp/engine_state.h"

#define CHUNK (1u << 30) /* bytes of one iterator, which counts them in 32 bits */
#define STEPS 64u /* the most steps for each piece in the output */

bool mw_view(const struct engine *e, uint32_t key, struct mw_view *out)
{
    const struct mkey *k = mw_find(&e->keys, key);
    if (!k)
        return false;
    *out = (struct mw_view){.key = key_of(&e->keys, k),
                            .pd = k->init.pd,
                            .type = k->kind == KEY_WINDOW_1 ? MW_TYPE_1 : MW_TYPE_2,
                            .bound = k->mw.region != 0};
    if (!out->bound)
        return true;
    out->qpn = k->kind == KEY_WINDOW_2 ? k->mw.qpn : 0;
    out->access = k->init.access;
    out->start = k->init.iova;
    out->length = k->init.length;
    out->depth = k->depth;
    if (k->depth)
        out->layout = &k->shape->layout;
    else
        out->region = key_of(&e->keys, &e->keys.entry[k->mw.region]);
    return true;
}

enum mw_object mw_object(const struct engine *e, const struct layout_entry *entry)
{
    const struct mkey *k = key_object(&e->keys, entry);
    return !k ? MW_OBJECT_GONE : k->kind == KEY_REGION ? MW_OBJECT_REGION : MW_OBJECT_WINDOW;
}

/* Describes the iterator's newest piece and its path. */
static struct mw_segment found(const struct engine *e, const struct mkey *window, const struct sge_iter *s,
                               const struct mem_segment *p)
{
    const struct layout_walk *w = &s->walk;
    struct mw_segment out = {.va = p->va, .len = p->len, .depth = window->depth ? w->depth : 0};
    if (out.depth == 0) {
        out.object = key_of(&e->keys, window);
        return out;
    }
    for (uint32_t i = 0; i < out.depth; i++)
        out.path[i] = w->path[i];
    out.object = w->level[out.depth - 1].l->entry[out.path[out.depth - 1]].object;
    return out;
}

static bool joins(const struct mw_segment *a, const struct mw_segment *b)
{
    bool same = a->object == b->object && a->va + a->len == b->va && a->depth == b->depth;
    for (uint32_t i = 0; same && i < a->depth; i++)
        same = a->path[i] == b->path[i];
    return same;
}

enum mw_explained mw_explain(const struct engine *e, uint32_t key, uint64_t off, uint64_t len, struct mw_segment *out,
                             unsigned max, unsigned *n)
{
    const struct mkey *k = mw_find(&e->keys, key);
    *n = 0;
    if (!k || k->mw.region == 0)
        return MW_REFUSED;
    uint32_t qpn = k->kind == KEY_WINDOW_2 ? k->mw.qpn : 0;
    uint64_t steps = (uint64_t)STEPS * max;
    while (len) {
        uint32_t part = len < CHUNK ? (uint32_t)len : CHUNK;
        struct sge_iter s;
        struct mem_segment p;
        int result;
        sge_iter_remote(&s, &e->keys, k->init.pd, qpn, key_of(&e->keys, k), off, part, 0);
        while ((result = sge_iter_segments(&s, &p, 1)) > 0) {
            struct mw_segment now = found(e, k, &s, &p);
            if (steps-- == 0)
                return MW_MORE;
            if (*n && joins(&out[*n - 1], &now))
                out[*n - 1].len += now.len;
            else if (*n == max)
                return MW_MORE;
            else
                out[(*n)++] = now;
        }
        if (result < 0)
            return MW_REFUSED;
        off += part;
        len -= part;
    }
    return MW_EXPLAINED;
}
