// SPDX-License-Identifier: BSD-2-Clause
#include "tests/tagmpi/plan.h"

#include <string.h>

#include "examples/tagmpi/tagmpi.h"

uint64_t plan_random(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t x =
        seed * UINT64_C(0x9E3779B97F4A7C15) + a * UINT64_C(0xBF58476D1CE4E5B9) + b * UINT64_C(0x94D049BB133111EB);

    for (int i = 0; i < 2; i++) {
        x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
        x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
        x ^= x >> 31;
    }
    return x;
}

/* From low to high, both included. */
static uint32_t between(uint64_t r, uint32_t low, uint32_t high)
{
    return low + (uint32_t)(r % (high - low + 1));
}

static uint32_t small_size(unsigned kind, uint64_t r)
{
    if (kind < 15)
        return 0;
    if (kind < 60)
        return between(r, 1, 256);
    if (kind < 90)
        return between(r, 257, TAGMPI_EAGER_MAX);
    if (kind < 95) /* around the limit between eager and rendezvous */
        return between(r, TAGMPI_EAGER_MAX - 2, TAGMPI_EAGER_MAX + 2);
    return between(r, TAGMPI_EAGER_MAX, PLAN_SMALL_MAX);
}

static uint32_t large_size(unsigned kind, uint64_t r)
{
    if (kind < 60)
        return small_size(kind, r);
    if (kind < 95)
        return between(r, TAGMPI_EAGER_MAX, 256 << 10);
    return kind < 99 ? between(r, 256 << 10, PLAN_LARGE_MAX) : PLAN_LARGE_MAX;
}

struct message plan_message(const struct plan *p, unsigned rank, uint32_t number)
{
    uint64_t r = plan_random(p->seed, rank, number), s = plan_random(r, 1, 2);
    struct message m = {
        .to = (uint8_t)(r % p->ranks),
        .tag = (uint8_t)((r >> 8) % PLAN_TAGS),
        .comm = (r >> 16) % 25 == 0,
    };

    m.size = m.comm ? large_size((r >> 32) % 100, s) : small_size((r >> 32) % 100, s);
    return m;
}

/* The content in words of 8 bytes; only the first of them has the number. */
static uint64_t word(uint64_t base, uint64_t at, uint32_t number)
{
    uint64_t w = (base + at) * UINT64_C(0x9E3779B97F4A7C15) ^ base;
    return at > 0 ? w : (w & ~(uint64_t)UINT32_MAX) | number;
}

void plan_fill(const struct plan *p, unsigned rank, uint32_t number, uint8_t *to, size_t size)
{
    uint64_t base = plan_random(p->seed + 1, rank, number);

    for (size_t i = 0; i < size; i += sizeof(base)) {
        uint64_t w = word(base, i / sizeof(base), number);
        memcpy(to + i, &w, size - i < sizeof(w) ? size - i : sizeof(w));
    }
}

bool plan_check(const struct plan *p, unsigned rank, uint32_t number, const uint8_t *got, size_t size, size_t *at)
{
    uint64_t base = plan_random(p->seed + 1, rank, number);

    for (size_t i = 0; i < size; i += sizeof(base)) {
        uint64_t w = word(base, i / sizeof(base), number);
        if (memcmp(got + i, &w, size - i < sizeof(w) ? size - i : sizeof(w)) == 0)
            continue;
        for (*at = i; got[*at] == ((const uint8_t *)&w)[*at - i]; (*at)++)
            continue;
        return false;
    }
    return true;
}
