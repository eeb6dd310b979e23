// SPDX-License-Identifier: BSD-2-Clause
/* The engine's struct mem_ops over the address spaces of a device's clients.
 *
 * Writes are deferred and carried out by mem_backend_flush, one system call per address space where possible: the caller
 * does that before completions or packets that the engine made later are handed on. Reads and atomics flush first by
 * themselves.
 *
 * Atomics are a read and a write by the device's one thread, so they are atomic with respect to each other, which is
 * what IBV_ATOMIC_HCA promises; not to the client's own CPU instructions, nor to another device that reaches the same
 * memory. */
#ifndef PUMICE_DAEMON_MEM_BACKEND_H
#define PUMICE_DAEMON_MEM_BACKEND_H

#include "daemon/client_mem/client_mem.h"
#include "daemon/client_mem/gather.h"
#include "daemon/core/base/mem_ops.h"

#define MEM_BACKEND_CLIENTS 4096 /* clients of a device */

TAILQ_HEAD(client_mem_list, client_mem);
struct mem_backend {
    struct client_mem *space[MEM_BACKEND_CLIENTS]; /* by number; NULL: none */
    struct client_mem_list dirty;
    uint32_t *faulted; /* QPs whose deferred writes failed; told to the engine by mem_backend_pop_fault */
    unsigned nfaulted, cap;
    struct gather gather;
    void (*refill)(void *qp_owner); /* mem_ops.refill */
    void (*refill_srq)(void *srq_owner); /* mem_ops.refill_srq */
    void (*list_ops)(void *srq_owner); /* mem_ops.list_ops */
};
extern const struct mem_ops mem_backend_ops; /* ctx: struct mem_backend */

void mem_backend_init(struct mem_backend *m, void (*refill)(void *qp_owner), void (*refill_srq)(void *srq_owner),
                      void (*list_ops)(void *srq_owner));
void mem_backend_fini(struct mem_backend *m);

/* Finds a number for a new space and enters it; -ENOSPC if there are too many. The space stays the caller's. */
int mem_backend_add(struct mem_backend *m, struct client_mem *s);
/* To be called before the space is freed; no write to it may be waiting. */
void mem_backend_remove(struct mem_backend *m, struct client_mem *s);

void mem_backend_flush_all(struct mem_backend *m);
static inline void mem_backend_flush(struct mem_backend *m)
{
    if (!TAILQ_EMPTY(&m->dirty))
        mem_backend_flush_all(m);
}

/* The next QP whose write failed; false: none. */
bool mem_backend_pop_fault(struct mem_backend *m, uint32_t *qpn);

/* Can byte va be read? For checks at registration. */
bool mem_backend_probe(struct mem_backend *m, const struct client_mem *s, uint64_t va);

#endif
