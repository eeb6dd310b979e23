// SPDX-License-Identifier: BSD-2-Clause
/* Secret orders of numbers: keyed permutations. The engine takes QP numbers and the tags of memory keys in such an
 * order, so that nobody who knows some of them can tell the others. Nothing is drawn at random here: the same secret
 * gives the same order. */
#ifndef PUMICE_DAEMON_CORE_BASE_PERMUTE_H
#define PUMICE_DAEMON_CORE_BASE_PERMUTE_H

#include <stdint.h>

struct permute_secret {
    uint64_t word[2]; /* both 0: no secret, and every permutation is the identity */
};

/* Maps n, which is below 2^bits, to another number below 2^bits. Different n get different numbers. tweak chooses one of
 * many permutations with the same secret. bits: 1 … 24. */
uint32_t permute(const struct permute_secret *secret, uint32_t tweak, unsigned bits, uint32_t n);

#endif
