// SPDX-License-Identifier: BSD-2-Clause
/* The simulator's only source of randomness: xoshiro256** seeded by splitmix64. One seed gives the same run on every
 * machine. */
#ifndef PUMICE_TESTS_SIM_PRNG_H
#define PUMICE_TESTS_SIM_PRNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct prng {
    uint64_t s[4];
};
void prng_seed(struct prng *r, uint64_t seed);
uint64_t prng_next(struct prng *r);
/* A number in lo … hi, both included. */
uint64_t prng_range(struct prng *r, uint64_t lo, uint64_t hi);
/* True in per_mille of 1000 draws. */
bool prng_chance(struct prng *r, uint32_t per_mille);
void prng_fill(struct prng *r, void *p, size_t len);

/* One of the listed values. */
#define prng_pick(r, ...)                                                                                              \
    ((uint64_t[]){__VA_ARGS__}[prng_range((r), 0, sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t) - 1)])

#endif
