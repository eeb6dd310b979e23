// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/common/control.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"

#define REPLY_SECONDS 10 /* a daemon that does not answer within this time is stuck */

int control_open(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = REPLY_SECONDS};

    if (strlen(path) >= sizeof(addr.sun_path))
        return -ENAMETOOLONG;
    strcpy(addr.sun_path, path);
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return -errno;
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    if (connect(sock, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
        int err = errno;

        close(sock);
        return -err;
    }
    return sock;
}

/* Takes the descriptors out of a reply. Stores the first one in *first, unless first is NULL, and closes the
 * others. *first is -1 before the call. */
static void take_fds(struct msghdr *msg, int *first)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
            if (first && *first < 0)
                *first = fd;
            else
                close(fd);
        }
    }
}

static int send_request(int sock, const struct control_call *call)
{
    struct pm_request head = {.op = call->op, .len = call->req_len};
    struct iovec iov[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)call->req, call->req_len}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = call->req_len ? 2 : 1};

    return sendmsg(sock, &msg, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int control_call(int sock, struct control_call *call)
{
    struct pm_reply head;
    char text[PM_MSG_MAX];
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(PM_FDS_MAX * sizeof(int))];
    } control;
    struct iovec iov[2] = {{&head, sizeof(head)}, {text, sizeof(text)}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof(control)};
    int err = send_request(sock, call);
    ssize_t n;

    call->why[0] = 0;
    if (call->fd)
        *call->fd = -1;
    if (err)
        return err;
    do { /* a daemon that refuses a request unread closes the connection: the kernel says ECONNRESET once, before the reply */
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    } while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0)
        return -errno;
    take_fds(&msg, call->fd);
    if (n == 0)
        return -ECONNRESET;
    if ((size_t)n < sizeof(head) || head.len != (size_t)n - sizeof(head))
        return -EPROTO;
    if (head.status) {
        snprintf(call->why, sizeof(call->why), "%.*s", (int)head.len, text);
        return head.status < 0 ? head.status : -EPROTO;
    }
    if (head.len > call->rep_len)
        return -EPROTO;
    if (head.len)
        memcpy(call->rep, text, head.len);
    call->rep_len = head.len;
    return 0;
}

void control_users(const char *path, char *out, size_t size)
{
    const struct group *g = NULL;
    struct stat st;

    if (stat(path, &st) == 0 && (st.st_mode & S_IWGRP))
        g = getgrgid(st.st_gid);
    if (g)
        snprintf(out, size,
                 "only members of the group %s may use this daemon (as root: usermod -aG %s USER; then log in again)",
                 g->gr_name, g->gr_name);
    else
        snprintf(out, size, "this daemon belongs to another user");
}

void control_explain(const char *path, int err, const char *why)
{
    char users[256];
    const char *hint = "";

    if (why[0]) {
        say("%s: %s", path, why);
        return;
    }
    switch (-err) {
    case ENOENT:
        hint = "; is a daemon running? To start a private one: pumice run -- COMMAND";
        break;
    case ECONNREFUSED:
        hint = "; the daemon of this socket has ended, or its service has failed (systemctl status pumiced)";
        break;
    case EACCES:
        control_users(path, users, sizeof(users));
        say("no answer at %s: %s; %s", path, strerror(-err), users);
        return;
    case EAGAIN:
        hint = "; the daemon is running but does not answer";
        break;
    case ECONNRESET:
    case EPROTO:
        hint = "; do the daemon and this command have the same version?";
        break;
    }
    say("no answer at %s: %s%s", path, strerror(-err), hint);
}

/* --- documents ---------------------------------------------------------------------------------------------------- */

/* Reads the document in a memfd. Returns NULL on an error, with a message in why (PM_WHY_MAX bytes). */
static json_t *load(int fd, char *why)
{
    struct stat st;
    json_error_t error;

    if (fstat(fd, &st) != 0 || st.st_size <= 0) {
        snprintf(why, PM_WHY_MAX, "the daemon sent an empty status");
        return NULL;
    }
    char *text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED) {
        snprintf(why, PM_WHY_MAX, "can't read the status: %s", strerror(errno));
        return NULL;
    }
    size_t len = strnlen(text, (size_t)st.st_size); /* the memfd may be padded to whole pages */
    json_t *document = json_loadb(text, len, 0, &error);
    munmap(text, (size_t)st.st_size);
    if (!document)
        snprintf(why, PM_WHY_MAX, "the status is not valid JSON: %.160s in line %d", error.text, error.line);
    return document;
}

/* Requests a document. On an error returns NULL, and sets *err and why (PM_WHY_MAX bytes). why is a message or "". */
static json_t *fetch(const char *path, uint32_t op, const void *req, uint32_t len, int *err, char *why)
{
    int fd = -1, sock = control_open(path);
    struct control_call call = {.op = op, .req = req, .req_len = len, .fd = &fd};
    json_t *document = NULL;

    *err = sock < 0 ? sock : control_call(sock, &call);
    memcpy(why, call.why, sizeof(call.why));
    if (sock >= 0)
        close(sock);
    if (!*err)
        document = load(fd, why);
    if (fd >= 0)
        close(fd);
    return document;
}

json_t *control_fetch(const char *path, uint32_t op, const void *req, uint32_t len)
{
    char why[PM_WHY_MAX];
    int err;
    json_t *document = fetch(path, op, req, len, &err, why);

    if (!document)
        control_explain(path, err, why);
    return document;
}

json_t *control_fetch_quietly(const char *path, uint32_t op, const void *req, uint32_t len)
{
    char why[PM_WHY_MAX];
    int err;

    return fetch(path, op, req, len, &err, why);
}
