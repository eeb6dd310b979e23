// SPDX-License-Identifier: BSD-2-Clause
/* Finds the memory of a range of bytes, checks its keys, and copies from and to it. The range is a part of a work
 * request's SGEs, or of the rkey and address in a peer's request.
 *
 * A range of a region or of an ordinary window is one piece of memory. A range of a window with a layout is any
 * number of pieces, up to one for each byte. So callers ask for pieces in batches, and the iterator remembers its
 * position. No caller needs memory in proportion to the number of pieces. The copying functions below work in this
 * way. */
#ifndef PUMICE_DAEMON_CORE_MEMORY_SGE_ITER_H
#define PUMICE_DAEMON_CORE_MEMORY_SGE_ITER_H

#include "daemon/core/base/mem_ops.h"
#include "daemon/core/memory/key.h"
#include "daemon/core/memory/layout.h"

#define MEM_SEGMENT_BATCH 1024u /* pieces of one call of mem_ops: as many as a vectored system call takes */

/* Iterates over the pieces of a range of bytes. All fields are private to sge_iter.c. The iterator is valid as long
 * as keys and SGE list do not change; it is made anew for each packet or burst. */
struct sge_iter {
    const struct key_table *keys;
    uint32_t pd;
    uint32_t access; /* the intended access, enum access_flags; 0: read locally */
    uint32_t qpn; /* the QP that received a peer's request */
    bool remote; /* the key is an rkey */
    bool layout; /* some key so far was of a window with a layout: `walk` is in use */
    uint32_t left; /* bytes that were not looked up yet */
    const struct sge *sge; /* the current SGE; NULL: `own` */
    uint32_t off; /* bytes of the current SGE that are done */
    struct sge own; /* the range of a peer's request, as an SGE */
    struct layout_walk walk; /* valid if `layout` */
};

/* Iterates over bytes [off, off + len) of an SGE list. The list must have these bytes, and must stay where it is. */
void sge_iter_sgl(struct sge_iter *s, const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t off,
                  uint32_t len, uint32_t access);
/* Iterates over [addr, addr + len) of an rkey, for a request that the QP numbered qpn received (0: windows of type 2B
 * are not allowed, as over XRC). */
void sge_iter_remote(struct sge_iter *s, const struct key_table *t, uint32_t pd, uint32_t qpn, uint32_t key,
                     uint64_t addr, uint32_t len, uint32_t access);

/* Is the access allowed? This checks everything except objects that are more than one window deep, in time that does
 * not depend on the number of pieces. Because of this check, no byte of a message is written before the whole message
 * is allowed. */
bool sge_iter_allowed(const struct sge_iter *s);
/* Is the access allowed, and does every byte lie at the virtual address that its SGE gives? Then the user's own
 * process, which does not know keys, can copy the bytes. */
bool sge_iter_plain(const struct sge_iter *s);
/* Returns the next pieces, at most max. Adjacent ones are joined. 0: there are no more. -1: the next one is not
 * allowed. */
int sge_iter_segments(struct sge_iter *s, struct mem_segment *out, unsigned max);
/* Were all pieces returned? */
bool sge_iter_done(const struct sge_iter *s);

enum copied {
    COPIED,
    COPIED_ZEROS, /* some of the memory is unmapped: its bytes are zeros */
    COPY_REFUSED, /* the keys do not allow it */
    COPY_FAILED, /* the memory no longer exists */
};
/* Gathers all bytes of the range into dst[0 … ndst), which has the same length. */
enum copied sge_iter_read(struct sge_iter *s, const struct mem_access *mem, const struct buf *dst, unsigned ndst);
/* Scatters len bytes, the whole range, for this QP. If some piece is not allowed, nothing is written. src as in
 * mem_ops.write. */
enum copied sge_iter_write(struct sge_iter *s, const struct mem_access *mem, uint32_t qpn, const uint8_t *src,
                           uint32_t len);

#endif
