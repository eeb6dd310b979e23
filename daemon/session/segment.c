// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/session/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int segment_create(struct segment *s, const char *name, size_t size)
{
    int rc;

    s->p = NULL;
    s->size = (size + 4095) & ~(size_t)4095;
    s->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (s->fd < 0)
        return -errno;
    if (ftruncate(s->fd, (off_t)s->size) != 0 ||
        fcntl(s->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        goto fail;
    s->p = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
    if (s->p == MAP_FAILED)
        goto fail;
    return 0;
fail:
    rc = -errno;
    close(s->fd);
    s->fd = -1;
    s->p = NULL;
    return rc;
}

void segment_destroy(struct segment *s)
{
    if (s->p)
        munmap(s->p, s->size);
    if (s->fd >= 0)
        close(s->fd);
    s->p = NULL;
    s->fd = -1;
}

int segment_take_fd(struct segment *s)
{
    int fd = s->fd;

    s->fd = -1;
    return fd;
}
