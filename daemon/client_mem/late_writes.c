// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/client_mem/late_writes.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"

#define SLOTS 256u
/* A write is held at least so long, and up to twice as long. */
#define HOLD_NS (500 * NS_PER_US)

struct held {
    struct client_mem *s;
    struct client_write w; /* src: the copy */
};

struct late_writes {
    struct unkind *unkind;
    uint8_t *bytes;
    size_t used; /* of bytes; they are free again when nothing is held */
    uint64_t due;
    unsigned n;
    struct held held[SLOTS]; /* in the order in which they came */
    struct client_write waiting[CLIENT_MEM_IOVS], newer[CLIENT_MEM_IOVS];
};

struct late_writes *late_writes_new(struct unkind *u, uint8_t *bytes)
{
    struct late_writes *l = malloc(sizeof(*l));

    if (!l)
        return NULL;
    l->unkind = u;
    l->bytes = bytes;
    l->used = 0;
    l->n = 0;
    l->due = UINT64_MAX;
    return l;
}

void late_writes_free(struct late_writes *l)
{
    free(l);
}

/* Writes that wait in the client memory are newer, so they must stay behind. */
static void write_out(struct late_writes *l, struct held *h, client_mem_failed *failed, void *ctx)
{
    unsigned newer = client_mem_take(h->s, l->newer);

    client_mem_defer(h->s, h->w.owner, h->w.va, h->w.src, h->w.len);
    client_mem_flush(h->s, failed, ctx);
    for (unsigned i = 0; i < newer; i++)
        client_mem_defer(h->s, l->newer[i].owner, l->newer[i].va, l->newer[i].src, l->newer[i].len);
}

/* s, or else pid: whose writes; both 0: all. */
static void settle(struct late_writes *l, const struct client_mem *s, pid_t pid, client_mem_failed *failed, void *ctx)
{
    unsigned left = 0;

    for (unsigned i = 0; i < l->n; i++) {
        struct held h = l->held[i];

        if ((s && h.s != s) || (pid && h.s->pid != pid))
            l->held[left++] = h;
        else
            write_out(l, &h, failed, ctx);
    }
    l->n = left;
    if (left == 0) {
        l->used = 0;
        l->due = UINT64_MAX;
    }
}

void late_writes_settle(struct late_writes *l, struct client_mem *s, client_mem_failed *failed, void *ctx)
{
    settle(l, s, 0, failed, ctx);
}

void late_writes_settle_process(struct late_writes *l, pid_t pid, client_mem_failed *failed, void *ctx)
{
    settle(l, NULL, pid, failed, ctx);
}

uint64_t late_writes_deadline(const struct late_writes *l)
{
    return l->due;
}

static bool overlaps_held(const struct late_writes *l, const struct client_mem *s, const struct client_write *w)
{
    for (unsigned i = 0; i < l->n; i++) {
        const struct held *h = &l->held[i];

        if (h->s == s && w->va < h->w.va + h->w.len && h->w.va < w->va + w->len)
            return true;
    }
    return false;
}

/* Holds a copy back, or not. */
static bool hold(struct late_writes *l, struct client_mem *s, const struct client_write *w, uint64_t now)
{
    uint64_t draw = unkind_next(l->unkind, UNKIND_VISIBILITY, w->owner & ~CLIENT_MEM_ON_DEMAND);

    if (draw % 2 || l->n == SLOTS || w->len > LATE_WRITES_BYTES - l->used)
        return false;
    struct held *h = &l->held[l->n++];
    *h = (struct held){s, *w};
    h->w.src = memcpy(l->bytes + l->used, w->src, w->len);
    l->used += w->len;
    uint64_t due = now + HOLD_NS + (draw >> 8) % HOLD_NS;
    l->due = due < l->due ? due : l->due;
    l->unkind->counters.unkind_late_writes++;
    return true;
}

void late_writes_hold(struct late_writes *l, struct client_mem *s, uint64_t now, client_mem_failed *failed, void *ctx)
{
    unsigned n = client_mem_take(s, l->waiting);

    for (unsigned i = 0; i < n; i++) {
        const struct client_write *w = &l->waiting[i];

        if (overlaps_held(l, s, w)) {
            client_mem_flush(s, failed, ctx);
            late_writes_settle(l, s, failed, ctx);
        }
        if (!hold(l, s, w, now))
            client_mem_defer(s, w->owner, w->va, w->src, w->len);
    }
}
