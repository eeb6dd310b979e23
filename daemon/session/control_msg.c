// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/session/control_msg.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/threads/fd_closer.h"

/* The most descriptors of one message (SCM_MAX_FD of the kernel). There must be room for all of them, because the kernel
 * closes those for which there is none, in the thread that receives. */
#define SENT_FDS_MAX 253

static void take_fds(struct msghdr *m, struct control_request *rq)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        size_t n;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
            if (rq->fds < PM_FDS_MAX)
                rq->fd[rq->fds++] = fd;
            else
                fd_closer_close(fd, rq->owner);
        }
    }
}

/* Does the next message carry descriptors? It stays where it is. Without room for descriptors, the kernel says that it
 * cut them off. */
static bool brings_fds(int sock)
{
    struct msghdr m = {.msg_iov = NULL};

    return recvmsg(sock, &m, MSG_DONTWAIT | MSG_PEEK) >= 0 && m.msg_flags & MSG_CTRUNC;
}

static void refuse_fds(int sock)
{
    struct control_reply rp = {.fds = 0};

    rp.status = control_fail(&rp, -EBUSY,
                             "the daemon takes no more descriptors now: it can't close those that this user sent "
                             "before (sockets that linger, or files on a server that does not answer), or it has too "
                             "many open files");
    control_send(sock, &rp);
}

int control_recv(int sock, uid_t owner, struct control_request *rq)
{
    struct pm_request head;
    struct iovec iov[2] = {{&head, sizeof(head)}, {rq->payload, sizeof(rq->payload)}};
    _Alignas(struct cmsghdr) uint8_t ctl[CMSG_SPACE(SENT_FDS_MAX * sizeof(int))];
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2, .msg_control = ctl, .msg_controllen = sizeof(ctl)};
    ssize_t n;

    rq->fds = 0;
    rq->owner = owner;
    if (fd_closer_crowded(owner) && brings_fds(sock)) {
        refuse_fds(sock);
        return -1;
    }
    do {
        n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n < 0)
        return -1;
    take_fds(&m, rq);
    if ((size_t)n < sizeof(head) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || head.len != (size_t)n - sizeof(head)) {
        control_request_fini(rq);
        return -1;
    }
    rq->op = head.op;
    rq->len = head.len;
    return 1;
}

void control_request_fini(struct control_request *rq)
{
    for (unsigned i = 0; i < rq->fds; i++) {
        if (rq->fd[i] >= 0)
            fd_closer_close(rq->fd[i], rq->owner);
    }
    rq->fds = 0;
}

int control_take_fd(struct control_request *rq)
{
    for (unsigned i = 0; i < rq->fds; i++) {
        int fd = rq->fd[i];

        rq->fd[i] = -1;
        if (fd >= 0)
            return fd;
    }
    return -1;
}

bool control_send(int sock, struct control_reply *rp)
{
    struct pm_reply head = {rp->status, rp->len};
    struct iovec iov[2] = {{&head, sizeof(head)}, {rp->payload, rp->len}};
    _Alignas(struct cmsghdr) uint8_t ctl[CMSG_SPACE(PM_FDS_MAX * sizeof(int))] = {0};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
    ssize_t n;

    if (rp->fds) {
        struct cmsghdr *c = (struct cmsghdr *)(void *)ctl;

        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(rp->fds * sizeof(int));
        memcpy(CMSG_DATA(c), rp->fd, rp->fds * sizeof(int));
        m.msg_control = ctl;
        m.msg_controllen = CMSG_SPACE(rp->fds * sizeof(int));
    }
    do {
        /* A client sends one request at a time, so the socket has room for the reply, unless the client breaks that
         * rule. */
        n = sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    for (unsigned i = 0; i < rp->fds; i++)
        close(rp->fd[i]);
    rp->fds = 0;
    return n >= 0;
}

void *control_payload(struct control_reply *rp, size_t size)
{
    rp->len = (uint32_t)size;
    memset(rp->payload, 0, size);
    return rp->payload;
}

void control_attach(struct control_reply *rp, int fd)
{
    rp->fd[rp->fds++] = fd;
}

static void write_text(struct control_reply *rp, const char *fmt, va_list ap)
{
    int n = vsnprintf((char *)rp->payload, PM_WHY_MAX, fmt, ap);

    if (n < 0)
        n = 0;
    rp->len = n < PM_WHY_MAX ? (uint32_t)n + 1 : PM_WHY_MAX;
}

int control_fail(struct control_reply *rp, int err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_text(rp, fmt, ap);
    va_end(ap);
    return err;
}

int control_explain(struct control_reply *rp, int err, const char *fmt, ...)
{
    va_list ap;

    if (rp->len)
        return err;
    va_start(ap, fmt);
    write_text(rp, fmt, ap);
    va_end(ap);
    return err;
}
