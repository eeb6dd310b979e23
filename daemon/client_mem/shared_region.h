// SPDX-License-Identifier: BSD-2-Clause
/* Registered regions whose memory a program shares by a file, and which the daemon has mapped, too. The daemon reads
 * them without a system call: it copies from its own mapping, and so pins no pages of the program. It writes to them as to all
 * other client memory.
 *
 * The pages are those that the region had when it was registered, as with a NIC. All packets still go out from a copy,
 * so their ICRC is right whatever the program does meanwhile.
 *
 * The owner maps the pages, and guards them against SIGBUS (daemon/objects/mr_file.h). */
#ifndef PUMICE_DAEMON_CLIENT_MEM_SHARED_REGION_H
#define PUMICE_DAEMON_CLIENT_MEM_SHARED_REGION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/base/mem_ops.h"

#define SHARED_REGIONS_MAX 4095u /* of a device */

struct shared_region {
    uint64_t va, length; /* in the program */
    const uint8_t *p; /* the same bytes in the daemon */
    /* A page of it could not be had: the program made the file shorter, or the machine has no memory. The region is
     * then read like other memory. */
    atomic_bool lost;
};

struct shared_regions {
    struct shared_region *region[SHARED_REGIONS_MAX + 1]; /* by number; 0 is never used; NULL: none */
    unsigned n;
    unsigned latest; /* the number that was given out last */
};

/* Gives the region a number, which is not 0. 0: there are too many. The caller keeps the ownership. */
unsigned shared_regions_add(struct shared_regions *t, struct shared_region *r);
void shared_regions_remove(struct shared_regions *t, unsigned number);

/* Copies the bytes of src[0 … nsrc) to dst[0 … ndst), which have the same total length. number_of: the number of a
 * segment's region; 0: none. False: at least one segment is in no region of the table, or its region is lost. dst is undefined
 * then. */
bool shared_regions_read(const struct shared_regions *t, unsigned (*number_of)(const struct mem_segment *),
                         const struct mem_segment *src, unsigned nsrc, const struct buf *dst, unsigned ndst);

#endif
