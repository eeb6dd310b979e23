// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/session/session.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/verbs/base/cancel.h"
#include "src/verbs/base/explain.h"

static int connect_to(struct vb_session *s, const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(addr.sun_path))
        return -ENAMETOOLONG;
    strcpy(addr.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    while (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
        if (errno == EINTR)
            continue;
        int e = errno;
        vb_close(fd);
        return -e;
    }
    atomic_store(&s->fd, fd);
    pthread_mutex_init(&s->lock, NULL);
    return 0;
}

int vb_session_connect(struct vb_session *s, const char *path)
{
    int was = vb_cancel_off();
    int rc = connect_to(s, path);
    vb_cancel_restore(was);
    return rc;
}

void vb_session_close(struct vb_session *s)
{
    int fd = atomic_exchange(&s->fd, -1);
    if (fd >= 0)
        vb_close(fd);
}

static int send_request(int fd, const struct vb_call *call)
{
    struct pm_request head = {.op = call->op, .len = (uint32_t)call->req_len};
    struct iovec iov[2] = {{&head, sizeof(head)}, {(void *)call->req, call->req_len}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = call->req_len ? 2 : 1};
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(PM_FDS_MAX * sizeof(int))];
    } control;
    size_t len = call->num_send_fds * sizeof(int);
    if (len) {
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(len);
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(len);
        memcpy(CMSG_DATA(c), call->send_fds, len);
    }
    ssize_t n;
    do
        n = sendmsg(fd, &msg, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0 && len && errno == EBADF)
        return -EBADF; /* a descriptor of the program is closed */
    return n < 0 ? -EIO : 0;
}

/* Takes the descriptors out of a message. Returns their number. */
static unsigned take_fds(struct msghdr *msg, int fds[PM_FDS_MAX])
{
    unsigned num = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0) && num < PM_FDS_MAX; at += sizeof(int))
            memcpy(&fds[num++], CMSG_DATA(c) + at, sizeof(int));
    }
    return num;
}

static int receive_reply(int fd, const struct vb_call *call)
{
    struct pm_reply head;
    char payload[PM_MSG_MAX - sizeof(head)];
    struct iovec iov[2] = {{&head, sizeof(head)}, {payload, sizeof(payload)}};
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int) * PM_FDS_MAX)];
    } control;
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t n;
    do /* A daemon that refuses a request unread closes the connection. The kernel says ECONNRESET once, before the reply. */
        n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n <= 0)
        return -EIO;
    int fds[PM_FDS_MAX];
    unsigned num = take_fds(&msg, fds);
    size_t len = (size_t)n - sizeof(head);
    bool formed = (size_t)n >= sizeof(head) && head.len == len && !(msg.msg_flags & MSG_TRUNC);
    bool lost = msg.msg_flags & MSG_CTRUNC; /* the process is at its limit of descriptors */
    bool fits = call->rep_size ? len <= call->rep_len : len == call->rep_len;
    bool done = formed && head.status == 0 && fits && (lost || num == call->num_fds);
    if (done && len)
        memcpy(call->rep, payload, len);
    if (done && call->rep_size)
        *call->rep_size = len;
    if (done && !lost) {
        if (num)
            memcpy(call->fds, fds, num * sizeof(int));
        return 0;
    }
    while (num > 0)
        vb_close(fds[--num]);
    if (done)
        return -EMFILE;
    if (!formed || head.status >= 0)
        return -EPROTO;
    if (call->why)
        snprintf(call->why, PM_WHY_MAX, "%.*s", (int)len, payload);
    if (len && vb_explains())
        fprintf(stderr, "pumice: request %u: %s: %.*s\n", call->op, strerror(-head.status), (int)len, payload);
    return head.status;
}

int vb_session_call(struct vb_session *s, const struct vb_call *call)
{
    if (call->req_len > PM_MSG_MAX - sizeof(struct pm_request))
        return -EINVAL;
    if (call->why)
        call->why[0] = 0;
    int was = vb_cancel_off();
    pthread_mutex_lock(&s->lock);
    int fd = atomic_load(&s->fd);
    int rc = fd < 0 ? -EIO : send_request(fd, call);
    if (rc == 0)
        rc = receive_reply(fd, call);
    if (rc == 0 && call->done)
        call->done(call);
    pthread_mutex_unlock(&s->lock);
    vb_cancel_restore(was);
    return rc;
}
