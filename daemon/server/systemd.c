// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/systemd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/session/control_msg.h"

/* Clients to refuse at each socket: more than a backlog holds. A client that connects in a loop must not keep the
 * daemon alive. */
#define REFUSALS_MAX 1024
/* Time for all refusals together. A client sends its request at once. */
#define REFUSAL_MS 1000

/* The number of descriptors, from SD_LISTEN_FDS_START on, that the service manager passed. */
static int passed;

/* Writes the path of the socket. False if clients can't connect to it: it is of another kind, or it has no path. */
static bool is_control_socket(int fd, char path[108])
{
    struct sockaddr_un sa;
    socklen_t len = sizeof(sa);

    memset(&sa, 0, sizeof(sa));
    if (sd_is_socket_unix(fd, SOCK_SEQPACKET, 1, NULL, 0) <= 0 || getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
        return false;
    if (sa.sun_path[0] != '/' || memchr(sa.sun_path, 0, sizeof(sa.sun_path)) == NULL)
        return false; /* no name, or an abstract one: clients look for a file */
    memcpy(path, sa.sun_path, sizeof(sa.sun_path));
    return true;
}

int systemd_socket(char path[108], char why[ERROR_TEXT_MAX])
{
    int fd = SD_LISTEN_FDS_START, n = sd_listen_fds(1);

    if (n == 0)
        return -ENOENT;
    if (n > 0)
        passed = n;
    if (n != 1 || !is_control_socket(fd, path)) {
        snprintf(why, ERROR_TEXT_MAX,
                 "what the service manager passed is not one listening SOCK_SEQPACKET socket with a path "
                 "(in a unit: ListenSequentialPacket=/run/pumice/" PM_SOCKET_NAME ")");
        return -EINVAL;
    }
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
        snprintf(why, ERROR_TEXT_MAX, "the service manager's socket: %s", strerror(errno));
        return -EINVAL;
    }
    return fd;
}

/* Answers the first request of a client. An answer before the request would be lost: a client that finds the connection
 * closed while it sends does not read. */
static void refuse(int sock, const char *why, uint64_t end)
{
    struct pollfd p = {.fd = sock, .events = POLLIN};
    struct control_reply rp = {.status = 0};
    struct control_request rq;
    uint64_t now = clock_ns();

    if (poll(&p, 1, now < end ? (int)((end - now) / NS_PER_MS) : 0) == 1 && control_recv(sock, (uid_t)-1, &rq) == 1) {
        control_request_fini(&rq);
        rp.status = control_fail(&rp, -ENODEV, "the daemon can't start: %s", why);
        control_send(sock, &rp);
    }
    close(sock);
}

/* Empties a descriptor. If it listens, accepts and refuses the connections. Otherwise reads the waiting data. */
static void empty(int fd, const char *why, uint64_t end)
{
    bool listens = sd_is_socket(fd, AF_UNSPEC, 0, 1) > 0;
    bool has_clients = sd_is_socket(fd, AF_UNIX, SOCK_SEQPACKET, 1) > 0;
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
        if (has_clients)
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
        empty(SD_LISTEN_FDS_START + i, why, end);
}
