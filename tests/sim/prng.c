// SPDX-License-Identifier: BSD-2-Clause
#include "tests/sim/prng.h"

#include <string.h>

static uint64_t splitmix(uint64_t *x)
{
    uint64_t z = (*x += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void prng_seed(struct prng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        r->s[i] = splitmix(&seed);
    }
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t prng_next(struct prng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t prng_range(struct prng *r, uint64_t lo, uint64_t hi)
{
    uint64_t span = hi - lo + 1;
    return span == 0 ? prng_next(r) : lo + prng_next(r) % span;
}

bool prng_chance(struct prng *r, uint32_t per_mille)
{
    return prng_next(r) % 1000 < per_mille;
}

void prng_fill(struct prng *r, void *p, size_t len)
{
    uint8_t *b = p;
    while (len > 0) {
        uint64_t v = prng_next(r);
        size_t n = len < sizeof v ? len : sizeof v;
        memcpy(b, &v, n);
        b += n;
        len -= n;
    }
}
