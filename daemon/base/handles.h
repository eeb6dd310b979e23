// SPDX-License-Identifier: BSD-2-Clause
/* Handle tables: map the numbers that clients use for objects to the daemon's objects. A number that is not in the
 * table finds nothing, so the daemon can look up any value that a client sends. */
#ifndef PUMICE_DAEMON_BASE_HANDLES_H
#define PUMICE_DAEMON_BASE_HANDLES_H

#include <stdint.h>

struct handle;
struct handles {
    struct handle *hash; /* NULL: empty */
    uint32_t count; /* entries */
    uint32_t limit; /* most entries; 0: no limit */
    /* The latest number that handles_add gave. It gives numbers in order, so that a freed number is reused as late as
     * possible. */
    uint32_t next;
    struct handle *walk; /* the entry that handles_walk_next returns next; NULL: none */
};

/* Numbers have 24 bits. In a table with a limit they are at most HANDLES_SPREAD times the limit. The reason is that
 * clients have tables by number, too, which grow with the numbers and never shrink. */
#define HANDLES_MAX 0xffffffu
#define HANDLES_SPREAD 16u

/* Gives the object a new number from 1 to HANDLES_MAX, and writes it to *id. 0; -ENOSPC: the table is full; -ENOMEM. */
int handles_add(struct handles *t, void *obj, uint32_t *id);
/* Enters the object under a number that the caller chose. 0; -EEXIST: the number is taken; -ENOSPC; -ENOMEM. */
int handles_add_at(struct handles *t, void *obj, uint32_t id);
/* The object of the number; NULL: there is none. */
void *handles_get(const struct handles *t, uint32_t id);
/* Removes the number. Does nothing if it is not in the table. */
void handles_remove(struct handles *t, uint32_t id);

/* The object that was entered last, for a caller that removes all; NULL: the table is empty. The reverse order matters:
 * malloc returns memory to the kernel when what is behind it is free. In the order of entering, it would return all of
 * the memory of 16,384 queue pairs at once, at the last one, which takes milliseconds. */
void *handles_any(const struct handles *t);
/* Calls fn for each object, in the order in which they were entered. fn must not change the table. */
void handles_each(const struct handles *t, void (*fn)(void *obj, void *ctx), void *ctx);

/* A walk that may pause: other calls may change the table between two steps. It returns each object at most once, in
 * the order in which they were entered. It leaves out objects that were removed before their turn, and includes those
 * that were entered before its end. A table has one walk at
 * a time: handles_walk_begin gives up the previous one. */
void handles_walk_begin(struct handles *t);
/* The next object; NULL: the walk has ended. */
void *handles_walk_next(struct handles *t);

#endif
