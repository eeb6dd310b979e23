// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/session/doorbell.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void doorbells_init(struct doorbells *d, struct pm_session_page *page)
{
    *d = (struct doorbells){.page = page, .free = DOORBELL_NONE};
}

void doorbells_fini(struct doorbells *d)
{
    free(d->slot);
    d->slot = NULL;
    d->end = d->cap = 0;
    d->free = DOORBELL_NONE;
}

/* Ensures that there is memory for one more slot at the end. The table grows, because most sessions need few of the
 * PM_DOORBELLS doorbells. */
static bool reserve(struct doorbells *d)
{
    uint32_t cap = d->cap ? 2 * d->cap : 64;
    struct doorbell *more;

    if (d->end < d->cap)
        return true;
    if (cap > PM_DOORBELLS)
        cap = PM_DOORBELLS;
    more = cap > d->cap ? realloc(d->slot, cap * sizeof(*more)) : NULL;
    if (!more)
        return false;
    memset(more + d->cap, 0, (cap - d->cap) * sizeof(*more));
    d->slot = more;
    d->cap = cap;
    return true;
}

int doorbells_take(struct doorbells *d, void (*rang)(void *owner, uint64_t now), void *owner)
{
    uint32_t i = d->free;

    if (i != DOORBELL_NONE)
        d->free = d->slot[i].next_free;
    else if (reserve(d))
        i = d->end++;
    else
        return -ENOSPC;
    d->slot[i] = (struct doorbell){rang, {owner}};
    return (int)i;
}

void doorbells_release(struct doorbells *d, uint32_t doorbell)
{
    d->slot[doorbell] = (struct doorbell){.rang = NULL, .next_free = d->free};
    d->free = doorbell;
}

static unsigned scan_word(struct doorbells *d, unsigned word, uint64_t now)
{
    uint64_t bits = atomic_exchange(&d->page->bits[word], 0);
    unsigned n = 0;

    while (bits) {
        unsigned i = word * 64 + (unsigned)__builtin_ctzll(bits);

        bits &= bits - 1;
        n++;
        if (i < d->end && d->slot[i].rang)
            d->slot[i].rang(d->slot[i].owner, now);
    }
    return n;
}

unsigned doorbells_scan(struct doorbells *d, uint64_t now)
{
    unsigned n = 0;

    for (unsigned i = 0; i * 64 * 64 < d->end; i++) {
        uint64_t words;

        if (atomic_load_explicit(&d->page->summary[i], memory_order_relaxed) == 0)
            continue;
        /* The order is summary, words, tails, each sequentially consistent. The client stores in the opposite order.
         * So if this scan misses a doorbell, the client sets the summary again. */
        words = atomic_exchange(&d->page->summary[i], 0);
        for (; words; words &= words - 1)
            n += scan_word(d, i * 64 + (unsigned)__builtin_ctzll(words), now);
    }
    return n;
}

bool doorbells_pending(const struct doorbells *d)
{
    for (unsigned i = 0; i * 64 * 64 < d->end; i++) {
        if (atomic_load(&d->page->summary[i]) != 0)
            return true;
    }
    return false;
}

void doorbells_set_sleeping(struct doorbells *d, bool sleeping)
{
    /* Sequentially consistent: pairs with the client's load after it has set its doorbell. So either the client sees
     * that the loop sleeps, or the loop's last look sees the doorbell. */
    atomic_store(&d->page->sleeping, sleeping);
}
