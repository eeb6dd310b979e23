// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/session/client_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/client_mem/client_mem.h"
#include "daemon/threads/fd_closer.h"

static struct copier *copier(const struct client_pipe *p)
{
    return p->mem ? p->mem->copier : NULL;
}

static long call(const struct client_pipe *p, long nr, long a, long b, long c, long d)
{
    if (p->mem && p->mem->stuck)
        return -ETIMEDOUT;
    long r = copier_call(copier(p), p->mem ? p->mem->limit_ms : 0, nr, (long[6]){a, b, c, d});
    if (r == -ETIMEDOUT)
        p->mem->stuck = true;
    return r;
}

/* The same for calls with a buffer at b of c bytes, which is at most COPIER_DETOUR_BYTES. */
static long call_with_buffer(const struct client_pipe *p, long nr, int fd, const void *in, void *out, size_t len)
{
    uint8_t *detour = copier_detour(copier(p));

    if (!detour)
        return call(p, nr, fd, (long)(in ? in : out), (long)len, 0);
    if (in)
        memcpy(detour, in, len);
    long r = call(p, nr, fd, (long)copier_seen_by_kernel(copier(p), detour), (long)len, 0);
    if (out && r > 0)
        memcpy(out, detour, (size_t)r);
    return r;
}

ssize_t client_pipe_write(const struct client_pipe *p, const void *from, size_t len)
{
    return call_with_buffer(p, SYS_write, p->write_fd, from, NULL, len);
}

ssize_t client_pipe_read(const struct client_pipe *p, void *to, size_t len)
{
    size_t done = 0;

    while (done < len) {
        size_t part = len - done < COPIER_DETOUR_BYTES ? len - done : COPIER_DETOUR_BYTES;
        long r = call_with_buffer(p, SYS_read, p->own_read_fd, NULL, (uint8_t *)to + done, part);

        if (r <= 0)
            return done ? (ssize_t)done : r;
        done += (size_t)r;
        if ((size_t)r < part)
            break;
    }
    return (ssize_t)done;
}

ssize_t client_pipe_unread(const struct client_pipe *p)
{
    uint8_t *detour = copier_detour(copier(p));
    int bytes = 0;
    void *place = detour ? copier_seen_by_kernel(copier(p), detour) : &bytes;
    long r = call(p, SYS_ioctl, p->own_read_fd, FIONREAD, (long)place, 0);

    if (detour)
        memcpy(&bytes, detour, sizeof(bytes));
    return r < 0 ? r : bytes;
}

int client_pipe_copy(const struct client_pipe *p, size_t bytes)
{
    int copy[2];

    if (pipe2(copy, O_CLOEXEC | O_NONBLOCK) != 0)
        return -errno;
    fcntl(copy[1], F_SETPIPE_SZ, (int)bytes); /* if the pipe can't be made so large, it holds a part */
    long r = call(p, SYS_tee, p->own_read_fd, copy[1], (long)bytes, SPLICE_F_NONBLOCK);
    if (r == -ETIMEDOUT) { /* the lost call may hold the lock of this pipe */
        fd_closer_close(copy[0], p->mem->owner);
        fd_closer_close(copy[1], p->mem->owner);
        return (int)r;
    }
    close(copy[1]);
    if (r < 0)
        close(copy[0]);
    return r < 0 ? (int)r : copy[0];
}

static int open_own_read_end(int write_fd)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", write_fd);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int client_pipe_init(struct client_pipe *p, struct client_mem *mem)
{
    int fds[2], rc;

    *p = (struct client_pipe){mem, -1, -1, -1};
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -errno;
    rc = fcntl(fds[1], F_SETFL, O_NONBLOCK) != 0 ? -errno : open_own_read_end(fds[1]);
    if (rc < 0) {
        close(fds[0]);
        close(fds[1]);
        return rc;
    }
    p->read_fd = fds[0];
    p->write_fd = fds[1];
    p->own_read_fd = rc;
    return 0;
}

/* The end of a pipe waits for its lock, too. The descriptor is free when a close() is lost. */
static void close_end(const struct client_pipe *p, int fd)
{
    if (p->mem && p->mem->stuck)
        fd_closer_close(fd, p->mem->owner);
    else
        call(p, SYS_close, fd, 0, 0, 0);
}

void client_pipe_fini(struct client_pipe *p)
{
    if (p->read_fd >= 0)
        close(p->read_fd);
    close_end(p, p->own_read_fd);
    close_end(p, p->write_fd);
    *p = (struct client_pipe){NULL, -1, -1, -1};
}
