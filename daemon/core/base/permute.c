// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/base/permute.h"

static uint64_t rotate(uint64_t v, unsigned n)
{
    return v << n | v >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

/* SipHash-2-4 of one word, without the block that holds the length of longer messages. */
static uint64_t hash(const struct permute_secret *s, uint64_t m)
{
    uint64_t v[4] = {s->word[0] ^ 0x736f6d6570736575u, s->word[1] ^ 0x646f72616e646f6du,
                     s->word[0] ^ 0x6c7967656e657261u, s->word[1] ^ 0x7465646279746573u};
    v[3] ^= m;
    sip_round(v);
    sip_round(v);
    v[0] ^= m;
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* A Feistel network of four rounds over two halves of `half` bits. */
static uint32_t feistel(const struct permute_secret *s, uint32_t tweak, unsigned half, uint32_t n)
{
    uint32_t mask = (1u << half) - 1, left = n >> half, right = n & mask;
    for (uint64_t round = 0; round < 4; round++) {
        uint32_t mixed = left ^ ((uint32_t)hash(s, (uint64_t)tweak << 32 | round << 24 | right) & mask);
        left = right;
        right = mixed;
    }
    return left << half | right;
}

uint32_t permute(const struct permute_secret *secret, uint32_t tweak, unsigned bits, uint32_t n)
{
    if (!secret->word[0] && !secret->word[1])
        return n;
    /* With an odd number of bits the network works on numbers up to twice as large. The cycle that n is in comes back
     * into the range, because n itself is in it. */
    do {
        n = feistel(secret, tweak, (bits + 1) / 2, n);
    } while (n >> bits);
    return n;
}
