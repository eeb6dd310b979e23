// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/session/control.h"

#define FIRST_FD 3 /* SD_LISTEN_FDS_START */
#define REFUSALS_MAX 1024 /* at each socket: more than a backlog has; who connects in a loop must not keep us */
#define REFUSAL_MS 1000 /* for all of them together; a client sends its request at once */

static int passed; /* so many descriptors from FIRST_FD on are the service manager's */

/* The value of a variable that must be a number; -1: it is not there, or none. */
static long number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    long n;

    if (!text || text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    n = strtol(text, &end, 10);
    return errno || *end ? -1 : n;
}

static bool socket_option_is(int fd, int option, int wanted)
{
    int value;
    socklen_t len = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == wanted;
}

/* The path of the socket; it must be of the kind that clients connect to. */
static bool is_ours(int fd, char path[108])
{
    struct sockaddr_un sa;
    socklen_t len = sizeof(sa);

    memset(&sa, 0, sizeof(sa));
    if (!socket_option_is(fd, SO_DOMAIN, AF_UNIX) || !socket_option_is(fd, SO_TYPE, SOCK_SEQPACKET) ||
        !socket_option_is(fd, SO_ACCEPTCONN, 1) || getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
        return false;
    if (sa.sun_path[0] != '/' || memchr(sa.sun_path, 0, sizeof(sa.sun_path)) == NULL)
        return false; /* no name, or an abstract one: clients look for a file */
    memcpy(path, sa.sun_path, sizeof(sa.sun_path));
    return true;
}

int systemd_socket(char path[108], char why[ERROR_TEXT_MAX])
{
    long pid = number("LISTEN_PID"), fds = number("LISTEN_FDS");

    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (pid != getpid() || fds < 1) /* they may be meant for the process that started us */
        return -ENOENT;
    while (passed < fds && fcntl(FIRST_FD + passed, F_SETFD, FD_CLOEXEC) == 0)
        passed++;
    if (fds != 1 || !is_ours(FIRST_FD, path)) {
        snprintf(why, ERROR_TEXT_MAX,
                 "what the service manager passed is not one listening SOCK_SEQPACKET socket with a path "
                 "(in a unit: ListenSequentialPacket=/run/pumice/" PM_SOCKET_NAME ")");
        return -EINVAL;
    }
    if (fcntl(FIRST_FD, F_SETFL, fcntl(FIRST_FD, F_GETFL) | O_NONBLOCK) != 0) {
        snprintf(why, ERROR_TEXT_MAX, "the service manager's socket: %s", strerror(errno));
        return -EINVAL;
    }
    return FIRST_FD;
}

/* A reply needs a request: a client that finds the connection closed while it sends does not look for one. */
static void refuse(int sock, const char *why, uint64_t end)
{
    struct pollfd p = {.fd = sock, .events = POLLIN};
    struct control_reply rp = {.status = 0};
    struct control_request rq;
    uint64_t now = clock_ns();

    if (poll(&p, 1, now < end ? (int)((end - now) / NS_PER_MS) : 0) == 1 && control_recv(sock, &rq) == 1) {
        control_request_fini(&rq);
        rp.status = control_fail(&rp, -ENODEV, "the daemon can't start: %s", why);
        control_send(sock, &rp);
    }
    close(sock);
}

/* Takes what waits at a descriptor; whoever speaks the clients' protocol is told why. What does not listen has datagrams, or bytes. */
static void take_all(int fd, const char *why, uint64_t end)
{
    bool listens = socket_option_is(fd, SO_ACCEPTCONN, 1);
    bool speaks = socket_option_is(fd, SO_DOMAIN, AF_UNIX) && socket_option_is(fd, SO_TYPE, SOCK_SEQPACKET);
    char bytes[4096];
    int sock;

    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
        return;
    for (unsigned i = 0; i < REFUSALS_MAX; i++) {
        if (!listens) {
            if (read(fd, bytes, sizeof(bytes)) < 0)
                return;
            continue;
        }
        sock = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (sock < 0)
            return;
        if (speaks)
            refuse(sock, why, end);
        else
            close(sock);
    }
}

void systemd_refuse(const char *why)
{
    uint64_t end = clock_ns() + REFUSAL_MS * NS_PER_MS;
    char path[108], other[ERROR_TEXT_MAX];

    if (!passed)
        systemd_socket(path, other);
    for (int i = 0; i < passed; i++)
        take_all(FIRST_FD + i, why, end);
}

int systemd_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    int fd, rc;

    if (len == 0)
        return 0;
    if ((path[0] != '/' && path[0] != '@') || len >= sizeof(sa.sun_path))
        return -EINVAL;
    memcpy(sa.sun_path, path, len);
    if (path[0] == '@') /* an abstract name */
        sa.sun_path[0] = 0;
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    len += offsetof(struct sockaddr_un, sun_path);
    rc = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&sa, (socklen_t)len) < 0 ? -errno : 0;
    close(fd);
    return rc;
}
