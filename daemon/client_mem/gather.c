// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/client_mem/gather.h"

#include <string.h>

/* With larger pages spans are correct, but shorter than they could be. */
static uint64_t page_of(uint64_t va)
{
    return va / CLIENT_MEM_PAGE;
}

static void append(struct iovec *v, unsigned *n, void *p, size_t len)
{
    struct iovec *last = *n ? &v[*n - 1] : NULL;

    if (last && (uint8_t *)last->iov_base + last->iov_len == p)
        last->iov_len += len;
    else
        v[(*n)++] = (struct iovec){p, len};
}

/* Adds a range to both lists. If the new range begins where the last one ends, the two are merged. */
static void add_range(struct gather *g, uint64_t va, uint8_t *to, size_t len)
{
    append(g->local, &g->nlocal, to, len);
    append(g->remote, &g->nremote, (void *)(uintptr_t)va, len);
    g->bytes += len;
}

static void close_span(struct gather *g)
{
    uint64_t len = g->span.hi - g->span.lo;

    if (len == 0)
        return;
    if (g->npicks == g->span.first_pick + 1) { /* a span of one piece needs no second copy */
        add_range(g, g->span.lo, g->pick[--g->npicks].to, len);
    } else {
        add_range(g, g->span.lo, g->stage + g->staged, len);
        for (unsigned i = g->span.first_pick; i < g->npicks; i++)
            g->pick[i].va += g->staged - g->span.lo;
        g->staged += (uint32_t)len;
    }
    g->span.lo = g->span.hi = 0;
}

bool gather_finish(struct gather *g, struct client_mem *s)
{
    bool good = true;

    close_span(g);
    if (g->bytes) {
        enum client_mem_result r = client_mem_read_all(s, g->local, g->nlocal, g->remote, g->nremote, g->bytes);

        good = r != CLIENT_MEM_FAILED;
        g->unmapped |= r == CLIENT_MEM_UNMAPPED;
    }
    for (unsigned i = 0; i < g->npicks && good; i++)
        memcpy(g->pick[i].to, g->stage + g->pick[i].va, g->pick[i].len);
    g->nlocal = g->nremote = g->npicks = 0;
    g->staged = 0;
    g->bytes = 0;
    return good;
}

/* Does the piece start in a page of the span, and is there room for both together? */
static bool joins(const struct gather *g, uint64_t va, size_t len)
{
    uint64_t lo = va < g->span.lo ? va : g->span.lo;
    uint64_t hi = va + len > g->span.hi ? va + len : g->span.hi;

    return g->span.hi > g->span.lo && page_of(va) >= page_of(g->span.lo) && page_of(va) <= page_of(g->span.hi - 1) &&
           hi - lo <= GATHER_STAGE - g->staged;
}

bool gather_add(struct gather *g, struct client_mem *s, uint64_t va, uint8_t *to, size_t len)
{
    bool small = len <= GATHER_SMALL;

    if (len == 0)
        return true;
    if (!small || !joins(g, va, len))
        close_span(g);
    /* One entry of each list stays free for the open span, which needs it when it is closed. */
    if (g->nlocal + 1 >= CLIENT_MEM_IOVS || g->nremote + 1 >= CLIENT_MEM_IOVS || g->npicks == CLIENT_MEM_IOVS ||
        (small && len > GATHER_STAGE - g->staged)) {
        if (!gather_finish(g, s))
            return false;
    }
    if (!small) {
        add_range(g, va, to, len);
        return true;
    }
    if (g->span.lo == g->span.hi) {
        g->span.lo = va;
        g->span.hi = va + len;
        g->span.first_pick = g->npicks;
    } else {
        g->span.lo = va < g->span.lo ? va : g->span.lo;
        g->span.hi = va + len > g->span.hi ? va + len : g->span.hi;
    }
    g->pick[g->npicks++] = (struct gather_pick){va, to, (uint32_t)len};
    return true;
}

/* A position in a list of ranges. */
struct cursor {
    unsigned at;
    size_t skip; /* bytes of range `at` that are done */
};

static void advance(struct cursor *c, size_t len, size_t range_len)
{
    c->skip += len;
    if (c->skip == range_len) {
        c->at++;
        c->skip = 0;
    }
}

enum client_mem_result gather_read(struct gather *g, struct client_mem *s, const struct mem_segment *src, unsigned nsrc,
                                   const struct buf *dst, unsigned ndst)
{
    struct cursor from = {0, 0}, to = {0, 0};
    bool good = true;

    g->unmapped = false;
    while (from.at < nsrc && to.at < ndst && good) {
        size_t left_src = src[from.at].len - from.skip;
        size_t left_dst = dst[to.at].len - to.skip;
        size_t len = left_src < left_dst ? left_src : left_dst;

        good = gather_add(g, s, src[from.at].va + from.skip, dst[to.at].p + to.skip, len);
        advance(&to, len, dst[to.at].len);
        advance(&from, len, src[from.at].len);
    }
    good = gather_finish(g, s) && good;
    return !good ? CLIENT_MEM_FAILED : g->unmapped ? CLIENT_MEM_UNMAPPED : CLIENT_MEM_DONE;
}
