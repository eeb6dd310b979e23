// SPDX-License-Identifier: BSD-2-Clause
/* The data of the MPI programs (tests/mpi/data.h): the check detects bytes at a wrong place and bytes of another
 * message. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/mpi/data.h"

enum { SHORT = 24 }; /* the words that a check must be able to distinguish */

static const size_t largest = (size_t)64 << 20;

static unsigned char *filled(size_t size, unsigned seed)
{
    unsigned char *p = malloc(size);
    cr_assert_not_null(p);
    mt_fill(p, size, seed);
    return p;
}

/* No piece of the data repeats 2^k bytes further on, or at some multiples of that. */
Test(mpi_data, data_has_no_period)
{
    unsigned char *p = filled(largest + SHORT, 7);
    for (size_t shift = 1; shift <= largest; shift *= 2)
        for (size_t times = 1; times <= 5 && times * shift <= largest; times += 2)
            for (size_t at = 0; at + times * shift <= largest; at += largest / 64)
                cr_assert_neq(memcmp(p + at, p + at + times * shift, SHORT), 0, "the same at %zu and %zu further", at,
                              times * shift);
    free(p);
}

/* Seeds that differ by a little, by powers of two, or in the way in which programs combine ranks and rounds. Their
 * data must differ at every shift by a few words, and by powers of two. */
Test(mpi_data, the_check_distinguishes_seeds)
{
    enum { SHIFTS = 64 };
    static const unsigned apart[] = {1, 2, 3, 8, 10, 50, 64, 100, 256, 500, 1000, 1024, 2048, 4096, 65536, 1u << 31};
    unsigned char a[SHIFTS + SHORT], *b = filled(largest + SHORT, 3);
    for (size_t i = 0; i < sizeof(apart) / sizeof(apart[0]); i++) {
        mt_fill(a, sizeof(a), 3 + apart[i]);
        for (size_t shift = 0; shift <= SHIFTS; shift++)
            cr_assert(memcmp(a + shift, b, SHORT) != 0 && memcmp(a, b + shift, SHORT) != 0,
                      "seeds %u apart are the same, shifted by %zu", apart[i], shift);
        for (size_t shift = 1; shift <= largest; shift *= 2)
            cr_assert_neq(memcmp(a, b + shift, SHORT), 0, "seeds %u apart are the same, shifted by %zu", apart[i],
                          shift);
    }
    free(b);
}

/* One wrong byte is found wherever it is, and nothing if there is none. */
Test(mpi_data, the_check_finds_the_first_wrong_byte)
{
    for (size_t size = 0; size < 40; size++) {
        unsigned char *p = filled(size + 1, 9);
        for (size_t i = 0; i <= size; i++)
            cr_assert_eq(p[i], mt_byte(i, 9));
        cr_assert_eq(mt_differs(p, size, 9), size);
        for (size_t at = 0; at < size; at++) {
            p[at] ^= 1;
            p[size - 1] ^= 0x80;
            cr_assert_eq(mt_differs(p, size, 9), at);
            p[size - 1] ^= 0x80;
            p[at] ^= 1;
        }
        free(p);
    }
}
