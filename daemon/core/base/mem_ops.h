// SPDX-License-Identifier: BSD-2-Clause
/* The functions by which the engine reads and writes memory that belongs to the users of QPs. The engine's owner
 * supplies them as a table: the daemon backs it with client memory, the simulator with plain arrays.
 *
 * None of these functions may call the engine. */
#ifndef PUMICE_DAEMON_CORE_BASE_MEM_OPS_H
#define PUMICE_DAEMON_CORE_BASE_MEM_OPS_H

#include "daemon/core/base/types.h"

/* A contiguous range in one address space. It was already checked against keys. */
struct mem_segment {
    uint64_t va;
    uint32_t len;
    uint32_t space; /* the owner's number of the address space; the engine only compares it */
};
/* A range of the caller's own memory. */
struct buf {
    uint8_t *p;
    size_t len;
};

enum mem_atomic {
    MEM_CMP_SWAP,
    MEM_FETCH_ADD,
};

/* Result of an operation on memory that was unmapped by its user, although it is registered. A NIC has pinned such pages
 * and goes on with them. */
#define MEM_UNMAPPED 1

struct mem_ops {
    /* Gathers the bytes of src[0 ... nsrc) into dst[0 ... ndst). Both sides have the same total length. The bytes must
     * show all earlier writes. Returns 0. Returns MEM_UNMAPPED if some bytes are zeros in place of unmapped memory.
     * Returns -1 if some byte could not be read (dst is then undefined). */
    int (*read)(void *ctx, const struct mem_segment *src, unsigned nsrc, const struct buf *dst, unsigned ndst);

    /* Scatters src[0 ... len) to dst[0 ... ndst). The owner may defer the write. The bytes of src stay valid until the
     * end of the receive batch. The owner carries deferred writes out, in order, before it hands on any completion or
     * packet that the engine made after this call. Returns 0, or -1 if the write failed at once. When a deferred write
     * fails later, the owner tells the engine by engine_mem_fault(qpn). The owner drops data for
     * unmapped memory, and reports that by engine_mem_unmapped(qpn). */
    int (*write)(void *ctx, uint32_t qpn, const struct mem_segment *dst, unsigned ndst, const uint8_t *src, size_t len);

    /* Carries out an atomic on the 8 naturally aligned bytes at *where. They are in the host's byte order. The
     * operation is atomic with respect to all other atomics of the device. *old receives the value before it. Returns 0
     * or -1; or MEM_UNMAPPED, when *old is 0 and nothing was written. */
    int (*atomic)(void *ctx, const struct mem_segment *where, enum mem_atomic op, uint64_t compare_add, uint64_t swap,
                  uint64_t *old);

    /* A FLUSH or an ATOMIC WRITE is about to be executed: whoever sees its effect must see all earlier writes. NULL: writes
     * are always executed in order. */
    void (*order)(void *ctx);
};

/* The table and its ctx, as the owner gave them to engine_init. */
struct mem_access {
    const struct mem_ops *ops;
    void *ctx;
};

#endif
