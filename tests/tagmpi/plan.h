// SPDX-License-Identifier: BSD-2-Clause
/* The messages that the ranks of the stress test send each other. They depend only on the seed, so receivers know
 * what to expect. */
#ifndef PUMICE_TESTS_TAGMPI_PLAN_H
#define PUMICE_TESTS_TAGMPI_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Communicator 0 has many small messages, communicator 1 has few messages that may be large. */
    PLAN_COMMS = 2,
    PLAN_TAGS = 6,
    PLAN_SMALL_MAX = 64 << 10, /* bytes of the largest message in communicator 0 */
    PLAN_LARGE_MAX = 4 << 20, /* bytes of the largest message in communicator 1 */
    PLAN_NUMBER = 4 /* a message of at least this many bytes begins with its number */
};

struct plan {
    uint64_t seed;
    uint32_t messages; /* number of messages that each rank sends */
    unsigned ranks;
};

struct message {
    uint8_t to, comm, tag;
    uint32_t size; /* bytes */
};

/* A number that depends on all three arguments, evenly distributed. */
uint64_t plan_random(uint64_t seed, uint64_t a, uint64_t b);

/* The message with this number, from 0, that a rank sends. */
struct message plan_message(const struct plan *p, unsigned rank, uint32_t number);

/* Writes the content of a message. */
void plan_fill(const struct plan *p, unsigned rank, uint32_t number, uint8_t *to, size_t size);

/* Is this the content of the message? False: *at is the first wrong byte. */
bool plan_check(const struct plan *p, unsigned rank, uint32_t number, const uint8_t *got, size_t size, size_t *at);

#endif
