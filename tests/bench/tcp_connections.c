// SPDX-License-Identifier: BSD-2-Clause
/* The TCP side of the comparison in connections.py. Several processes connect to one server, exchange messages as those of
 * tests/rdmacm/churn.c do, and disconnect.
 *     tcp_connections ADDRESS PROCESSES CONNECTIONS      prints connections per second */
#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 256, MESSAGES = 3, BACKLOG = 1024, EVENTS = 64 };

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(1);
}

static void watch(int epoll, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

    need(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0, "epoll_ctl");
}

/* Sends back what comes. */
static void answer(int fd)
{
    char buf[LENGTH];
    ssize_t n = recv(fd, buf, sizeof(buf), 0);

    if (n <= 0 || send(fd, buf, (size_t)n, MSG_NOSIGNAL) != n)
        close(fd);
}

static void serve(int listener)
{
    int epoll = epoll_create1(0);

    need(epoll >= 0, "epoll_create1");
    watch(epoll, listener);
    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(epoll, events, EVENTS, -1);

        for (int i = 0; i < n; i++) {
            if (events[i].data.fd != listener)
                answer(events[i].data.fd);
            else
                watch(epoll, accept(listener, NULL, NULL));
        }
    }
}

static void client(const struct sockaddr_in *to, unsigned connections)
{
    char out[LENGTH] = {1}, in[LENGTH];

    for (unsigned i = 0; i < connections; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        need(fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0, "connect");
        for (int m = 0; m < MESSAGES; m++) {
            need(send(fd, out, LENGTH, 0) == LENGTH, "send");
            need(recv(fd, in, LENGTH, MSG_WAITALL) == LENGTH, "recv");
        }
        close(fd);
    }
    exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    unsigned processes = (unsigned)atoi(argv[2]), connections = (unsigned)atoi(argv[3]);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0), status;
    struct timespec begin, end;

    need(inet_pton(AF_INET, argv[1], &address.sin_addr) == 1, argv[1]);
    need(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, BACKLOG) == 0, "listen");
    need(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    pid_t server = fork();
    if (server == 0)
        serve(listener);
    close(listener);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (unsigned i = 0; i < processes; i++)
        if (fork() == 0)
            client(&address, connections / processes);
    for (unsigned i = 0; i < processes; i++)
        need(wait(&status) > 0 && status == 0, "a client failed");
    clock_gettime(CLOCK_MONOTONIC, &end);
    kill(server, SIGKILL);
    printf("%.0f\n", connections / processes * processes /
                         ((double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9));
    return 0;
}
