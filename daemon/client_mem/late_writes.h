// SPDX-License-Identifier: BSD-2-Clause
/* Writes that become visible late, one kind of an unkind NIC (docs/unkind.md): holds copies of writes to client memory back,
 * although the device acknowledges them. So later writes come to memory before them.
 *
 * A WRITE is visible for sure when a later completion of its target's program is there (IBTA 9.5). The owner settles before
 * it tells a program anything, before it reads the memory, and before a write that overlaps. A write is held for about 1 ms
 * at most. */
#ifndef PUMICE_DAEMON_CLIENT_MEM_LATE_WRITES_H
#define PUMICE_DAEMON_CLIENT_MEM_LATE_WRITES_H

#include "daemon/base/unkind.h"
#include "daemon/client_mem/client_mem.h"

#define LATE_WRITES_BYTES (256u << 10) /* of the copies */

struct late_writes; /* of one device */

/* bytes: LATE_WRITES_BYTES that the copier may read. u and bytes must stay. NULL: out of memory. */
struct late_writes *late_writes_new(struct unkind *u, uint8_t *bytes);
void late_writes_free(struct late_writes *l);

/* Takes those of the waiting writes of s away that become visible late. Writes the held ones of s before, if a waiting
 * write overlaps one. */
void late_writes_hold(struct late_writes *l, struct client_mem *s, uint64_t now, client_mem_failed *failed, void *ctx);
/* Writes the held ones of s; NULL: all. */
void late_writes_settle(struct late_writes *l, struct client_mem *s, client_mem_failed *failed, void *ctx);
/* The same for all memory of a process. */
void late_writes_settle_process(struct late_writes *l, pid_t pid, client_mem_failed *failed, void *ctx);
/* When all must be settled; UINT64_MAX: none is held. */
uint64_t late_writes_deadline(const struct late_writes *l);

#endif
