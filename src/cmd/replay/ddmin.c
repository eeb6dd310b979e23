// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/replay/ddmin.h"

#include <stdlib.h>
#include <string.h>

struct search {
    size_t *item; /* known to fail */
    size_t n;
    size_t *candidate; /* n entries */
    bool *unused; /* of the candidate */
    ddmin_test test;
    void *ctx;
};

/* The first item of part i, if the items are divided into so many parts of nearly one size. */
static size_t part_begin(size_t n, size_t parts, size_t i)
{
    return n / parts * i + (i < n % parts ? i : n % parts);
}

/* Tests one part of the items, or all others. If it fails, it becomes the set of items. */
static enum ddmin_result try_part(struct search *s, size_t parts, size_t i, bool others)
{
    size_t begin = part_begin(s->n, parts, i), end = part_begin(s->n, parts, i + 1), n = 0, kept = 0;

    for (size_t j = 0; j < s->n; j++)
        if ((j >= begin && j < end) != others)
            s->candidate[n++] = s->item[j];
    memset(s->unused, 0, n * sizeof(*s->unused));

    enum ddmin_result result = s->test(s->ctx, s->candidate, n, s->unused);
    if (result != DDMIN_FAILS)
        return result;
    for (size_t j = 0; j < n; j++)
        if (!s->unused[j])
            s->item[kept++] = s->candidate[j];
    s->n = kept;
    return result;
}

/* Tries all parts, or what is left without each. */
static enum ddmin_result try_parts(struct search *s, size_t parts, bool others)
{
    for (size_t i = 0; i < parts; i++) {
        enum ddmin_result result = try_part(s, parts, i, others);

        if (result != DDMIN_PASSES)
            return result;
    }
    return DDMIN_PASSES;
}

static void reduce(struct search *s)
{
    size_t parts = 2;

    while (s->n >= 2) {
        enum ddmin_result result = try_parts(s, parts, false);

        if (result == DDMIN_FAILS) {
            parts = 2;
            continue;
        }
        /* With two parts, the rest without one of them is the other, which was tried already. */
        if (result == DDMIN_PASSES && parts > 2)
            result = try_parts(s, parts, true);
        if (result == DDMIN_FAILS) {
            parts = parts - 1;
        } else if (result == DDMIN_STOP || parts == s->n) {
            return;
        } else {
            parts = 2 * parts;
        }
        if (parts > s->n)
            parts = s->n;
        if (parts < 2)
            parts = 2;
    }
}

size_t ddmin(size_t *item, size_t n, ddmin_test test, void *ctx)
{
    struct search s = {item, n, malloc((n + 1) * sizeof(*item)), malloc(n + 1), test, ctx};

    if (s.candidate && s.unused)
        reduce(&s);
    free(s.candidate);
    free(s.unused);
    return s.n;
}
