// SPDX-License-Identifier: BSD-2-Clause
/* The engine's struct mem_ops over the address spaces of a device's clients.
 *
 * Writes are deferred and carried out by memory_flush, one system call per address space where possible: the caller
 * does that before completions or packets that the engine made later are handed on. Reads and atomics flush first by
 * themselves.
 *
 * Atomics are a read and a write by the device's one thread, so they are atomic with respect to each other, which is
 * what IBV_ATOMIC_HCA promises; not to the client's own CPU instructions, nor to another device that reaches the same
 * memory. */
#ifndef PUMICE_DAEMON_MEMORY_H
#define PUMICE_DAEMON_MEMORY_H

#include "daemon/client_mem/client_mem.h"
#include "daemon/client_mem/gather.h"
#include "daemon/core/base/mem_ops.h"

#define MEMORY_SPACES 4096 /* clients of a device */

TAILQ_HEAD(space_list, space);
struct memory {
    struct space *space[MEMORY_SPACES]; /* by number; NULL: none */
    struct space_list dirty;
    uint32_t *faulted; /* QPs whose deferred writes failed; told to the engine by memory_pop_fault */
    unsigned nfaulted, cap;
    struct gather gather;
    void (*refill)(void *qp_owner); /* mem_ops.refill */
    void (*refill_srq)(void *srq_owner); /* mem_ops.refill_srq */
    void (*list_ops)(void *srq_owner); /* mem_ops.list_ops */
};
extern const struct mem_ops memory_ops; /* ctx: struct memory */

void memory_init(struct memory *m, void (*refill)(void *qp_owner), void (*refill_srq)(void *srq_owner),
                 void (*list_ops)(void *srq_owner));
void memory_fini(struct memory *m);

/* Finds a number for a new space and enters it; -ENOSPC if there are too many. The space stays the caller's. */
int memory_add(struct memory *m, struct space *s);
/* To be called before the space is freed; no write to it may be waiting. */
void memory_remove(struct memory *m, struct space *s);

void memory_flush_all(struct memory *m);
static inline void memory_flush(struct memory *m)
{
    if (!TAILQ_EMPTY(&m->dirty))
        memory_flush_all(m);
}

/* The next QP whose write failed; false: none. */
bool memory_pop_fault(struct memory *m, uint32_t *qpn);

/* Can byte va be read? For checks at registration. */
bool memory_probe(struct memory *m, const struct space *s, uint64_t va);

#endif
