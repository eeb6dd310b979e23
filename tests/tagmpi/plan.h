// SPDX-License-Identifier: BSD-2-Clause
/* What the ranks of the stress send each other: a function of the seed alone, so that receivers know what must come. */
#ifndef PLAN_H
#define PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PLAN_COMMS = 2, /* in communicator 0 are many small messages, in 1 few that may be large */
    PLAN_TAGS = 6,
    PLAN_SMALL_MAX = 64 << 10, /* bytes of the largest message in communicator 0 */
    PLAN_LARGE_MAX = 4 << 20, /* in communicator 1 */
    PLAN_NUMBER = 4 /* a message of so many bytes or more begins with its number */
};

struct plan {
    uint64_t seed;
    uint32_t messages; /* each rank sends so many */
    unsigned ranks;
};

struct message {
    uint8_t to, comm, tag;
    uint32_t size; /* bytes */
};

/* A number that depends on all three arguments, evenly spread. */
uint64_t plan_random(uint64_t seed, uint64_t a, uint64_t b);

/* The message that rank sends as number, from 0. */
struct message plan_message(const struct plan *p, unsigned rank, uint32_t number);

/* Writes its content. */
void plan_fill(const struct plan *p, unsigned rank, uint32_t number, uint8_t *to, size_t size);

/* Is this its content? false: *at is the first byte that is not. */
bool plan_check(const struct plan *p, unsigned rank, uint32_t number, const uint8_t *got, size_t size, size_t *at);

#endif
