// SPDX-License-Identifier: BSD-2-Clause
/* libFuzzer target: a client's description of a layout, as the daemon copies it from the client's memory, and its use
 * by the engine. The input is several descriptions, each of which may use windows over earlier ones, and ranges to
 * access. An accepted layout must never lead outside of an object that it names. It gives exactly the requested
 * bytes, makes progress with each step, and agrees with docs/layouts.md. */
#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/objects/qp/bound_layouts.h"
#include "tests/unit/daemon/daemon_fixture.h"

enum {
    WINDOWS = 10 /* more than may be nested */,
    ENTRIES = 16,
    REGIONS = 3,
    FIRST_WINDOW = 1000,
    PD = 1,
    STEPS_MAX = 2000
};

static const struct {
    uint64_t start, length;
} regions[REGIONS] = {{0x10000, 4096}, {0, 1ull << 40}, {1ull << 63, (1ull << 63) - 1}};

static const struct layout_limits limits = {
    .caps = LAYOUT_CAP_ALL, .max_entries = ENTRIES, .max_dims = LAYOUT_MAX_DIMS, .max_depth = LAYOUT_MAX_DEPTH};

struct window {
    struct layout_desc d;
    struct layout l;
    struct layout_entry_desc desc[ENTRIES];
    struct layout_entry entry[ENTRIES];
    uint8_t depth;
};
static struct window windows[WINDOWS];
static unsigned bound;

/* The contents of the client's memory, with room for one entry more than a window takes. */
static uint64_t client_memory[(sizeof(struct pm_layout) + (ENTRIES + 1) * sizeof(struct pm_layout_entry)) / 8];
static struct pm_layout *const client = (struct pm_layout *)(void *)client_memory;

static struct client_qp *client_qp;

static void must(bool condition)
{
    if (!condition)
        abort();
}

/* --- the input --------------------------------------------------------------------------------- */

struct input {
    const uint8_t *p;
    size_t len;
};

static uint64_t take(struct input *in, unsigned bytes)
{
    uint64_t v = 0;

    while (bytes-- && in->len) {
        v = v << 8 | *in->p++;
        in->len--;
    }
    return v;
}

/* Mostly small ones, so that descriptions are accepted; but any. */
static uint64_t take_value(struct input *in)
{
    switch (take(in, 1) % 8) {
    case 4:
        return take(in, 2);
    case 5:
        return (1ull << take(in, 1) % 64) - 1;
    case 6:
        return 1ull << take(in, 1) % 64;
    case 7:
        return take(in, 8);
    default:
        return 1 + take(in, 1) % 16;
    }
}

static void take_entry(struct input *in, struct pm_layout_entry *e, uint32_t type)
{
    uint8_t what = (uint8_t)take(in, 1), object = (uint8_t)take(in, 1);

    memset(e, 0, sizeof(*e));
    e->key = object & 1 ? FIRST_WINDOW + object / 2 % WINDOWS : object / 2 % (REGIONS + (what & 64 ? 1 : 0));
    e->addr = take_value(in) + (e->key < REGIONS ? regions[e->key].start : 0);
    e->length = take_value(in);
    if (type == LAYOUT_COMPOSITE && !(what & 128))
        return;
    e->repeat = take_value(in);
    e->ndim = what & 32 ? (uint32_t)take_value(in) : 1 + what % 4;
    for (uint32_t d = 0; d < e->ndim && d < PM_LAYOUT_DIMS; d++) {
        e->dim[d].stride = take_value(in);
        e->dim[d].count = take_value(in);
    }
}

/* --- the daemon's copy ------------------------------------------------------------------------- */

/* Returns whether the daemon has taken the description, which is then in w. */
static bool take_layout(struct input *in, struct window *w)
{
    uint8_t what = (uint8_t)take(in, 1);
    uint32_t count = 1 + what % (ENTRIES + 1);
    struct mw_bind bind = {.access = PM_BIND_LAYOUT | 7, .addr = (uintptr_t)client};

    client->type = (uint32_t)take(in, 1) % 16;
    client->count = count;
    client->type = client->type == 15 ? 2 : client->type % 2;
    for (uint32_t i = 0; i < count; i++)
        take_entry(in, &client->entry[i], client->type);
    bind.length = sizeof(struct pm_layout) + count * sizeof(struct pm_layout_entry);
    if (what == 255)
        client->count = (uint32_t)take_value(in);
    if (what == 254)
        bind.length = take_value(in);
    if (what == 253)
        bind.addr = take_value(in) % 4096; /* nothing is there */
    enum layouts_verdict verdict = layouts_take(client_qp, &bind);
    if (verdict != LAYOUTS_OK) {
        must(verdict == LAYOUTS_BAD && what >= 253 && client_qp->session->layout_entries == 0 && !bind.layout);
        return false;
    }
    const struct layout_desc *d = bind.layout;
    must(d->count >= 1 && d->count == client->count && d->count <= ENTRIES + 1);
    must(d->type == client->type && !(bind.access & PM_BIND_LAYOUT));
    must(memcmp(d->entry, client->entry, d->count * sizeof(*d->entry)) == 0);
    must(client_qp->session->layout_entries == d->count);
    w->d = (struct layout_desc){.type = d->type, .count = d->count, .entry = w->desc};
    memcpy(w->desc, d->entry, (d->count < ENTRIES ? d->count : ENTRIES) * sizeof(*d->entry));
    layouts_put_back(client_qp);
    must(client_qp->session->layout_entries == 0);
    return true;
}

/* --- binding ----------------------------------------------------------------------------------- */

static struct layout_object object_of(uint32_t key)
{
    struct layout_object o = {.kind = LAYOUT_NO_OBJECT, .pd = PD, .grants = 7, .may_bind = true, .bound = true};

    if (key < REGIONS) {
        o.kind = LAYOUT_MR;
        o.start = regions[key].start;
        o.length = regions[key].length;
    } else if (key >= FIRST_WINDOW && key - FIRST_WINDOW < WINDOWS) {
        o.kind = LAYOUT_MW;
        o.self = key - FIRST_WINDOW == bound;
        o.bound = key - FIRST_WINDOW < bound;
        if (o.bound) {
            o.depth = windows[key - FIRST_WINDOW].depth;
            o.length = windows[key - FIRST_WINDOW].l.total;
        }
    }
    return o;
}

static bool bind_window(struct window *w)
{
    uint64_t total = 0;
    uint32_t where = 0;
    enum layout_error err = layout_check(&w->d, &limits, &where, &total);

    w->depth = 0;
    must(err < LAYOUT_NUM_ERRORS && where <= w->d.count);
    for (uint32_t i = 0; !err && i < w->d.count; i++) {
        struct layout_object o = object_of(w->desc[i].object);
        err = layout_check_object(&w->desc[i], &o, &limits, PD, 7, &w->depth);
    }
    if (err)
        return false;
    must(w->depth >= 1 && w->depth <= LAYOUT_MAX_DEPTH && total > 0 && total <= LAYOUT_MAX_TOTAL);
    layout_bind(&w->l, w->entry, &w->d);
    must(w->l.total == total);
    return true;
}

/* --- the definition ---------------------------------------------------------------------------- */

typedef unsigned __int128 wide;

static wide items_of(const struct layout_entry_desc *e)
{
    wide n = 1;

    for (uint32_t d = 0; d < e->ndim; d++)
        n *= e->dim[d].count;
    return n;
}

/* Items of an entry in the rounds before this one. */
static wide items_before(const struct layout_entry_desc *e, wide round)
{
    wide n = items_of(e), given = round * (e->repeat ? e->repeat : 1);

    return given < n ? given : n;
}

static wide bytes_before(const struct layout_desc *d, wide round)
{
    wide sum = 0;

    for (uint32_t i = 0; i < d->count; i++)
        sum += items_before(&d->entry[i], round) * d->entry[i].length;
    return sum;
}

static uint64_t address_of(const struct layout_entry_desc *e, wide k)
{
    uint64_t addr = e->addr;

    for (uint32_t d = 0; d < e->ndim; d++) {
        addr += (uint64_t)(k % e->dim[d].count) * e->dim[d].stride;
        k /= e->dim[d].count;
    }
    return addr;
}

/* Is the byte at this offset at that address of that entry? */
static bool is_at(const struct layout_desc *d, wide off, uint32_t entry, uint64_t addr)
{
    wide low = 0, high = (wide)1 << 63; /* the round is in [low, high): each has a byte at least */

    while (high - low > 1) {
        wide middle = (low + high) / 2;
        if (bytes_before(d, middle) <= off)
            low = middle;
        else
            high = middle;
    }
    off -= bytes_before(d, low);
    for (uint32_t i = 0; i < d->count; i++) {
        const struct layout_entry_desc *e = &d->entry[i];
        wide first = items_before(e, low), bytes = (items_before(e, low + 1) - first) * e->length;
        if (off < bytes)
            return i == entry && address_of(e, first + off / e->length) + (uint64_t)(off % e->length) == addr;
        off -= bytes;
    }
    return false;
}

/* --- accesses ---------------------------------------------------------------------------------- */

/* The segments of one layout, with any kinds of objects. */
static void check_segments(const struct window *w, uint64_t off, uint64_t len)
{
    struct layout_cursor c;
    struct layout_segment p;
    struct layout_span span;
    bool seen[ENTRIES] = {0};
    uint64_t done = 0;
    unsigned steps = 0;

    must(layout_seek(&c, &w->l, off, len));
    if (len)
        layout_span(&span, &w->l, off, len);
    while (steps++ < 64 && layout_next(&c, &p)) {
        must(p.len > 0 && p.len <= len - done && p.entry < w->d.count && p.object == w->desc[p.entry].object);
        must(is_at(&w->d, (wide)off + done, p.entry, p.addr));
        must(is_at(&w->d, (wide)off + done + p.len - 1, p.entry, p.addr + p.len - 1));
        must(layout_span_has(&span, p.entry));
        seen[p.entry] = true;
        done += p.len;
    }
    if (steps > 64)
        return;
    must(done == len);
    for (uint32_t i = 0; len && i < w->d.count; i++)
        must(layout_span_has(&span, i) == seen[i]);
}

/* All the way down to the regions. */
static void check_walk(const struct window *w, uint64_t off, uint64_t len)
{
    struct layout_walk walk;
    struct layout_segment p;
    const struct layout *l;
    uint64_t done = 0;
    unsigned steps = 0, down = 0;

    layout_walk_init(&walk);
    must(layout_walk_push(&walk, &w->l, off, len));
    while (steps++ < STEPS_MAX && (l = layout_walk_next(&walk, &p)) != NULL) {
        must(p.len > 0 && p.entry < l->count);
        if (p.object >= FIRST_WINDOW) {
            must(++down < w->depth && layout_walk_push(&walk, &windows[p.object - FIRST_WINDOW].l, p.addr, p.len));
            continue;
        }
        uint64_t at = p.addr - regions[p.object].start;
        must(p.addr >= regions[p.object].start && p.len <= regions[p.object].length);
        must(at <= regions[p.object].length - p.len && p.len <= len - done);
        done += p.len;
        down = 0;
    }
    if (steps <= STEPS_MAX)
        must(done == len && layout_walk_done(&walk));
}

static void access_window(struct input *in, const struct window *w)
{
    uint64_t total = w->l.total, off = take_value(in), len = take_value(in), mix = off ^ len;
    struct layout_cursor c;

    if (off > total || len > total - off)
        must(!layout_seek(&c, &w->l, off, len));
    for (unsigned i = 0; i < 8; i++) { /* and others all over it: what an input has is short */
        off %= total;
        len %= total - off + 1;
        check_segments(w, off, len);
        check_walk(w, off, len);
        mix = (mix + i + 1) * 0x9e3779b97f4a7c15;
        off = mix ^ mix >> 29;
        len = i % 2 ? mix >> 17 : mix >> 56;
    }
}

/* One client for all inputs: each leaves it as it was. */
static void start(void)
{
    static struct fixture f;
    struct fixture_cq cq;
    struct fixture_qp qp;
    struct session *s = NULL;

    log_set_level(LOG_LEVEL_ERROR);
    must(fixture_start(&f) && (s = fixture_session(&f)) != NULL);
    uint32_t pd = fixture_pd(&f, s);
    must(fixture_cq(&f, s, 16, 0, &cq) == 0 && fixture_qp(&f, s, pd, cq.rep.handle, 8, &qp) == 0);
    must((client_qp = client_qp_find(s, qp.rep.qpn)) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct input in = {data, len};

    if (!client_qp)
        start();
    bound = 0;
    for (unsigned i = 0; in.len && i < 2 * WINDOWS && bound < WINDOWS; i++) {
        struct window *w = &windows[bound];
        if (take_layout(&in, w) && bind_window(w)) {
            bound++;
            access_window(&in, w);
        }
    }
    return 0;
}
