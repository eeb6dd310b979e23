// SPDX-License-Identifier: BSD-2-Clause
/* Descriptors whose close() blocks: TCP sockets with SO_LINGER and unsent data. A client sends them in every way in which
 * the daemon gets descriptors. No thread of the daemon waits for them. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "tests/verbs/hostile/hostile.h"

/* A socket whose last close() blocks for an hour: its peer does not read. */
static int lingering(void)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct linger forever = {1, 3600};
    static char data[65536];
    int small = 4096; /* so that many of them need little memory */
    socklen_t len = sizeof(sa);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    need(listener >= 0 && fd >= 0 && bind(listener, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
         listen(listener, 1) == 0 && getsockname(listener, (struct sockaddr *)&sa, &len) == 0 &&
         connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0);
    while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
        continue;
    need(setsockopt(fd, SOL_SOCKET, SO_LINGER, &forever, sizeof(forever)) == 0);
    return fd;
}

/* Sends n lingering sockets with one request. The copies of this process are closed before the daemon gets the message,
 * so the last close() is the daemon's. */
static void send_lingering(int sock, uint32_t op, const void *rq, size_t len, unsigned n)
{
    int fd[253];

    for (unsigned i = 0; i < n; i++)
        fd[i] = lingering();
    hostile_pause(true);
    need(hostile_send(sock, op, rq, len, fd, n));
    for (unsigned i = 0; i < n; i++)
        close(fd[i]);
    hostile_pause(false);
}

static void with_a_request(const struct hostile *h)
{
    int sock = hostile_connect(h);

    send_lingering(sock, PM_OP_LIST, NULL, 0, 1);
    ok(hostile_reply(sock, NULL, 0) == 0, "LIST with a socket is answered");
}

static void with_a_request_of_a_session(const struct hostile *h)
{
    int sock = hostile_connect(h);

    need(hostile_open(sock, NULL, 0) == 0);
    send_lingering(sock, PM_OP_ALLOC_PD, NULL, 0, 1);
    ok(hostile_reply(sock, NULL, 0) == 0, "ALLOC_PD with a socket is answered");
}

static void more_than_the_daemon_takes(const struct hostile *h)
{
    int sock = hostile_connect(h);

    send_lingering(sock, PM_OP_LIST, NULL, 0, 8);
    ok(hostile_reply(sock, NULL, 0) == 0, "LIST with eight sockets is answered");
}

static void as_memory(const struct hostile *h)
{
    int sock = hostile_connect(h), fd = lingering();

    ok(hostile_open(sock, &fd, 1) == 0, "OPEN with a socket in the place of /proc/self/mem");
    close(fd);
    close(sock);
}

static void as_an_xrc_domain(const struct hostile *h)
{
    struct pm_open_xrcd_req rq = {.has_fd = 1, .oflags = O_CREAT};
    int sock = hostile_connect(h);

    need(hostile_open(sock, NULL, 0) == 0);
    send_lingering(sock, PM_OP_OPEN_XRCD, &rq, sizeof(rq), 1);
    ok(hostile_reply(sock, NULL, 0) <= 0, "OPEN_XRCD with a socket is answered");
    close(sock);
}

/* The daemon never receives these messages: the first one ends the connection. */
static void unread(const struct hostile *h)
{
    int sock = hostile_connect(h);

    hostile_pause(true);
    need(send(sock, "x", 1, 0) == 1);
    for (unsigned i = 0; i < 4; i++) {
        int fd = lingering();

        need(hostile_send(sock, PM_OP_LIST, NULL, 0, &fd, 1));
        close(fd);
    }
    hostile_pause(false);
    ok(hostile_reply(sock, NULL, 0) == 2, "a message of another form ends the connection");
    close(sock);
}

/* The open files that the daemon counts for this user. -1: none. */
static long open_files(const struct hostile *h)
{
    char command[512], line[256];
    long n = -1;

    snprintf(command, sizeof(command), "%s/bin/pumice status --only quotas --socket %s", getenv("VT_BUILD"), h->socket);
    FILE *f = popen(command, "r");
    while (f && fgets(line, sizeof(line), f))
        sscanf(line, "%*u descriptors %*s %ld", &n);
    if (f)
        pclose(f);
    return n;
}

/* The same with many connections. The kernel does not linger over their sockets, so they don't pile up. Otherwise the user
 * could take all open files of the daemon. */
static void unread_in_many(const struct hostile *h)
{
    enum { MANY = 60 };
    int sock[MANY];

    hostile_pause(true);
    for (unsigned i = 0; i < MANY; i++) {
        int fd = lingering();

        sock[i] = hostile_connect(h);
        need(send(sock[i], "x", 1, 0) == 1 && hostile_send(sock[i], PM_OP_LIST, NULL, 0, &fd, 1));
        close(fd);
    }
    hostile_pause(false);
    for (unsigned i = 0; i < MANY; i++) {
        need(hostile_reply(sock[i], NULL, 0) == 2);
        close(sock[i]);
    }
    /* The daemon ends a connection before the thread that closes files comes to its socket. */
    long n = open_files(h);
    for (int i = 0; i < 100 && n >= 10; i++) {
        usleep(50000);
        n = open_files(h);
    }
    char text[128];
    snprintf(text, sizeof(text), "the sockets of ended connections with descriptors in them are closed: %ld open", n);
    ok(n >= 0 && n < 10, text);
}

int main(void)
{
    struct hostile h;

    VT_OWN("descriptors whose close blocks");
    hostile_start(&h, -1, NULL, NULL);
    hostile_attack(&h, with_a_request, "a socket with a request");
    hostile_attack(&h, with_a_request_of_a_session, "a socket with a request of a session");
    hostile_attack(&h, more_than_the_daemon_takes, "too many sockets with a request");
    hostile_attack(&h, as_memory, "a socket in the place of memory");
    hostile_attack(&h, as_an_xrc_domain, "a socket in the place of an XRC domain's file");
    hostile_attack(&h, unread, "messages with sockets that nobody reads");
    hostile_attack(&h, unread_in_many, "many connections with such messages");
    ok(hostile_stop(&h), "the daemon ends");
    return vt_failed;
}
