// SPDX-License-Identifier: BSD-2-Clause
/* Reads many pieces of a client's memory with few system calls and few page lookups.
 *
 * The kernel looks up and pins a page for every range of a process_vm call. That takes 0.2 us, which for small pieces
 * is much more than the copy. So small pieces that follow each other within the same pages are read as one range, the
 * span. It goes from the first to the last of their bytes. The pieces are then copied out of the span. Each page of a
 * span holds a byte of some piece, and the kernel grants or refuses memory by pages. So a span is readable if and
 * only if its pieces are. */
#ifndef PUMICE_DAEMON_CLIENT_MEM_GATHER_H
#define PUMICE_DAEMON_CLIENT_MEM_GATHER_H

#include "daemon/client_mem/client_mem.h"
#include "daemon/core/base/mem_ops.h"

/* The longest piece that is copied out of a span. For longer ones the second copy costs more than it saves. */
#define GATHER_SMALL 512u
#define GATHER_STAGE (64u << 10) /* bytes of all spans in one call */

/* One reader. It takes about 100 KiB, so don't put it on the stack. All zero is the initialized state. */
struct gather {
    unsigned nlocal, nremote, npicks;
    uint32_t staged; /* bytes of the stage that closed spans use */
    uint64_t bytes; /* bytes of all ranges */
    bool unmapped; /* zeros stand in place of memory that is not mapped */
    /* The span that still grows. The picks from first_pick on belong to it. */
    struct {
        uint64_t lo, hi; /* lo == hi: empty */
        unsigned first_pick;
    } span;
    /* A piece to be copied out of a span. */
    struct gather_pick {
        /* An address until the span is closed, then an offset in the stage. */
        uint64_t va;
        uint8_t *to;
        uint32_t len;
    } pick[CLIENT_MEM_IOVS];
    struct iovec local[CLIENT_MEM_IOVS], remote[CLIENT_MEM_IOVS];
    uint8_t stage[GATHER_STAGE];
};

/* Reads the segments into the buffers: all bytes of the shorter list. */
enum client_mem_result gather_read(struct gather *g, struct client_mem *s, const struct mem_segment *src, unsigned nsrc,
                                   const struct buf *dst, unsigned ndst);

/* The steps of gather_read. Requests a read of len bytes at va into `to`. The read may happen at once. False: the
 * process is gone. Then the results of all requests since the last gather_finish are undefined. */
bool gather_add(struct gather *g, struct client_mem *s, uint64_t va, uint8_t *to, size_t len);
/* Reads the rest. False: the process is gone. In both cases the reader is ready for new requests. */
bool gather_finish(struct gather *g, struct client_mem *s);

#endif
