// SPDX-License-Identifier: BSD-2-Clause
/* The engine's one upcall: copying bytes from and to memory that belongs to the users of QPs. The daemon backs it with
 * client memory, the simulator with plain arrays. */
#ifndef PUMICE_CORE_MEM_H
#define PUMICE_CORE_MEM_H

#include "daemon/core/base/types.h"

/* A contiguous range in one address space, already checked against keys. */
struct mem_segment {
    uint64_t va;
    uint32_t len;
    uint32_t space; /* the owner's number of the address space */
};
struct buf { /* a range of the caller's own memory */
    uint8_t *p;
    size_t len;
};

enum mem_atomic {
    MEM_CMP_SWAP,
    MEM_FETCH_ADD,
};

struct mem_ops {
    /* Gathers the bytes of src[0 ... nsrc) into dst[0 ... ndst); both sides have the same total length. Must see all
     * earlier writes. Returns 0, or -1 if some byte could not be read (dst is then undefined). */
    int (*read)(void *ctx, const struct mem_segment *src, unsigned nsrc, const struct buf *dst, unsigned ndst);

    /* Scatters src[0 ... len) to dst[0 ... ndst). May be deferred: the bytes of src stay valid until the end of the
     * receive batch, and the owner carries deferred writes out, in order, before it hands on any completion or
     * packet that the engine made after the call. Returns 0, or -1 if it failed at once. A deferred write that fails
     * later is told to the engine by engine_mem_fault(qpn). */
    int (*write)(void *ctx, uint32_t qpn, const struct mem_segment *dst, unsigned ndst, const uint8_t *src, size_t len);

    /* Carries out an atomic on the 8 naturally aligned bytes at *where, in the host's byte order, atomically with
     * respect to all other atomics of the device. *old receives what stood there. Returns 0 or -1. */
    int (*atomic)(void *ctx, const struct mem_segment *where, enum mem_atomic op, uint64_t compare_add, uint64_t swap,
                  uint64_t *old);

    /* A message needs a receive request and the private receive queue is empty: the owner posts what it has by
     * qp_post_recv (and may do nothing else with the engine). NULL: the owner always posts at once. */
    void (*refill)(void *ctx, void *qp_owner);

    /* The same for an SRQ, by srq_post_recv: all that there is room for, because the limit event counts them. */
    void (*refill_srq)(void *ctx, void *srq_owner);

    /* A message to an SRQ that matches tags is to be matched: the owner carries out all list operations that it has, by
     * srq_carry_out or srq_post_op (and may do nothing else with the engine). NULL: it does so at once anyway. */
    void (*list_ops)(void *ctx, void *srq_owner);
};

#endif
