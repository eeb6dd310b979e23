// SPDX-License-Identifier: BSD-2-Clause
/* Compares random layouts with flat models of them, and huge ones with the definition. LAYOUT_SEED sets the seed; by
 * default it is the time. A failure prints the seed and the number of the layout. */
#include <criterion/criterion.h>

#include "tests/unit/core/layout_model.h"

#define TREES 3000u

static const struct layout_limits limits = {
    .caps = LAYOUT_CAP_ALL, .max_entries = LAYOUT_MAX_ENTRIES, .max_dims = LAYOUT_MAX_DIMS, .max_depth = 8};

/* --- checking them ----------------------------------------------------------------------------- */

/* Iterates over the pieces of [off, off + len). Returns the number of bytes up to the first wrong one, len if there
 * is none. */
static uint64_t compare(const struct window *w, uint64_t off, uint64_t len)
{
    struct layout_walk walk;
    struct layout_segment p;
    uint64_t done = 0;
    layout_walk_init(&walk);
    if (!layout_walk_push(&walk, &w->l, off, len))
        return UINT64_MAX;
    while (layout_walk_next(&walk, &p)) {
        if (p.object >= FIRST_WINDOW) {
            if (!layout_walk_push(&walk, &tree[p.object - FIRST_WINDOW].l, p.addr, p.len))
                return done;
            continue;
        }
        for (uint64_t i = 0; i < p.len; i++, done++) {
            const struct byte_place *want = &w->model[off + done];
            if (done == len || want->object != p.object || want->addr != p.addr + i)
                return done;
        }
    }
    return done;
}

static void check(struct window *w, uint64_t from, unsigned number)
{
    uint64_t total = 0;
    uint32_t where = 0;
    enum layout_error err = layout_check(&w->d, &limits, &where, &total);
    cr_assert_eq(err, LAYOUT_OK, "LAYOUT_SEED=%lu layout %u entry %u: %s", from, number, where, layout_error_text(err));
    cr_assert_eq(total, w->total, "LAYOUT_SEED=%lu layout %u: total %lu, not %u", from, number, total, w->total);
    layout_bind(&w->l, w->entry, &w->d);
    cr_assert_eq(w->l.total, total);
    for (unsigned i = 0; i < 8; i++) {
        uint64_t off = i == 0 ? 0 : rnd(total), len = i == 0 ? total : rnd(total - off + 1);
        uint64_t right = compare(w, off, len);
        cr_assert_eq(right, len, "LAYOUT_SEED=%lu layout %u: of [%lu, %lu), byte %lu is wrong", from, number, off,
                     off + len, off + right);
        cr_assert_eq(compare(w, off, total - off + 1 + rnd(100)), UINT64_MAX, "LAYOUT_SEED=%lu layout %u", from,
                     number);
    }
}

Test(layout_random, nested_against_a_flat_model)
{
    uint64_t from = seed();
    unsigned uniform = 0, deep = 0, number = 0;
    state = from;
    for (unsigned t = 0; t < TREES; t++) {
        for (unsigned i = 0; i < TREE_LAYOUTS; number++) {
            struct window *w = &tree[i];
            if (!make(w, i))
                continue;
            check(w, from, number);
            uniform += w->l.uniform;
            deep += w->depth > 3;
            i++;
        }
    }
    unsigned all = TREES * TREE_LAYOUTS;
    cr_log_info("%u layouts, %u uniform, %u nested more than 3 deep", all, uniform, deep);
    cr_expect(uniform > all / 4 && uniform < all * 3 / 4 && deep > all / 20, "%u uniform, %u deep of %u", uniform, deep,
              all);
}

/* --- large ones -------------------------------------------------------------------------------- */

static unsigned __int128 least(unsigned __int128 a, unsigned __int128 b)
{
    return a < b ? a : b;
}

/* Returns where item k of entry i begins: the number of bytes before it, by the definition of rounds. */
static uint64_t offset_of(const struct layout_desc *d, uint32_t i, uint64_t k)
{
    const struct layout_entry_desc *e = d->entry;
    uint64_t round = k / e[i].repeat;
    unsigned __int128 sum = (unsigned __int128)(k % e[i].repeat) * e[i].length;
    for (uint32_t j = 0; j < d->count; j++)
        sum += least((unsigned __int128)(round + (j < i)) * e[j].repeat, items_of(&e[j])) * e[j].length;
    return (uint64_t)sum;
}

/* Entries with up to 2^40 items. Each requested item is found at its place, and the next one follows it. */
Test(layout_random, huge_layouts_against_the_inverse_mapping)
{
    uint64_t from = seed();
    state = from;
    for (unsigned number = 0; number < 4000; number++) {
        struct window *w = &tree[0];
        w->d = (struct layout_desc){
            .type = LAYOUT_INTERLEAVED, .count = (uint32_t)(1 + rnd(chance(10) ? MOST_ENTRIES : 6)), .entry = w->desc};
        uint64_t rounds = 1 + rnd(1ull << rnd(33));
        for (uint32_t i = 0; i < w->d.count; i++) {
            struct layout_entry_desc *e = &w->desc[i];
            *e = (struct layout_entry_desc){.object = i, .addr = rnd(1ull << 40), .length = 1 + rnd(1000)};
            e->repeat = 1 + (chance(50) ? rnd(1ull << rnd(20)) : 0);
            e->ndim = 2;
            e->dim[0] =
                (struct layout_dim){.count = chance(50) ? 1 + rnd(5) : 1 + rnd(1ull << 16), .stride = rnd(1000)};
            e->dim[1] = (struct layout_dim){.count = 1 + rnd(1ull << rnd(30)), .stride = rnd(1000000)};
            if (chance(50)) { /* some entries end in the same round */
                e->dim[0].count = e->repeat;
                e->dim[1].count = rounds;
            }
        }
        uint64_t total = 0;
        cr_assert_eq(layout_check(&w->d, &limits, NULL, &total), LAYOUT_OK);
        layout_bind(&w->l, w->entry, &w->d);
        for (unsigned q = 0; q < 20; q++) {
            uint32_t i = (uint32_t)rnd(w->d.count);
            const struct layout_entry_desc *e = &w->desc[i];
            uint64_t n = items_of(e), k = chance(20) ? n - 1 : chance(20) ? 0 : rnd(n), byte = rnd(e->length);
            uint64_t off = offset_of(&w->d, i, k) + byte;
            uint64_t addr = e->addr + k % e->dim[0].count * e->dim[0].stride + k / e->dim[0].count * e->dim[1].stride;
            struct layout_cursor c;
            struct layout_segment p;
            cr_assert(layout_seek(&c, &w->l, off, total - off) && layout_next(&c, &p));
            cr_assert(p.object == i && p.addr == addr + byte, "LAYOUT_SEED=%lu layout %u: item %lu of entry %u", from,
                      number, k, i);
            /* iterating and seeking must give the same next piece */
            for (unsigned s = 0; s < 5 && (off += p.len) < total; s++) {
                struct layout_cursor again;
                struct layout_segment other;
                cr_assert(layout_next(&c, &p));
                cr_assert(layout_seek(&again, &w->l, off, total - off) && layout_next(&again, &other));
                cr_assert(p.entry == other.entry && p.addr == other.addr && p.len == other.len,
                          "LAYOUT_SEED=%lu layout %u: offset %lu", from, number, off);
            }
        }
    }
}
