// SPDX-License-Identifier: BSD-2-Clause
/* How long an attack goes on, and its random numbers. */
#ifndef PUMICE_TESTS_SOAK_HOSTILE_EFFORT_H
#define PUMICE_TESTS_SOAK_HOSTILE_EFFORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The seed of the random numbers, and the seconds until effort_goes_on returns false. */
void effort_start(uint64_t seed, double seconds);
bool effort_goes_on(void);
double effort_left(void);

/* A random number below a limit above 0. A seed repeats the sequence. */
uint64_t rnd(uint64_t below);
void rnd_fill(void *p, size_t len);

#endif
