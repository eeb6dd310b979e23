// SPDX-License-Identifier: BSD-2-Clause
/* Sockets whose close() would block for an hour are closed at once, and no thread of the process waits for them. */
#include "daemon/threads/socket_reaper.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 20000

TestSuite(socket_reaper, .timeout = 120);

/* A TCP socket that lingers, because its peer does not read. */
static int lingering(int *peer)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct linger forever = {1, 3600};
    static char data[65536];
    int small = 4096; /* so that many of them need little memory */
    socklen_t len = sizeof(sa);
    int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);

    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    cr_assert(bind(listener, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(listener, 1) == 0 &&
              getsockname(listener, (struct sockaddr *)&sa, &len) == 0 &&
              connect(fd, (struct sockaddr *)&sa, len) == 0);
    *peer = accept(listener, NULL, NULL);
    close(listener);
    while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
        continue;
    cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &forever, sizeof(forever)), 0);
    return fd;
}

/* A Unix socket that holds a message with this descriptor, which is closed. */
static int holding(int fd)
{
    _Alignas(struct cmsghdr) char ctl[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec iov = {"x", 1};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof(ctl)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    int ends[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    cr_assert_eq(sendmsg(ends[0], &m, 0), 1);
    close(fd);
    close(ends[0]);
    return ends[1];
}

static unsigned entries(const char *path)
{
    DIR *d = opendir(path);
    unsigned n = 0;

    while (d && readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Waits until the reaper has no more threads than the one that waits for sockets. */
static bool threads_end(unsigned idle)
{
    for (unsigned i = 0; i < WAIT_MS / 10; i++) {
        if (entries("/proc/self/task") <= idle)
            return true;
        usleep(10000);
    }
    return false;
}

Test(socket_reaper, sockets_that_linger_are_closed_at_once)
{
    enum { MANY = 100 };
    int peer[MANY], pipe_ends[2], fd[MANY];

    socket_reaper_start();
    unsigned threads = entries("/proc/self/task");
    for (unsigned i = 0; i < MANY; i++)
        fd[i] = i % 2 ? lingering(&peer[i]) : holding(lingering(&peer[i]));
    unsigned open_before = entries("/proc/self/fd");
    cr_assert_eq(pipe(pipe_ends), 0);
    for (unsigned i = 0; i < MANY; i++)
        cr_assert(socket_reaper_take(fd[i]), "socket %u", i);
    cr_assert(socket_reaper_take(holding(pipe_ends[1])));
    struct pollfd p = {.fd = pipe_ends[0]};
    cr_expect_eq(poll(&p, 1, WAIT_MS), 1, "the last socket is closed, and the pipe in it");
    cr_expect(threads_end(threads), "no thread lingers");
    cr_expect_eq(entries("/proc/self/fd"), open_before - MANY + 1);
    socket_reaper_stop();
    cr_expect(threads_end(threads - 1), "the reaper ends");
}

static void take_when_there_is_room(int fd)
{
    for (unsigned i = 0; i < WAIT_MS; i++) {
        if (socket_reaper_take(fd))
            return;
        usleep(1000);
    }
    cr_assert(false, "there is no room, or no reaper");
}

/* A new thread may see a socket that the one before it takes. It then waits for the next one. */
Test(socket_reaper, outlives_sockets_that_come_one_after_the_other)
{
    enum { BURSTS = 4000, LONGEST = 60 };
    int pipe_ends[2];

    socket_reaper_start();
    for (unsigned i = 0; i < BURSTS; i++) {
        for (unsigned n = 0; n <= i % LONGEST; n++)
            take_when_there_is_room(socket(AF_UNIX, SOCK_STREAM, 0));
        usleep(50);
    }
    cr_assert_eq(pipe(pipe_ends), 0);
    take_when_there_is_room(holding(pipe_ends[1]));
    struct pollfd p = {.fd = pipe_ends[0]};
    cr_expect_eq(poll(&p, 1, WAIT_MS), 1, "the last socket is closed, and the pipe in it");
    socket_reaper_stop();
}

Test(socket_reaper, the_descriptors_of_others_stay_open)
{
    int ends[2], peer, fd;
    char byte;

    cr_assert_eq(pipe(ends), 0);
    socket_reaper_start();
    fd = lingering(&peer);
    unsigned threads = entries("/proc/self/task");
    cr_assert(socket_reaper_take(fd));
    threads_end(threads);
    cr_expect(write(ends[1], "x", 1) == 1 && read(ends[0], &byte, 1) == 1);
    /* The thread of the reaper has no copy of the pipe: its end comes when this process closes it. */
    close(ends[1]);
    cr_expect_eq(read(ends[0], &byte, 1), 0);
    socket_reaper_stop();
}

Test(socket_reaper, without_a_reaper_the_caller_keeps_the_socket)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    cr_expect_not(socket_reaper_take(fd));
    cr_expect_geq(fcntl(fd, F_GETFD), 0);
    socket_reaper_start();
    cr_expect(socket_reaper_take(fd));
    socket_reaper_stop();
    cr_expect_not(socket_reaper_take(0));
}
