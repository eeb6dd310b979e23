// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/cm/host/cm_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/threads/fd_closer.h"
#include "daemon/threads/takeover.h"

/* The memory that the calls name. A lost call may still use it at any later time, so nobody looks at what is in it. */
static const char byte = 1;
static char sink[4096];

static long call(struct cm_pipe *p, long nr, long a, long b, long c, long d)
{
    if (p->stuck)
        return -ETIMEDOUT;
    if (!p->thread) {
        long r = syscall(nr, a, b, c, d);
        return r < 0 ? -errno : r;
    }
    long r = takeover_syscall(p->thread, p->limit_ms, nr, (long[6]){a, b, c, d});
    p->stuck = r == -ETIMEDOUT;
    return r;
}

int cm_pipe_init(struct cm_pipe *p, struct takeover *thread, unsigned limit_ms, uid_t owner, int *read_fd)
{
    int fds[2];

    *p = (struct cm_pipe){.thread = thread, .limit_ms = limit_ms, .write_fd = -1, .owner = owner};
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -errno;
    if (fcntl(fds[1], F_SETFL, O_NONBLOCK) != 0) {
        int rc = -errno;
        close(fds[0]);
        close(fds[1]);
        return rc;
    }
    *read_fd = fds[0];
    p->write_fd = fds[1];
    return 0;
}

/* The end of a pipe waits for its lock, too. The descriptor is free when a close() is lost. */
void cm_pipe_fini(struct cm_pipe *p)
{
    if (p->write_fd >= 0 && p->stuck)
        fd_closer_close(p->write_fd, p->owner);
    else if (p->write_fd >= 0)
        call(p, SYS_close, p->write_fd, 0, 0, 0);
    p->write_fd = -1;
}

bool cm_pipe_put(struct cm_pipe *p)
{
    return call(p, SYS_write, p->write_fd, (long)&byte, 1, 0) == 1;
}

/* Opens the other end of the pipe for a moment, because the daemon's own read end would count as a reader. The question
 * before it finds out whether the lock of the pipe is free: a lost open would leave a descriptor behind. */
void cm_pipe_take_back(struct cm_pipe *p, unsigned n)
{
    char path[64];
    long r = 1;

    if (n == 0 || call(p, SYS_ioctl, p->write_fd, FIONREAD, (long)sink, 0) < 0)
        return;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", p->write_fd);
    long fd = call(p, SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    while (n && r > 0) {
        r = call(p, SYS_read, fd, (long)sink, n < sizeof(sink) ? n : sizeof(sink), 0);
        n -= r > 0 ? (unsigned)r : 0;
    }
    if (call(p, SYS_close, fd, 0, 0, 0) < 0)
        fd_closer_close((int)fd, p->owner);
}

/* Takes no lock of the pipe. */
bool cm_pipe_has_reader(const struct cm_pipe *p)
{
    struct pollfd pfd = {.fd = p->write_fd};

    return poll(&pfd, 1, 0) >= 0 && !(pfd.revents & POLLERR);
}
