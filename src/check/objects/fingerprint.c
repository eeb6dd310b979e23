// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/objects/fingerprint.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* Reads a gather list piece by piece. */
struct gather {
    const struct ibv_sge *sge;
    unsigned n;
    uint32_t at; /* in the first of them */
};

/* The next piece, of at most most bytes. NULL: the end. */
static const uint8_t *next_piece(struct gather *g, uint64_t most, uint32_t *len)
{
    while (g->n && (g->at == g->sge->length || !g->sge->addr)) {
        g->sge++;
        g->n--;
        g->at = 0;
    }
    if (!g->n)
        return NULL;
    const uint8_t *p = (const uint8_t *)(uintptr_t)g->sge->addr + g->at; // NOLINT: an address of the program
    *len = g->sge->length - g->at;
    if (*len > most)
        *len = (uint32_t)most;
    g->at += *len;
    return p;
}

static uint64_t hash_part(struct gather *g, uint64_t left)
{
    uint64_t hash = 0;
    const uint8_t *p;
    uint32_t len;

    while (left && (p = next_piece(g, left, &len))) {
        hash = XXH3_64bits_withSeed(p, len, hash);
        left -= len;
    }
    return hash;
}

static uint64_t length_of(const struct ibv_sge *list, unsigned n)
{
    uint64_t length = 0;

    for (unsigned i = 0; i < n; i++)
        length += list[i].addr ? list[i].length : 0;
    return length;
}

void fingerprint_take(struct fingerprint *f, const struct ibv_sge *list, unsigned n)
{
    struct gather g = {list, n, 0};
    uint64_t length = length_of(list, n), at = 0;
    const uint8_t *p;
    uint32_t len;

    *f = (struct fingerprint){.length = length};
    if (length > FINGERPRINT_COPY)
        f->part = (uint32_t)((length + FINGERPRINT_PARTS - 1) / FINGERPRINT_PARTS);
    f->data = length ? malloc(f->part ? FINGERPRINT_PARTS * sizeof(uint64_t) : length) : NULL;
    if (!f->data) {
        f->length = 0;
        return;
    }
    for (unsigned i = 0; f->part && i < FINGERPRINT_PARTS; i++)
        ((uint64_t *)f->data)[i] = hash_part(&g, f->part);
    for (; !f->part && (p = next_piece(&g, UINT32_MAX, &len)); at += len)
        memcpy((uint8_t *)f->data + at, p, len);
}

static bool copy_matches(const struct fingerprint *f, struct gather *g, uint64_t *from, uint64_t *to)
{
    const uint8_t *before = f->data, *now;
    uint32_t len;

    for (uint64_t at = 0; (now = next_piece(g, UINT32_MAX, &len)); at += len) {
        if (memcmp(before + at, now, len) == 0)
            continue;
        uint32_t i = 0, end = len;
        while (before[at + i] == now[i])
            i++;
        while (before[at + end - 1] == now[end - 1])
            end--;
        *from = at + i;
        *to = at + end;
        return false;
    }
    return true;
}

bool fingerprint_matches(const struct fingerprint *f, const struct ibv_sge *list, unsigned n, uint64_t *from,
                         uint64_t *to)
{
    struct gather g = {list, n, 0};

    if (!f->part)
        return f->length == 0 || copy_matches(f, &g, from, to);
    for (unsigned i = 0; i < FINGERPRINT_PARTS; i++) {
        if (((const uint64_t *)f->data)[i] == hash_part(&g, f->part))
            continue;
        *from = (uint64_t)i * f->part;
        *to = *from + f->part < f->length ? *from + f->part : f->length;
        return false;
    }
    return true;
}

void fingerprint_drop(struct fingerprint *f)
{
    free(f->data);
    *f = (struct fingerprint){0};
}
