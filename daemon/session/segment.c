// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/session/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/session/charge.h"

/* Returns 0 or -errno, with s->p NULL and s->fd -1. */
static int map_memfd(struct segment *s, const char *name)
{
    int rc;

    s->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (s->fd < 0)
        return -errno;
    if (ftruncate(s->fd, (off_t)s->size) != 0 ||
        fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        goto fail;
    s->p = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (s->p == MAP_FAILED)
        goto fail;
    s->guard = segment_guard_add(s->p, s->size);
    if (s->guard)
        return 0;
    munmap(s->p, s->size);
    errno = ENOMEM;
fail:
    rc = -errno;
    close(s->fd);
    s->fd = -1;
    s->p = NULL;
    return rc;
}

int segment_create(struct segment *s, const struct quota_owner *owner, const char *name, size_t size,
                   struct control_reply *rp)
{
    static const struct quota_owner nobody;

    s->p = NULL;
    s->fd = -1;
    s->size = (size + 4095) & ~(size_t)4095;
    s->owner = owner ? *owner : nobody;
    int rc = charge_memory(&s->owner, 1, s->size, rp);
    if (rc)
        return rc;
    rc = map_memfd(s, name);
    if (rc)
        quota_release_memory(&s->owner, 1, s->size);
    return rc;
}

void segment_destroy(struct segment *s)
{
    if (s->p) {
        segment_guard_remove(s->guard);
        munmap(s->p, s->size);
        quota_release_memory(&s->owner, 1, s->size);
    }
    if (s->fd >= 0)
        close(s->fd);
    s->p = NULL;
    s->fd = -1;
}

void segment_guard(struct segment *s, atomic_bool *lost)
{
    segment_guard_owner(s->guard, lost);
}

int segment_take_fd(struct segment *s)
{
    int fd = s->fd;

    s->fd = -1;
    return fd;
}
