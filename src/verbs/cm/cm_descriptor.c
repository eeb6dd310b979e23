// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/cm/cm_descriptor.h"

#include <errno.h>

#include "src/verbs/base/event_fd.h"
#include "src/verbs/cm/cm_lock.h"

_Atomic unsigned vb_cm_num_marked;
struct vb_table vb_cm_marks;

/* Sets the mark of fd, and returns the former one. The caller holds the lock. */
static int set(int fd, struct vb_cm_channel *ch, struct vb_cm_channel **old)
{
    *old = NULL;
    if (!vb_cm_marks.root && vb_table_init(&vb_cm_marks) != 0)
        return -ENOMEM;
    struct vb_cm_channel *was = vb_table_get(&vb_cm_marks, (uint32_t)fd);
    if (vb_table_set(&vb_cm_marks, (uint32_t)fd, ch) != 0)
        return -ENOMEM;
    *old = was;
    if (ch && !was)
        atomic_fetch_add(&vb_cm_num_marked, 1);
    else if (!ch && was)
        atomic_fetch_sub(&vb_cm_num_marked, 1);
    return 0;
}

int vb_cm_mark(int fd, struct vb_cm_channel *ch)
{
    struct vb_cm_channel *old;
    vb_cm_lock();
    int rc = set(fd, ch, &old);
    if (rc == 0) {
        ch->refs++;
        ch->descriptors++;
    }
    vb_cm_unlock();
    if (old)
        vb_cm_closed(old);
    return rc;
}

struct vb_cm_channel *vb_cm_unmark(int fd)
{
    struct vb_cm_channel *old;
    vb_cm_lock();
    set(fd, NULL, &old);
    vb_cm_unlock();
    return old;
}

void vb_cm_closed(struct vb_cm_channel *ch)
{
    vb_cm_lock();
    bool last = --ch->descriptors == 0;
    vb_cm_unlock();
    if (last)
        vb_cm_channel_drop(ch);
    vb_cm_channel_release(ch);
}

/* The channel that the descriptor was marked with, with a reference for the caller. */
static struct vb_cm_channel *marked_with(int fd)
{
    vb_cm_lock();
    struct vb_cm_channel *ch = vb_table_get(&vb_cm_marks, (uint32_t)fd);
    if (ch)
        ch->refs++;
    vb_cm_unlock();
    return ch;
}

/* Removes the mark, if it still is that of the channel. */
static void unmark_stale(int fd, struct vb_cm_channel *ch)
{
    struct vb_cm_channel *old = NULL;
    vb_cm_lock();
    if (vb_table_get(&vb_cm_marks, (uint32_t)fd) == ch)
        set(fd, NULL, &old);
    vb_cm_unlock();
    vb_cm_channel_release(ch);
    if (old)
        vb_cm_closed(old);
}

struct vb_cm_channel *vb_cm_channel_at(int fd)
{
    int e = errno;
    struct vb_cm_channel *ch = marked_with(fd);
    if (ch && !vb_event_fd_has(fd, ch->pipe)) {
        unmark_stale(fd, ch);
        ch = NULL;
    }
    errno = e;
    return ch;
}

bool vb_cm_is_channel(int fd)
{
    int e = errno;
    struct vb_cm_channel *ch = marked_with(fd);
    bool is = ch && vb_event_fd_has(fd, ch->pipe);
    if (ch)
        vb_cm_channel_release(ch);
    errno = e;
    return is;
}
