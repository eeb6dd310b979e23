// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/base/event_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* fcntl() is one of the functions that this library replaces. */
static int flags_of(int fd)
{
    return (int)syscall(SYS_fcntl, fd, F_GETFL);
}

static int control(int fd, int op, int pipe)
{
    struct epoll_event e = {.events = EPOLLIN};
    return epoll_ctl(fd, op, pipe, &e) == 0 ? 0 : -errno;
}

int vb_event_fd_create(void)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int vb_event_fd_watch(int fd, int pipe)
{
    return control(fd, EPOLL_CTL_ADD, pipe);
}

/* The program may change the flags at any time, so they are copied before each read. */
static void copy_flags(int fd, int pipe)
{
    int want = flags_of(fd), has = flags_of(pipe);
    if (want >= 0 && has >= 0 && ((want ^ has) & O_NONBLOCK))
        syscall(SYS_fcntl, pipe, F_SETFL, has ^ O_NONBLOCK);
}

ssize_t vb_event_fd_read(int fd, int pipe, void *to, size_t len)
{
    copy_flags(fd, pipe);
    return read(pipe, to, len);
}

void vb_event_fd_silence(int fd, int pipe)
{
    control(fd, EPOLL_CTL_DEL, pipe);
}

int vb_event_fd_wait(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (!(flags_of(fd) & O_NONBLOCK) && poll(&p, 1, -1) < 0)
        return -1;
    errno = EAGAIN;
    return -1;
}

static bool has_ended(int pipe)
{
    struct pollfd p = {.fd = pipe};
    struct timespec at_once = {0};
    /* syscall() and not poll(), which is a cancellation point: see cancel.h. */
    return syscall(SYS_ppoll, &p, 1, &at_once, NULL, 0) > 0 && (p.revents & POLLHUP);
}

bool vb_event_fd_has(int fd, int pipe)
{
    int rc = control(fd, EPOLL_CTL_MOD, pipe); /* changes nothing */
    return rc == 0 || (rc == -ENOENT && has_ended(pipe)); /* after vb_event_fd_silence */
}
