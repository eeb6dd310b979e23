// SPDX-License-Identifier: BSD-2-Clause
#include "tests/failing/daemon_state.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "pumice/abi.h"

static int connect_to(const char *path)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = 5};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
        connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Returns 0, with the document that the daemon sends, which the caller releases; or an error as daemon_state_ask. */
static int ask_status(const char *path, json_t **document)
{
    struct pm_request rq = {.op = PM_OP_STATUS};
    struct pm_reply head;
    struct iovec iov = {&head, sizeof(head)};
    _Alignas(struct cmsghdr) char ctl[CMSG_SPACE(sizeof(int))];
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof(ctl)};
    int sock = connect_to(path), fd = -1;

    *document = NULL;
    if (sock < 0)
        return errno;
    ssize_t n = send(sock, &rq, sizeof(rq), MSG_NOSIGNAL) == sizeof(rq) ? recvmsg(sock, &m, MSG_CMSG_CLOEXEC) : 0;
    int error = n > 0 ? -head.status : n < 0 && errno == EAGAIN ? ETIMEDOUT : EPIPE;
    close(sock);
    if (error)
        return error;
    if (!CMSG_FIRSTHDR(&m))
        return EPROTO;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
    *document = json_loadfd(fd, 0, NULL);
    close(fd);
    return *document ? 0 : EPROTO;
}

int daemon_state_ask(const char *path)
{
    json_t *status;
    int error = ask_status(path, &status);

    json_decref(status);
    return error;
}

static unsigned count_objects(const json_t *status)
{
    static const char *const lists[] = {"sessions",   "qps", "srqs", "xrcds", "cqs",
                                        "comp_cntrs", "mrs", "mws",  "groups"};
    unsigned n = 0;
    const json_t *d;
    size_t i;

    json_array_foreach (json_object_get(status, "devices"), i, d) {
        for (unsigned k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
            n += (unsigned)json_array_size(json_object_get(d, lists[k]));
    }
    d = json_object_get(status, "cm");
    n += (unsigned)json_array_size(json_object_get(d, "listeners"));
    n += (unsigned)json_array_size(json_object_get(d, "connections"));
    return n;
}

/* Entries of a directory of /proc/PID. */
static unsigned count_entries(pid_t pid, const char *name)
{
    char path[64];
    unsigned n = 0;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static unsigned count_lines(pid_t pid)
{
    char path[64];
    unsigned n = 0;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *f = fopen(path, "re");
    for (int c; f && (c = getc(f)) != EOF;)
        n += c == '\n';
    if (f)
        fclose(f);
    return n;
}

bool daemon_state_read(const char *socket, pid_t pid, struct daemon_state *out)
{
    json_t *status;

    if (ask_status(socket, &status) != 0)
        return false;
    out->objects = count_objects(status);
    json_decref(status);
    out->descriptors = count_entries(pid, "fd");
    out->threads = count_entries(pid, "task");
    out->mappings = count_lines(pid);
    return true;
}
