// SPDX-License-Identifier: BSD-2-Clause
/* Implements the engine's struct mem_ops on the memory of a device's clients.
 *
 * Writes are deferred. mem_backend_flush executes them, with one system call per client where possible. The caller
 * flushes before it hands on completions or packets that the engine made later. Reads and atomics flush first by
 * themselves.
 *
 * An atomic is a read and a write by the device's one thread. So atomics are atomic with respect to each other, as
 * IBV_ATOMIC_HCA promises. They are not atomic with respect to the client's own CPU instructions, or to another device
 * that reaches the same memory. */
#ifndef PUMICE_DAEMON_CLIENT_MEM_MEM_BACKEND_H
#define PUMICE_DAEMON_CLIENT_MEM_MEM_BACKEND_H

#include "daemon/client_mem/client_mem.h"
#include "daemon/client_mem/gather.h"
#include "daemon/client_mem/late_writes.h"
#include "daemon/client_mem/placement.h"
#include "daemon/client_mem/shared_region.h"
#include "daemon/core/base/mem_ops.h"

#define MEM_BACKEND_CLIENTS 4096 /* the most clients of a device */
#define MEM_BACKEND_BUFFERS (sizeof(struct gather) + 4096)

TAILQ_HEAD(client_mem_list, client_mem);
struct mem_backend {
    struct client_mem *client[MEM_BACKEND_CLIENTS]; /* by number; NULL: none */
    struct client_mem_list dirty;
    /* QPs whose deferred writes failed. mem_backend_pop_fault reports them to the engine. */
    struct mem_fault {
        uint32_t qpn;
        uint32_t n; /* writes */
        bool unmapped; /* they met memory that its program has unmapped, and were dropped */
    } * faulted;
    unsigned nfaulted, cap;
    struct gather *gather;
    bool owns_gather; /* else it is in the buffers of a copier */
    /* The backend of an unkind device owns it. NULL: bytes are placed in order, and no write is late. */
    struct placement *placement;
    struct late_writes *late;
    struct shared_regions shared;
};
extern const struct mem_ops mem_backend_ops; /* ctx: struct mem_backend */

/* copier: of the device, for whose buffers MEM_BACKEND_BUFFERS bytes are left; NULL: none. 0 or -ENOMEM. Call
 * mem_backend_fini in either case. */
int mem_backend_init(struct mem_backend *m, struct copier *copier);
void mem_backend_fini(struct mem_backend *m);

/* Gives the client's memory a number and registers it. -ENOSPC: there are too many. The caller keeps the ownership of
 * s. */
int mem_backend_add(struct mem_backend *m, struct client_mem *s);
/* To be called before s is freed. Executes the deferred writes if some to s wait. */
void mem_backend_remove(struct mem_backend *m, struct client_mem *s);

/* From now on, bytes come to memory out of order (UNKIND_PLACEMENT), and writes late (UNKIND_VISIBILITY). bytes:
 * LATE_WRITES_BYTES of the copier's buffers, for the latter. 0 or -ENOMEM. */
int mem_backend_be_unkind(struct mem_backend *m, struct unkind *u, uint8_t *bytes);

/* Executes all deferred writes. */
void mem_backend_flush(struct mem_backend *m);
/* The same; of an unkind device out of order, and some later. */
void mem_backend_place(struct mem_backend *m, uint64_t now);
/* Executes the late writes to the memory of a process, before it gets a completion; 0: those to all memory. */
void mem_backend_settle(struct mem_backend *m, pid_t pid);
/* When late writes are due; UINT64_MAX: there are none. */
static inline uint64_t mem_backend_deadline(const struct mem_backend *m)
{
    return m->late ? late_writes_deadline(m->late) : UINT64_MAX;
}

/* Takes the next QP whose writes failed. False: there is none. */
bool mem_backend_pop_fault(struct mem_backend *m, struct mem_fault *fault);

/* Can the byte at va be read? For checks at registration. */
bool mem_backend_probe(struct mem_backend *m, struct client_mem *s, uint64_t va);

#endif
