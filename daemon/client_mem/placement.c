// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/client_mem/placement.h"

#include <sched.h>
#include <stdlib.h>

#include "daemon/base/clock.h"

#define PIECES_PER_WRITE 4u
#define WORD 8u /* pieces begin and end at multiples of it */
/* A pause between the pieces is that long, and up to twice as long. A program that polls memory notices the first pieces
 * meanwhile, also if it shares its processor. */
#define PAUSE_NS (60 * NS_PER_US)

struct piece {
    struct client_write w;
    uint64_t rank; /* pieces come to memory in this order */
};

struct placement {
    struct unkind *unkind;
    struct client_write write[CLIENT_MEM_IOVS]; /* the waiting writes */
    struct piece piece[CLIENT_MEM_IOVS * PIECES_PER_WRITE]; /* those that are placed together */
};

struct placement *placement_new(struct unkind *u)
{
    struct placement *p = malloc(sizeof(*p));

    if (p)
        p->unkind = u;
    return p;
}

void placement_free(struct placement *p)
{
    free(p);
}

static bool overlaps_any(const struct client_write *w, const struct client_write *others, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (w->va < others[i].va + others[i].len && others[i].va < w->va + w->len)
            return true;
    }
    return false;
}

/* Cuts a write at up to three places. Returns the number of pieces. */
static unsigned cut(const struct client_write *w, uint64_t draw, struct piece *out)
{
    unsigned n = 0, cuts = (unsigned)((draw >> 40) % PIECES_PER_WRITE);
    uint64_t from = w->va, end = w->va + w->len;

    for (unsigned i = 0; i <= cuts && from < end; i++) {
        /* Equal parts, moved by up to half of one. */
        uint64_t part = w->len / (cuts + 1);
        uint64_t moved = part ? unkind_mix(draw + i) % part / 2 : 0;
        uint64_t to = i == cuts ? end : (w->va + (i + 1) * part + moved) / WORD * WORD;

        if (to <= from)
            continue;
        if (to > end)
            to = end;
        out[n] = (struct piece){.w = {from, w->src + (from - w->va), to - from, w->owner},
                                .rank = unkind_mix(draw ^ ((uint64_t)n + 1) << 56)};
        n++;
        from = to;
    }
    return n;
}

static int by_rank(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;

    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Writes pieces in the order of the list. */
static void write_out(struct client_mem *s, const struct piece *piece, unsigned n, client_mem_failed *failed, void *ctx)
{
    for (unsigned i = 0; i < n; i++) {
        const struct client_write *w = &piece[i].w;

        if (client_mem_defer(s, w->owner, w->va, w->src, w->len))
            continue;
        client_mem_flush(s, failed, ctx);
        client_mem_defer(s, w->owner, w->va, w->src, w->len);
    }
    client_mem_flush(s, failed, ctx);
}

/* Other programs run meanwhile, if this thread shares its processor with them. */
static void pause_for(uint64_t ns)
{
    uint64_t end = clock_ns() + ns;

    while (clock_ns() < end)
        sched_yield();
}

static void place(struct placement *p, struct client_mem *s, unsigned n, uint64_t draw, client_mem_failed *failed,
                  void *ctx)
{
    unsigned first = n;

    qsort(p->piece, n, sizeof(p->piece[0]), by_rank);
    if (n > 1 && draw % 2) {
        first = 1 + (unsigned)((draw >> 8) % (n - 1));
        p->unkind->counters.unkind_placements++;
    }
    write_out(s, p->piece, first, failed, ctx);
    if (first == n)
        return;
    pause_for(PAUSE_NS + (draw >> 32) % PAUSE_NS);
    write_out(s, p->piece + first, n - first, failed, ctx);
}

void placement_flush(struct placement *p, struct client_mem *s, client_mem_failed *failed, void *ctx)
{
    unsigned writes = client_mem_take(s, p->write), first = 0, n = 0;
    uint64_t draw = 0;

    for (unsigned i = 0; i < writes; i++) {
        const struct client_write *w = &p->write[i];

        if (overlaps_any(w, &p->write[first], i - first)) {
            place(p, s, n, draw, failed, ctx);
            n = 0;
            first = i;
        }
        draw = unkind_next(p->unkind, UNKIND_PLACEMENT, w->owner & ~CLIENT_MEM_ON_DEMAND);
        n += cut(w, draw, &p->piece[n]);
    }
    if (n)
        place(p, s, n, draw, failed, ctx);
}
