// SPDX-License-Identifier: BSD-2-Clause
/* Random layouts (nested, repeated, non-uniform) and a flat model of each. The model follows docs/layouts.md byte by
 * byte. */
#ifndef PUMICE_TESTS_UNIT_CORE_LAYOUT_MODEL_H
#define PUMICE_TESTS_UNIT_CORE_LAYOUT_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/core/memory/layout.h"

#define TREE_LAYOUTS 8u /* each may use the ones before it */
#define REGIONS 3u
#define REGION_BYTES 2048u
#define FIRST_WINDOW 1000u /* object numbers: regions are below it, layouts of the tree start at it */
#define MODEL_BYTES 6000u
#define MOST_ENTRIES 100u

static uint64_t state;

static inline uint64_t rnd(uint64_t below)
{
    state += 0x9e3779b97f4a7c15;
    uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % below;
}
static inline bool chance(unsigned percent)
{
    return rnd(100) < percent;
}

static inline uint64_t seed(void)
{
    const char *s = getenv("LAYOUT_SEED");
    return s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL);
}

/* --- a layout and its model -------------------------------------------------------------------- */

struct byte_place {
    uint32_t object; /* a region */
    uint32_t addr;
};
struct window {
    struct layout_desc d;
    struct layout l;
    struct layout_entry_desc desc[MOST_ENTRIES];
    struct layout_entry entry[MOST_ENTRIES];
    uint8_t depth;
    uint32_t total;
    struct byte_place model[MODEL_BYTES];
};
static struct window tree[TREE_LAYOUTS];

static inline uint64_t items_of(const struct layout_entry_desc *e)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < e->ndim; d++)
        n *= e->dim[d].count;
    return n;
}

/* Appends one item. False: the model is full. */
static inline bool model_item(struct window *w, const struct layout_entry_desc *e, uint64_t k)
{
    uint64_t addr = e->addr;
    for (uint32_t d = 0; d < e->ndim; d++) {
        addr += k % e->dim[d].count * e->dim[d].stride;
        k /= e->dim[d].count;
    }
    for (uint64_t i = 0; i < e->length; i++, w->total++) {
        if (w->total == MODEL_BYTES)
            return false;
        if (e->object >= FIRST_WINDOW)
            w->model[w->total] = tree[e->object - FIRST_WINDOW].model[addr + i];
        else
            w->model[w->total] = (struct byte_place){e->object, (uint32_t)(addr + i)};
    }
    return true;
}

static inline bool model(struct window *w)
{
    bool more = true;
    w->total = 0;
    for (uint64_t round = 0; more; round++) {
        more = false;
        for (uint32_t i = 0; i < w->d.count; i++) {
            const struct layout_entry_desc *e = &w->desc[i];
            uint64_t repeat = e->repeat ? e->repeat : 1;
            for (uint64_t k = round * repeat; k < (round + 1) * repeat && k < items_of(e); k++) {
                more = true;
                if (!model_item(w, e, k))
                    return false;
            }
        }
    }
    return true;
}

/* --- making them ------------------------------------------------------------------------------- */

/* Splits n items over up to 8 dimensions. */
static inline void split(struct layout_entry_desc *e, uint64_t n)
{
    e->ndim = 0;
    while (e->ndim < LAYOUT_MAX_DIMS - 1 && (n > 1 || chance(20))) {
        uint64_t factor = 1 + rnd(n < 6 ? n : 6);
        while (n % factor)
            factor--;
        if (factor == 1 && chance(60))
            break;
        e->dim[e->ndim++].count = factor;
        n /= factor;
    }
    e->dim[e->ndim++].count = n;
}

/* Chooses places for the items within [start, start + size), with gaps, overlaps and patterns that join. */
static inline void place(struct layout_entry_desc *e, uint64_t start, uint64_t size)
{
    uint64_t room = size - e->length, natural = e->length;
    for (uint32_t d = 0; d < e->ndim; d++) {
        struct layout_dim *dim = &e->dim[d];
        uint64_t most = dim->count > 1 ? room / (dim->count - 1) : 1000;
        if (chance(40) && natural <= most)
            dim->stride = natural; /* continues where the inner dimension ends */
        else if (chance(70))
            dim->stride = rnd((most < 4 * e->length ? most : 4 * e->length) + 1);
        else
            dim->stride = rnd(most + 1);
        room -= (dim->count - 1) * dim->stride;
        natural = dim->stride * dim->count;
    }
    e->addr = start + rnd(room + 1);
}

/* Makes a random layout that may use the first `built` layouts of the tree, and its model. False: the layout is too
 * large for the model. */
static inline bool make(struct window *w, unsigned built)
{
    bool composite = chance(20), uniform = chance(50), many = chance(5);
    uint64_t rounds = 1 + rnd(8);
    memset(&w->d, 0, sizeof(w->d));
    w->d.type = composite ? LAYOUT_COMPOSITE : LAYOUT_INTERLEAVED;
    w->d.count = (uint32_t)(many ? 1 + rnd(MOST_ENTRIES) : 1 + rnd(5));
    w->d.entry = w->desc;
    for (uint32_t i = 0; i < w->d.count; i++) {
        struct layout_entry_desc *e = &w->desc[i];
        uint64_t start = 64 * rnd(4), size = REGION_BYTES - start;
        *e = (struct layout_entry_desc){.object = (uint32_t)rnd(REGIONS)};
        if (built && chance(60)) {
            uint64_t inner = chance(60) ? built - 1 : rnd(built);
            e->object = FIRST_WINDOW + (uint32_t)inner;
            start = 0;
            size = tree[inner].total;
        }
        e->length = 1 + rnd(size < 12 ? size : 12);
        if (!composite) {
            e->repeat = 1 + (chance(50) ? rnd(4) : 0);
            split(e, uniform ? rounds * e->repeat : 1 + rnd(many ? 4 : 40));
        } else if (chance(50)) {
            e->repeat = 1;
        }
        place(e, start, size);
    }
    w->depth = 1;
    for (uint32_t k = 0; k < w->d.count; k++)
        if (w->desc[k].object >= FIRST_WINDOW && tree[w->desc[k].object - FIRST_WINDOW].depth >= w->depth)
            w->depth = (uint8_t)(tree[w->desc[k].object - FIRST_WINDOW].depth + 1);
    return model(w);
}

#endif
