// SPDX-License-Identifier: BSD-2-Clause
/* A table from numbers that clients say to objects of the daemon. A number that is not in the table finds nothing,
 * whatever it is. */
#ifndef PUMICE_DAEMON_HANDLES_H
#define PUMICE_DAEMON_HANDLES_H

#include <stdint.h>

struct handle;
struct handles {
    struct handle *hash; /* NULL: empty */
    uint32_t count;
    uint32_t limit; /* entries at most; 0: none */
    uint32_t next; /* number given last: a number comes back when all others had their turn */
};

/* The numbers that are given are of 24 bits, and of a table with a limit only so many times its limit: clients have tables
 * by number, too, which grow with the numbers and don't shrink. */
#define HANDLES_MAX 0xffffffu
#define HANDLES_TURNS 16u

/* Gives the object a new number, not 0 and HANDLES_MAX at most, into *id. -ENOSPC: limit reached; -ENOMEM. */
int handles_add(struct handles *t, void *obj, uint32_t *id);
/* Enters it under a number of the caller's. -EEXIST, -ENOSPC, -ENOMEM. */
int handles_add_at(struct handles *t, void *obj, uint32_t id);
void *handles_get(const struct handles *t, uint32_t id); /* NULL: none */
void handles_remove(struct handles *t, uint32_t id); /* nothing happens if it is not there */

/* Any object of the table, NULL if it is empty: to take all down. */
void *handles_any(const struct handles *t);
/* Calls fn for each object, in the order in which they were entered; fn must not change the table. */
void handles_each(const struct handles *t, void (*fn)(void *obj, void *ctx), void *ctx);

#endif
