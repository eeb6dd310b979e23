// SPDX-License-Identifier: BSD-2-Clause
/* From keys and addresses to memory: where the bytes of a work request or of a peer's request are.
 *
 * A range of a region or an ordinary window is one piece of memory; one of a window with a layout is any number of them,
 * up to one for each byte. So they are asked for in batches, from a source that remembers how far it is; nobody needs
 * memory in proportion. The functions below that copy do just that. */
#ifndef PUMICE_CORE_SGE_ITER_H
#define PUMICE_CORE_SGE_ITER_H

#include "daemon/core/base/mem_ops.h"
#include "daemon/core/memory/key.h"
#include "daemon/core/memory/layout.h"

#define MEM_SEGMENT_BATCH 1024u /* pieces of one upcall: as many as a vectored system call takes */

/* A range of bytes whose pieces can be asked for. All fields are pieces.c's own. Valid as long as nothing changes keys or the
 * SGE list; it is made anew for each packet or burst. */
struct sge_iter {
    const struct key_table *keys;
    uint32_t pd;
    uint32_t access; /* what the user of it wants to do, enum access_flags; 0: to read locally */
    uint32_t qpn; /* the QP at which a peer's request came in */
    bool remote; /* key is an rkey */
    bool layout; /* the last key was that of a window with a layout */
    uint32_t left; /* bytes that were not looked up yet */
    const struct sge *sge; /* the present SGE; NULL: it is `own` */
    uint32_t off; /* bytes of it that are done */
    struct sge own;
    struct layout_walk walk; /* if the present SGE is of a window with a layout */
};

/* Bytes [off, off + len) of an SGE list, which holds them, and stays where it is. */
void sge_iter_sgl(struct sge_iter *s, const struct key_table *t, uint32_t pd, const struct sge *sge, uint32_t off,
                  uint32_t len, uint32_t access);
/* [addr, addr + len) of an rkey, for a request that came in at the QP numbered qpn (0: windows of type 2B are closed to it, as
 * over XRC). */
void sge_iter_remote(struct sge_iter *s, const struct key_table *t, uint32_t pd, uint32_t qpn, uint32_t key,
                     uint64_t addr, uint32_t len, uint32_t access);

/* Is the access allowed? Everything but what lies more than one window deep is looked at, in time that does not depend on how
 * many pieces there are; that is why nothing of a message is written before it. */
bool sge_iter_allowed(const struct sge_iter *s);
/* Is it allowed, and is every byte of it at the very address that its SGE has? Then the user's own process can copy it, who
 * knows no keys. */
bool sge_iter_plain(const struct sge_iter *s);
/* The next pieces, at most max; those that adjoin are joined. 0: there are no more; -1: the next one is not allowed. */
int sge_iter_segments(struct sge_iter *s, struct mem_segment *out, unsigned max);
/* Have all pieces been handed out? */
bool sge_iter_done(struct sge_iter *s);

enum copied {
    COPIED,
    COPY_REFUSED, /* by the keys */
    COPY_FAILED, /* the memory is gone */
};
/* Gathers all of the source into dst[0 ... ndst), which has as many bytes. */
enum copied sge_iter_read(struct sge_iter *s, const struct mem_access *mem, const struct buf *dst, unsigned ndst);
/* Scatters len bytes, as many as the source has, for this QP: all or, if some piece is not allowed, none. src as in mem_ops.write. */
enum copied sge_iter_write(struct sge_iter *s, const struct mem_access *mem, uint32_t qpn, const uint8_t *src,
                           uint32_t len);

#endif
