// SPDX-License-Identifier: BSD-2-Clause
/* Layouts: checking and binding, seeking and stepping. */
#include "daemon/core/memory/layout.h"

#include <assert.h>
#include <string.h>

const char *layout_error_text(enum layout_error error)
{
    static const char *const text[] = {[LAYOUT_OK] = "no error",
#define X(name, words) [name] = words,
                                       LAYOUT_ERRORS(X)
#undef X
    };
    return error < LAYOUT_NUM_ERRORS ? text[error] : "unknown error";
}

/* --- arithmetic that notices its overflow: true if the result fits ---------------------------- */

static bool add(uint64_t *sum, uint64_t a)
{
    return !__builtin_add_overflow(*sum, a, sum);
}

static bool multiply(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* --- checking --------------------------------------------------------------------------------- */

static bool count_items(const struct layout_entry_desc *e, uint64_t *items)
{
    *items = 1;
    for (uint32_t d = 0; d < e->ndim; d++)
        if (!multiply(*items, e->dim[d].count, items))
            return false;
    return true;
}

/* Computes the end of the item that is farthest from the first one: one past its last byte. */
static bool find_end(const struct layout_entry_desc *e, uint64_t *end)
{
    *end = e->addr;
    for (uint32_t d = 0; d < e->ndim; d++) {
        uint64_t reach;
        if (!multiply(e->dim[d].count - 1, e->dim[d].stride, &reach) || !add(end, reach))
            return false;
    }
    return add(end, e->length);
}

static enum layout_error check_pattern(const struct layout_entry_desc *e, const struct layout_limits *limits)
{
    if (e->ndim == 0)
        return LAYOUT_E_MIXED_PLAIN;
    if (e->ndim > limits->max_dims || e->ndim > LAYOUT_MAX_DIMS)
        return LAYOUT_E_DIMS;
    if (e->repeat == 0)
        return LAYOUT_E_REPEAT;
    for (uint32_t d = 0; d < e->ndim; d++)
        if (e->dim[d].count == 0)
            return LAYOUT_E_COUNT;
    return LAYOUT_OK;
}

/* Checks one entry by itself. *bytes receives the bytes that it adds to the layout. */
static enum layout_error check_entry(const struct layout_entry_desc *e, uint32_t type,
                                     const struct layout_limits *limits, uint64_t *bytes)
{
    if (e->length == 0)
        return LAYOUT_E_LENGTH;
    if (type == LAYOUT_COMPOSITE) {
        if (e->ndim != 0)
            return LAYOUT_E_MIXED_STRIDED;
        if (e->repeat > 1)
            return LAYOUT_E_MIXED_REPEAT;
    } else {
        enum layout_error err = check_pattern(e, limits);
        if (err)
            return err;
    }
    uint64_t items, end;
    if (!count_items(e, &items))
        return LAYOUT_E_ITEMS;
    if (!multiply(items, e->length, bytes))
        return LAYOUT_E_BYTES;
    if (!find_end(e, &end))
        return LAYOUT_E_SPAN;
    return LAYOUT_OK;
}

static enum layout_error check_whole(const struct layout_desc *d, const struct layout_limits *limits)
{
    if (d->type != LAYOUT_COMPOSITE && d->type != LAYOUT_INTERLEAVED)
        return LAYOUT_E_TYPE;
    if (d->type == LAYOUT_COMPOSITE && !(limits->caps & LAYOUT_CAP_COMPOSITE))
        return LAYOUT_E_CAP_COMPOSITE;
    if (d->type == LAYOUT_INTERLEAVED && !(limits->caps & LAYOUT_CAP_INTERLEAVED))
        return LAYOUT_E_CAP_INTERLEAVED;
    if (d->count == 0)
        return LAYOUT_E_NO_ENTRIES;
    if (d->count > limits->max_entries || d->count > LAYOUT_MAX_ENTRIES)
        return LAYOUT_E_ENTRIES;
    return LAYOUT_OK;
}

/* Checks entry e against the first entry. For interleaved layouts only. */
static enum layout_error check_turns(const struct layout_entry_desc *e, const struct layout_entry_desc *first,
                                     uint32_t caps)
{
    if (e->repeat != first->repeat) {
        if (!(caps & LAYOUT_CAP_NONUNIFORM_REPETITION))
            return LAYOUT_E_CAP_NU_REPEAT;
    } else if (e->repeat > 1 && !(caps & (LAYOUT_CAP_REPETITION | LAYOUT_CAP_NONUNIFORM_REPETITION))) {
        return LAYOUT_E_CAP_REPETITION;
    }
    uint64_t items, first_items;
    if (caps & LAYOUT_CAP_NONUNIFORM_TOTAL || !count_items(e, &items) || !count_items(first, &first_items))
        return LAYOUT_OK;
    if (items % e->repeat || items / e->repeat != first_items / first->repeat)
        return LAYOUT_E_CAP_NU_TOTAL;
    return LAYOUT_OK;
}

enum layout_error layout_check(const struct layout_desc *d, const struct layout_limits *limits, uint32_t *where,
                               uint64_t *total)
{
    uint32_t i = 0;
    uint64_t sum = 0, bytes;
    enum layout_error err = check_whole(d, limits);
    for (; !err && i < d->count; i++) {
        err = check_entry(&d->entry[i], d->type, limits, &bytes);
        if (!err && (!add(&sum, bytes) || sum > LAYOUT_MAX_TOTAL))
            err = LAYOUT_E_TOTAL;
        if (!err && d->type == LAYOUT_INTERLEAVED)
            err = check_turns(&d->entry[i], &d->entry[0], limits->caps);
        if (err)
            break;
    }
    if (err && where)
        *where = i;
    if (!err && total)
        *total = sum;
    return err;
}

enum layout_error layout_check_object(const struct layout_entry_desc *e, const struct layout_object *o,
                                      const struct layout_limits *limits, uint32_t pd, uint32_t access, uint8_t *depth)
{
    if (o->kind != LAYOUT_MR && o->kind != LAYOUT_MW)
        return LAYOUT_E_OBJECT;
    if (o->pd != pd)
        return LAYOUT_E_PD;
    if (o->kind == LAYOUT_MW) {
        if (o->self)
            return LAYOUT_E_SELF;
        if (!o->bound)
            return LAYOUT_E_UNBOUND;
    }
    if (o->depth >= limits->max_depth || o->depth >= LAYOUT_MAX_DEPTH)
        return LAYOUT_E_DEPTH;
    if (o->kind == LAYOUT_MR && !o->may_bind)
        return LAYOUT_E_NOT_BINDABLE;
    if (access & ~o->grants)
        return o->kind == LAYOUT_MR ? LAYOUT_E_MR_ACCESS : LAYOUT_E_MW_ACCESS;
    uint64_t end;
    if (!find_end(e, &end))
        return LAYOUT_E_SPAN;
    /* addr - start wraps to a huge number if addr is before the start. */
    uint64_t off = e->addr - o->start;
    if (off > o->length || end - e->addr > o->length - off)
        return LAYOUT_E_OUTSIDE;
    if (*depth < o->depth + 1)
        *depth = (uint8_t)(o->depth + 1);
    return LAYOUT_OK;
}

/* --- binding ---------------------------------------------------------------------------------- */

/* Copies the dimensions except those of count 1. Joins two neighbours if the outer one continues where the inner one
 * ends. So a contiguous block is recognized whatever the number of dimensions in its description. */
static void copy_dims(struct layout_entry *e, const struct layout_entry_desc *d)
{
    e->ndim = 0;
    for (uint32_t i = 0; i < d->ndim; i++) {
        struct layout_dim *inner = e->ndim ? &e->dim[e->ndim - 1] : NULL;
        uint64_t reach;
        if (d->dim[i].count == 1)
            continue;
        if (inner && multiply(inner->stride, inner->count, &reach) && reach == d->dim[i].stride)
            inner->count *= d->dim[i].count;
        else
            e->dim[e->ndim++] = d->dim[i];
    }
}

static void bind_entry(struct layout_entry *e, const struct layout_entry_desc *d, bool alone)
{
    uint64_t items;
    bool fits = count_items(d, &items);
    assert(fits); /* layout_check has checked it */
    (void)fits;
    *e = (struct layout_entry){.object = d->object, .addr = d->addr, .length = d->length, .items = items};
    copy_dims(e, d);
    /* A `repeat` above the number of items means all items. If there is only one entry, every `repeat` means all items.
     * A composite layout is a single round with one item for each entry. */
    e->repeat = alone || d->repeat > items ? items : d->repeat ? d->repeat : 1;
    e->full = items / e->repeat;
    e->rest = items % e->repeat;
}

/* Does entry a end before entry b? */
static bool earlier(const struct layout_entry *entries, uint32_t a, uint32_t b)
{
    return entries[a].full != entries[b].full ? entries[a].full < entries[b].full : a < b;
}

static void sift(struct layout_entry *e, uint32_t root, uint32_t count)
{
    for (;;) {
        uint32_t child = 2 * root + 1;
        if (child >= count)
            return;
        if (child + 1 < count && earlier(e, e[child].nth, e[child + 1].nth))
            child++;
        if (!earlier(e, e[root].nth, e[child].nth))
            return;
        uint32_t swap = e[root].nth;
        e[root].nth = e[child].nth;
        e[child].nth = swap;
        root = child;
    }
}

/* Sorts the entries' numbers into `nth` by the round in which they end (heap sort). */
static void sort_by_end(struct layout_entry *e, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        e[i].nth = i;
    for (uint32_t i = count / 2; i-- > 0;)
        sift(e, i, count);
    for (uint32_t i = count; i-- > 1;) {
        uint32_t swap = e[0].nth;
        e[0].nth = e[i].nth;
        e[i].nth = swap;
        sift(e, 0, i);
    }
}

static uint64_t end_round(const struct layout_entry *e)
{
    return e->full + (e->rest != 0);
}

/* Prepares seeking for entries that end in different rounds. Between two such rounds, all rounds are equal. No sum
 * here exceeds the total. */
static void find_phases(struct layout *l)
{
    struct layout_entry *e = l->entry;
    uint64_t done = 0; /* bytes of the entries that ended before */
    uint64_t rate = l->round_bytes;
    sort_by_end(e, l->count);
    for (uint32_t k = 0, next; k < l->count; k = next) {
        uint64_t round = e[e[k].nth].full, before = done + round * rate, rests = 0;
        for (next = k; next < l->count && e[e[next].nth].full == round; next++) {
            const struct layout_entry *out = &e[e[next].nth];
            rate -= out->repeat * out->length;
            rests += out->rest * out->length;
            done += out->items * out->length;
        }
        for (uint32_t i = k; i < next; i++) {
            e[i].round = round;
            e[i].before = before;
            e[i].rests = rests;
            e[i].rate = rate;
        }
    }
    for (uint32_t i = 0; i < l->count; i++) {
        uint64_t *last = &e[i - i % LAYOUT_BLOCK].last;
        if (end_round(&e[i]) > *last)
            *last = end_round(&e[i]);
    }
}

void layout_bind(struct layout *l, struct layout_entry *entries, const struct layout_desc *d)
{
    *l = (struct layout){.entry = entries, .count = d->count, .uniform = true};
    for (uint32_t i = 0; i < d->count; i++) {
        struct layout_entry *e = &entries[i];
        bind_entry(e, &d->entry[i], d->count == 1);
        e->start = l->round_bytes;
        l->round_bytes += e->repeat * e->length;
        l->total += e->items * e->length;
        if (e->rest || e->full != entries[0].full)
            l->uniform = false;
    }
    if (!l->uniform)
        find_phases(l);
}

/* --- seeking ---------------------------------------------------------------------------------- */

/* Number of items that an entry has in a round. */
static uint64_t items_in(const struct layout_entry *e, uint64_t round)
{
    return round < e->full ? e->repeat : round == e->full ? e->rest : 0;
}

static void find_uniform(const struct layout *l, uint64_t off, struct layout_position *p)
{
    p->round = off / l->round_bytes;
    off %= l->round_bytes;
    uint32_t low = 0, high = l->count; /* the entry is in [low, high) */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (l->entry[middle].start <= off)
            low = middle;
        else
            high = middle;
    }
    p->entry = low;
    p->in = off - l->entry[low].start;
}

static void find_nonuniform(const struct layout *l, uint64_t off, struct layout_position *p)
{
    const struct layout_entry *e = l->entry;
    if (off < e[0].before) { /* no entry has ended */
        find_uniform(l, off, p);
        return;
    }
    uint32_t low = 0, high = l->count; /* the last entry to end is in slot [low, high) */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (e[middle].before <= off)
            low = middle;
        else
            high = middle;
    }
    const struct layout_entry *phase = &e[low];
    p->round = phase->round;
    off -= phase->before;
    if (off >= phase->rests + phase->rate) { /* not in the round of the rests, but in a later one */
        off -= phase->rests + phase->rate;
        p->round += 1 + off / phase->rate;
        off %= phase->rate;
    }
    for (p->entry = 0;; p->entry++) {
        uint64_t bytes = items_in(&e[p->entry], p->round) * e[p->entry].length;
        if (off < bytes)
            break;
        off -= bytes;
    }
    p->in = off;
}

/* Finds the position of offset off, which is less than the total. */
static void find(const struct layout *l, uint64_t off, struct layout_position *p)
{
    if (l->uniform)
        find_uniform(l, off, p);
    else
        find_nonuniform(l, off, p);
}

/* Moves the cursor to item k of its entry. */
static void go_to_item(struct layout_cursor *c, uint64_t k)
{
    const struct layout_entry *e = &c->l->entry[c->entry];
    c->place = 0;
    for (uint32_t d = 0; d < e->ndim; d++) {
        bool outermost = d + 1 == e->ndim; /* saves a division, usually the only one */
        c->x[d] = outermost ? k : k % e->dim[d].count;
        c->place += c->x[d] * e->dim[d].stride;
        if (!outermost)
            k /= e->dim[d].count;
    }
}

bool layout_seek(struct layout_cursor *c, const struct layout *l, uint64_t off, uint64_t len)
{
    if (off > l->total || len > l->total - off)
        return false;
    c->l = l;
    c->left = len;
    if (len == 0)
        return true;
    struct layout_position p;
    find(l, off, &p);
    const struct layout_entry *e = &l->entry[p.entry];
    uint64_t item = p.in / e->length;
    c->round = p.round;
    c->entry = p.entry;
    c->group = items_in(e, p.round) - item;
    c->byte = p.in % e->length;
    go_to_item(c, p.round * e->repeat + item);
    return true;
}

/* Number of bytes that entry i has before a position. */
static uint64_t bytes_before(const struct layout *l, uint32_t i, const struct layout_position *p)
{
    const struct layout_entry *e = &l->entry[i];
    uint64_t rounds = p->round + (i < p->entry);
    uint64_t items = rounds <= e->full ? rounds * e->repeat : e->items;
    return items * e->length + (i == p->entry ? p->in : 0);
}

void layout_span(struct layout_span *s, const struct layout *l, uint64_t off, uint64_t len)
{
    s->l = l;
    find(l, off, &s->first);
    find(l, off + len - 1, &s->last);
}

bool layout_span_has(const struct layout_span *s, uint32_t entry)
{
    return s->last.entry == entry || bytes_before(s->l, entry, &s->last) > bytes_before(s->l, entry, &s->first);
}

/* --- stepping --------------------------------------------------------------------------------- */

/* Returns the first entry from i on that has items in this round. l->count: no entry has. */
static uint32_t next_live(const struct layout *l, uint32_t i, uint64_t round)
{
    while (i < l->count && round >= end_round(&l->entry[i]))
        i += i % LAYOUT_BLOCK == 0 && round >= l->entry[i].last ? LAYOUT_BLOCK : 1;
    return i < l->count ? i : l->count;
}

/* Moves the cursor to the next entry's items, in this round or the next one. They exist, because the range ends
 * within the layout. */
static void next_group(struct layout_cursor *c)
{
    const struct layout *l = c->l;
    uint32_t i = c->entry + 1;
    if (!l->uniform)
        i = next_live(l, i, c->round);
    if (i == l->count) {
        c->round++;
        i = l->uniform ? 0 : next_live(l, 0, c->round);
    }
    assert(i < l->count);
    c->entry = i;
    c->group = items_in(&l->entry[i], c->round);
    go_to_item(c, c->round * l->entry[i].repeat);
}

/* Moves the cursor past `items` items of this entry, which lie in one line of dimension 0. */
static void next_item(struct layout_cursor *c, uint64_t items)
{
    const struct layout_entry *e = &c->l->entry[c->entry];
    c->group -= items;
    if (c->group == 0) {
        next_group(c);
        return;
    }
    c->x[0] += items;
    c->place += items * e->dim[0].stride;
    /* d stays below ndim: after the last item the group is empty */
    for (uint32_t d = 0; c->x[d] == e->dim[d].count; d++) {
        c->place -= c->x[d] * e->dim[d].stride; /* the product may wrap, but the difference is right */
        c->x[d] = 0;
        c->x[d + 1]++;
        c->place += e->dim[d + 1].stride;
    }
}

bool layout_next(struct layout_cursor *c, struct layout_segment *out)
{
    if (c->left == 0)
        return false;
    const struct layout_entry *e = &c->l->entry[c->entry];
    uint64_t items = 1;
    if (e->ndim && e->dim[0].stride == e->length) { /* there are no gaps between items */
        items = e->dim[0].count - c->x[0];
        if (items > c->group)
            items = c->group;
    }
    uint64_t len = items * e->length - c->byte;
    out->entry = c->entry;
    out->object = e->object;
    out->addr = e->addr + c->place + c->byte;
    out->len = len < c->left ? len : c->left;
    c->left -= out->len;
    c->byte = 0;
    if (c->left)
        next_item(c, items);
    return true;
}

void layout_walk_init(struct layout_walk *w)
{
    w->depth = 0;
}

bool layout_walk_push(struct layout_walk *w, const struct layout *l, uint64_t off, uint64_t len)
{
    if (w->depth == LAYOUT_MAX_DEPTH || !layout_seek(&w->level[w->depth], l, off, len))
        return false;
    w->depth++;
    return true;
}

bool layout_walk_done(const struct layout_walk *w)
{
    for (uint32_t i = 0; i < w->depth; i++)
        if (w->level[i].left)
            return false;
    return true;
}

const struct layout *layout_walk_next(struct layout_walk *w, struct layout_segment *out)
{
    while (w->depth > 0 && w->level[w->depth - 1].left == 0)
        w->depth--;
    if (w->depth == 0)
        return NULL;
    layout_next(&w->level[w->depth - 1], out);
    w->path[w->depth - 1] = out->entry;
    return w->level[w->depth - 1].l;
}
