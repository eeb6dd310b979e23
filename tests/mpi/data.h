// SPDX-License-Identifier: BSD-2-Clause
/* Data that can be checked: what stands where says which message it belongs to, and which place in it. */
#ifndef PUMICE_TESTS_MPI_DATA_H
#define PUMICE_TESTS_MPI_DATA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The eight bytes from byte 8 n on of the data that seed stands for. Seed and n (up to 32 GiB) make one number of 64 bits, and each
 * step maps these numbers one to one, so that no word occurs twice: at no other place, and in no other message. What is
 * a multiple of eight bytes off is seen at its first word, wherever it comes from; any other shift by chance, 1 in 2^64 for each word. */
static inline uint64_t mt_word(size_t n, unsigned seed)
{
    uint64_t z = ((uint64_t)seed << 32 | (n & UINT32_MAX)) + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Byte i of them. */
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

/* The first byte that is not what mt_fill wrote; size if there is none. */
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
