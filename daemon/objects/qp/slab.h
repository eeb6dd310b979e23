// SPDX-License-Identifier: BSD-2-Clause
/* Memory of many QPs in few mappings. A slab is a segment that the client maps and a mapping of the daemon's own, both
 * cut into slots. A QP has the slot of one number in both. The kernel limits the mappings of a process to 65,530 by
 * default, and a mapping of each QP would take longer to make than the QP itself.
 *
 * All slots of a slab belong to one session, so a client that writes into slots of other QPs only hurts itself. A slab
 * grows with the number of QPs that the session has, so a session with few QPs holds few slots that are free. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_SLAB_H
#define PUMICE_DAEMON_OBJECTS_QP_SLAB_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/base/quota.h"

struct control_reply;
struct slab;

#define SLAB_LISTS 16u
LIST_HEAD(slab_list, slab);
/* The slabs of a session that have free slots, by the sizes of their slots. All zero: none. Once no QP is left, it is
 * only memory to be freed. */
struct slabs {
    struct slab_list free[SLAB_LISTS];
};

/* The slot of a QP. slab NULL: none. */
struct slab_slot {
    struct slab *slab;
    uint32_t index;
};

/* The memory that a QP needs. */
struct slab_need {
    size_t shared, own; /* bytes of the segment and of the mapping */
    uint32_t others; /* how many QPs the session has already */
    atomic_bool *lost; /* as in segment_guard; NULL: nobody can handle a loss */
};

/* Takes a slot, with zeros in it. s NULL: the QP belongs to no session, and has a slab for itself. Returns 0 or -errno.
 * *rp has the reason if the owner's quota is the reason. */
int slab_take(struct slabs *s, const struct quota_owner *owner, const struct slab_need *need, struct slab_slot *out,
              struct control_reply *rp);
/* Gives the slot back, and its pages to the kernel. Does nothing if there is none. */
void slab_release(struct slab_slot *slot);

void *slab_shared(const struct slab_slot *slot);
void *slab_own(const struct slab_slot *slot);
/* Where the slot begins in the segment, in bytes. */
uint64_t slab_offset(const struct slab_slot *slot);
/* Size of the shared part of a slot, whole pages. */
size_t slab_shared_size(const struct slab_slot *slot);
/* Returns a descriptor of the segment for the client, or -errno. The caller sends and closes it. */
int slab_descriptor(const struct slab_slot *slot);

#endif
