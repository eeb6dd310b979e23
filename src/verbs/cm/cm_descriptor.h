// SPDX-License-Identifier: BSD-2-Clause
/* The descriptors of this process that are channels of connection management.
 *
 * A program may close a descriptor behind the back of the library (close_range, a system call of its own). The number
 * may be another file then. So the library looks for the channel's pipe in it before it treats a descriptor as a channel.
 *
 * While the process has no channel, vb_cm_marked costs one load. It is async-signal-safe, and may be called between
 * vfork and exec. */
#ifndef PUMICE_SRC_VERBS_CM_CM_DESCRIPTOR_H
#define PUMICE_SRC_VERBS_CM_CM_DESCRIPTOR_H

#include "src/verbs/base/table.h"
#include "src/verbs/cm/cm_channel.h"

/* Changed by cm_descriptor.c only. */
extern _Atomic unsigned vb_cm_num_marked;
extern struct vb_table vb_cm_marks;

/* Was the descriptor a channel when the library saw it last? The number of marks is raised after the table is made. */
static inline bool vb_cm_marked(int fd)
{
    return atomic_load_explicit(&vb_cm_num_marked, memory_order_acquire) != 0 &&
           vb_table_get(&vb_cm_marks, (uint32_t)fd);
}

/* Marks fd as a descriptor of the channel. -ENOMEM: the process is short of memory, or fd is too high. */
int vb_cm_mark(int fd, struct vb_cm_channel *ch);
/* Removes the mark, before the descriptor is closed. Returns its channel or NULL. After closing the descriptor, the
 * caller calls vb_cm_closed. */
struct vb_cm_channel *vb_cm_unmark(int fd);
void vb_cm_closed(struct vb_cm_channel *ch);

/* The channel of a marked descriptor, with a reference for the caller. NULL: the descriptor is another file, and loses
 * its mark. */
struct vb_cm_channel *vb_cm_channel_at(int fd);
/* Is the marked descriptor a channel? It keeps its mark in any case. Keeps errno. */
bool vb_cm_is_channel(int fd);

#endif
