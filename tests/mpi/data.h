// SPDX-License-Identifier: BSD-2-Clause
/* Data that can be checked: each word shows its message and its place in the message. */
#ifndef PUMICE_TESTS_MPI_DATA_H
#define PUMICE_TESTS_MPI_DATA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The eight bytes at offset 8 * n of the data of this seed. Seed and n (up to 32 GiB) form a number of 64 bits, and
 * each step maps these numbers one to one. So no word occurs twice, neither at another place nor in another message.
 * Data that are shifted by a multiple of eight bytes differ at the first word, wherever they come from. Any other
 * shift differs with high probability: each word agrees with probability 1 in 2^64. */
static inline uint64_t mt_word(size_t n, unsigned seed)
{
    uint64_t z = ((uint64_t)seed << 32 | (n & UINT32_MAX)) + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Byte i of the data. */
static inline unsigned char mt_byte(size_t i, unsigned seed)
{
    uint64_t word = mt_word(i / 8, seed);
    return ((unsigned char *)&word)[i % 8];
}

static inline void mt_fill(void *buf, size_t size, unsigned seed)
{
    unsigned char *p = buf;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        uint64_t word = mt_word(i / 8, seed);
        memcpy(p + i, &word, 8);
    }
    for (; i < size; i++)
        p[i] = mt_byte(i, seed);
}

/* The first byte that differs from mt_fill's data; size if there is none. */
static inline size_t mt_differs(const void *buf, size_t size, unsigned seed)
{
    const unsigned char *p = buf;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        uint64_t want = mt_word(i / 8, seed);
        if (memcmp(p + i, &want, 8) != 0)
            break;
    }
    while (i < size && p[i] == mt_byte(i, seed))
        i++;
    return i;
}

#endif
