// SPDX-License-Identifier: BSD-2-Clause
/* Reads many pieces of a client's memory with few calls and few page lookups.
 *
 * The kernel looks up and pins a page for every range of a process_vm call: 0.2 us, for small pieces much more than the
 * copy. So small pieces that follow each other within the same pages are read as one range, the span from the first to
 * the last of their bytes, and picked out of it here. Each page of a span holds a byte of some piece, and the kernel
 * grants or refuses memory by pages: so a span can be read if and only if its pieces can. */
#ifndef PUMICE_DAEMON_GATHER_H
#define PUMICE_DAEMON_GATHER_H

#include "daemon/client_mem/client_mem.h"

#define GATHER_SMALL 512u /* longest piece that is picked out of a span: above it the second copy costs more */
#define GATHER_STAGE (64u << 10) /* bytes of spans in one call */

/* One reader; about 100 KiB, so not for the stack. Needs no initialization but zeros. */
struct gather {
    unsigned nlocal, nremote, npicks;
    uint32_t staged; /* bytes of the stage that closed spans take */
    uint64_t bytes; /* of all ranges */
    struct { /* the span that grows; picks first_pick and later are its own */
        uint64_t lo, hi; /* empty: lo == hi */
        unsigned first_pick;
    } span;
    struct gather_pick {
        uint64_t va; /* until its span is closed; then its offset in the stage */
        uint8_t *to;
        uint32_t len;
    } pick[CLIENT_MEM_IOVS];
    struct iovec local[CLIENT_MEM_IOVS], remote[CLIENT_MEM_IOVS];
    uint8_t stage[GATHER_STAGE];
};

/* Will read len bytes at va to `to`, which may happen at once. False: something could not be read; what has been asked
 * since the last gather_finish is then undefined. */
bool gather_add(struct gather *g, const struct client_mem *s, uint64_t va, uint8_t *to, size_t len);
/* Reads what is left. False: something could not be read. In both cases ready for the next list. */
bool gather_finish(struct gather *g, const struct client_mem *s);

#endif
