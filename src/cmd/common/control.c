// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/common/control.h"

#include <errno.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/cmd/common/cmd.h"

#define REPLY_SECONDS 10 /* a daemon that doesn't answer for so long is stuck */

const char *lab_from_env(unsigned *hosts)
{
    const char *lab = getenv(PM_ENV_LAB), *num = getenv(PM_ENV_HOSTS);
    long n;

    if (!lab || !lab[0])
        return NULL;
    n = num ? parse_number(num, 1, HOSTS_MAX) : -1;
    if (n < 0) {
        say("%s is set, but %s is %s%s%s: was it changed inside of pumice run?", PM_ENV_LAB, PM_ENV_HOSTS,
            num ? "'" : "", num ? num : "not", num ? "'" : "");
        return NULL;
    }
    *hosts = (unsigned)n;
    return lab;
}

int lab_socket(const char *dir, unsigned host, char *out)
{
    int n = snprintf(out, SOCKET_PATH_MAX, "%s/host%u.sock", dir, host);

    return n < SOCKET_PATH_MAX ? 0 : -1;
}

static int use_path(struct targets *t, const char *path)
{
    *t = (struct targets){.n = 1, .first = -1};
    if (strlen(path) >= sizeof(t->socket)) {
        say("the path of the control socket is longer than %zu characters: %s", sizeof(t->socket) - 1, path);
        return -1;
    }
    strcpy(t->socket, path);
    return 0;
}

/* Whether the socket is there and in a directory of this user or root: anybody could make one in /tmp. */
static bool trustworthy(const char *path)
{
    char dir[PATH_MAX];
    struct stat st;

    snprintf(dir, sizeof(dir), "%s", path);
    *strrchr(dir, '/') = 0;
    return access(path, F_OK) == 0 && lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
           (st.st_uid == getuid() || st.st_uid == 0);
}

static int use_default(struct targets *t)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *path = getenv(PM_ENV_SOCKET);
    char own[PATH_MAX];

    if (path && path[0])
        return use_path(t, path);
    if (runtime && runtime[0] == '/') {
        snprintf(own, sizeof(own), "%s/pumice/" PM_SOCKET_NAME, runtime);
        if (trustworthy(own))
            return use_path(t, own);
    }
    snprintf(own, sizeof(own), "/tmp/pumice-%u/" PM_SOCKET_NAME, (unsigned)getuid());
    if (access("/run/pumice/" PM_SOCKET_NAME, F_OK) != 0 && trustworthy(own))
        return use_path(t, own);
    return use_path(t, "/run/pumice/" PM_SOCKET_NAME);
}

int targets_find(struct targets *t, const char *socket, int host)
{
    unsigned hosts = 0;
    const char *lab;

    if (socket)
        return use_path(t, socket);
    lab = lab_from_env(&hosts);
    if (!lab && getenv(PM_ENV_LAB))
        return -1;
    if (!lab && host >= 0) {
        say("--host is for use inside of pumice run --hosts N");
        return -1;
    }
    if (!lab)
        return use_default(t);
    if (host >= (int)hosts) {
        say("there is no host %d; the hosts of this lab are 0 to %u", host, hosts - 1);
        return -1;
    }
    *t = (struct targets){.n = host < 0 ? hosts : 1, .first = host < 0 ? 0 : host, .lab = lab};
    return 0;
}

void targets_socket(const struct targets *t, unsigned i, char *out)
{
    if (t->lab)
        lab_socket(t->lab, (unsigned)t->first + i, out);
    else
        strcpy(out, t->socket);
}

int control_open(const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = REPLY_SECONDS};
    int sock;

    if (strlen(path) >= sizeof(addr.sun_path))
        return -ENAMETOOLONG;
    strcpy(addr.sun_path, path);
    sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return -errno;
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(sock, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
        int err = errno;

        close(sock);
        return -err;
    }
    return sock;
}

/* Takes the descriptors out of a reply; the first is kept if somebody wants it. */
static void take_fds(struct msghdr *msg, int *wanted)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
            if (wanted && *wanted < 0)
                *wanted = fd;
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
    do {
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
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
                 "the daemon there is for the members of the group %s (as root: usermod -aG %s USER; then log in anew)",
                 g->gr_name, g->gr_name);
    else
        snprintf(out, size, "the daemon belongs to another user");
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
        hint = "; is a daemon running? For one of your own: pumice run -- COMMAND";
        break;
    case ECONNREFUSED:
        hint = "; the daemon that made this socket is gone, or its service has failed (systemctl status pumiced)";
        break;
    case EACCES:
        control_users(path, users, sizeof(users));
        say("no answer at %s: %s; %s", path, strerror(-err), users);
        return;
    case EAGAIN:
        hint = "; the daemon is there but does not answer";
        break;
    case ECONNRESET:
    case EPROTO:
        hint = "; does the daemon have the same version as this command?";
        break;
    }
    say("no answer at %s: %s%s", path, strerror(-err), hint);
}
