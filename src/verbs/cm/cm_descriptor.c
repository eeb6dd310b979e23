// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/cm/cm_descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

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

/* The file at fd. A system call, because fstat is one of the functions that this library replaces. */
static bool file_at(int fd, dev_t *dev, ino_t *ino)
{
    struct statx st;
    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &st) != 0)
        return false;
    *dev = makedev(st.stx_dev_major, st.stx_dev_minor);
    *ino = st.stx_ino;
    return true;
}

struct vb_cm_channel *vb_cm_channel_at(int fd)
{
    dev_t dev = 0;
    ino_t ino = 0;
    struct vb_cm_channel *stale = NULL;
    bool is_open = file_at(fd, &dev, &ino);
    vb_cm_lock();
    struct vb_cm_channel *ch = vb_table_get(&vb_cm_marks, (uint32_t)fd);
    if (ch && is_open && ch->dev == dev && ch->ino == ino)
        ch->refs++;
    else if (ch) {
        set(fd, NULL, &stale);
        ch = NULL;
    }
    vb_cm_unlock();
    if (stale)
        vb_cm_closed(stale);
    return ch;
}

bool vb_cm_is_channel(int fd, dev_t dev, ino_t ino)
{
    vb_cm_lock();
    const struct vb_cm_channel *ch = vb_table_get(&vb_cm_marks, (uint32_t)fd);
    bool is = ch && ch->dev == dev && ch->ino == ino;
    vb_cm_unlock();
    return is;
}
