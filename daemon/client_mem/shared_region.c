// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/client_mem/shared_region.h"

#include <string.h>

unsigned shared_regions_add(struct shared_regions *t, struct shared_region *r)
{
    if (t->n == SHARED_REGIONS_MAX)
        return 0;
    do
        t->latest = t->latest % SHARED_REGIONS_MAX + 1;
    while (t->region[t->latest]);
    t->region[t->latest] = r;
    t->n++;
    return t->latest;
}

void shared_regions_remove(struct shared_regions *t, unsigned number)
{
    t->region[number] = NULL;
    t->n--;
}

/* The segment's bytes in the daemon. NULL: it is in no region that can be read. */
static const uint8_t *bytes_of(const struct shared_regions *t, unsigned number, const struct mem_segment *s,
                               const struct shared_region **of)
{
    const struct shared_region *r = number ? t->region[number] : NULL;

    *of = r;
    if (!r || atomic_load_explicit(&r->lost, memory_order_relaxed) || s->len > r->length || s->va < r->va ||
        s->va - r->va > r->length - s->len)
        return NULL;
    return r->p + (s->va - r->va);
}

/* A place in the list of destinations. */
struct place {
    const struct buf *at;
    size_t skip; /* bytes of it that are done */
};

static void copy(struct place *to, const uint8_t *from, size_t len)
{
    while (len) {
        size_t n = to->at->len - to->skip;

        if (n > len)
            n = len;
        memcpy(to->at->p + to->skip, from, n);
        from += n;
        len -= n;
        to->skip += n;
        if (to->skip == to->at->len) {
            to->at++;
            to->skip = 0;
        }
    }
}

bool shared_regions_read(const struct shared_regions *t, unsigned (*number_of)(const struct mem_segment *),
                         const struct mem_segment *src, unsigned nsrc, const struct buf *dst, unsigned ndst)
{
    struct place to = {dst, 0};
    const struct shared_region *r;

    (void)ndst; /* both sides have the same length */
    if (t->n == 0)
        return false;
    for (unsigned i = 0; i < nsrc; i++) {
        if (!bytes_of(t, number_of(&src[i]), &src[i], &r))
            return false;
    }
    for (unsigned i = 0; i < nsrc; i++) {
        const uint8_t *from = bytes_of(t, number_of(&src[i]), &src[i], &r);

        if (!from)
            return false; /* an earlier segment of the same region lost it */
        copy(&to, from, src[i].len);
        /* The handler of SIGBUS, which runs in this thread, sets it during the copy. */
        atomic_signal_fence(memory_order_seq_cst);
        if (atomic_load_explicit(&r->lost, memory_order_relaxed))
            return false;
    }
    return true;
}
