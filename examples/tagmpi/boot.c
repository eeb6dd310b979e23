// SPDX-License-Identifier: BSD-2-Clause
#include "examples/tagmpi/boot.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "tagmpi: start: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- bytes over TCP ------------------------------------------------------- */

static void put(int fd, const void *data, size_t size)
{
    const char *p = data;

    while (size > 0) {
        ssize_t n = send(fd, p, size, MSG_NOSIGNAL);
        need(n > 0, "another rank is gone");
        p += n;
        size -= (size_t)n;
    }
}

static void get(int fd, void *data, size_t size)
{
    need(size == 0 || recv(fd, data, size, MSG_WAITALL) == (ssize_t)size, "another rank is gone");
}

/* --- the star: rank 0 has a connection to each other rank ----------------- */

static int listen_at(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, SOCK_STREAM, 0), one = 1;

    need(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0, "socket");
    need(bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BOOT_MAX_RANKS) == 0, "listen for the other ranks");
    return fd;
}

/* Rank 0 may start later than the others, so they try for a while. */
static int connect_to(const struct addrinfo *at)
{
    for (int attempt = 0; attempt < 300; attempt++) {
        int fd = socket(at->ai_family, SOCK_STREAM, 0);
        need(fd >= 0, "socket");
        if (connect(fd, at->ai_addr, at->ai_addrlen) == 0)
            return fd;
        close(fd);
        usleep(100000);
    }
    need(false, "no connection to rank 0");
    return -1;
}

static void join(struct boot *b, const struct addrinfo *root, int listener)
{
    uint32_t rank = htonl(b->rank);
    int one = 1;

    if (b->rank > 0) {
        b->fd[0] = connect_to(root);
        put(b->fd[0], &rank, sizeof(rank));
    } else {
        for (unsigned i = 1; i < b->ranks; i++) {
            int fd = accept(listener, NULL, NULL);
            need(fd >= 0, "accept");
            get(fd, &rank, sizeof(rank));
            rank = ntohl(rank);
            need(rank > 0 && rank < b->ranks && b->fd[rank] == 0, "a rank that is not one of ours");
            b->fd[rank] = fd;
        }
        close(listener);
    }
    for (unsigned i = 0; i < b->ranks; i++)
        if (b->fd[i])
            setsockopt(b->fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void boot_exchange(const struct boot *b, const void *mine, void *all, size_t size)
{
    char here = 1, *to = all;

    if (b->rank > 0) {
        put(b->fd[0], &here, 1);
        put(b->fd[0], mine, size);
        get(b->fd[0], &here, 1);
        get(b->fd[0], all, size * b->ranks);
        return;
    }
    if (size > 0)
        memcpy(to, mine, size);
    for (unsigned i = 1; i < b->ranks; i++) {
        get(b->fd[i], &here, 1);
        get(b->fd[i], to + i * size, size);
    }
    for (unsigned i = 1; i < b->ranks; i++) {
        put(b->fd[i], &here, 1);
        put(b->fd[i], all, size * b->ranks);
    }
}

/* --- by hand -------------------------------------------------------------- */

static void start_by_hand(struct boot *b, const char *rank)
{
    const char *ranks = getenv("TAGMPI_RANKS"), *root = getenv("TAGMPI_ROOT");
    struct addrinfo *at, hints = {.ai_socktype = SOCK_STREAM};
    char host[256];

    need(ranks && root && strrchr(root, ':') && strlen(root) < sizeof(host),
         "TAGMPI_RANKS or TAGMPI_ROOT=address:port");
    strcpy(host, root);
    char *port = strrchr(host, ':');
    *port++ = 0;
    b->rank = (unsigned)strtoul(rank, NULL, 10);
    b->ranks = (unsigned)strtoul(ranks, NULL, 10);
    need(b->ranks <= BOOT_MAX_RANKS && b->rank < b->ranks, "TAGMPI_RANK is not below TAGMPI_RANKS");
    need(getaddrinfo(host, port, &hints, &at) == 0, root);
    join(b, at, b->rank == 0 ? listen_at(at) : -1);
    freeaddrinfo(at);
}

/* --- the launcher --------------------------------------------------------- */

/* Waits for the ranks. The first failure ends all remaining ranks. */
static int wait_for_ranks(const pid_t *pid, unsigned ranks)
{
    int worst = 0, status;

    for (unsigned left = ranks; left > 0; left--) {
        need(wait(&status) > 0, "wait");
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (code == 0 || worst != 0)
            continue;
        worst = code;
        for (unsigned i = 0; i < ranks; i++)
            /* A rank that has ended is a zombie or gone. The kernel does not use its number again so soon. */
            kill(pid[i], SIGTERM);
    }
    return worst;
}

static void become(struct boot *b, unsigned rank, pid_t launcher)
{
    char host[16];

    prctl(PR_SET_PDEATHSIG, SIGTERM); /* if the launcher is killed, the ranks end */
    if (getppid() != launcher)
        exit(1);
    b->rank = rank;
    snprintf(host, sizeof(host), "%u", rank % b->hosts);
    setenv("PUMICE_HOST", host, 1);
}

static void launch(struct boot *b)
{
    const char *hosts = getenv("PUMICE_HOSTS");
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct addrinfo at = {.ai_family = AF_INET, .ai_addr = (struct sockaddr *)&sa, .ai_addrlen = sizeof(sa)};
    socklen_t len = sizeof(sa);
    pid_t pid[BOOT_MAX_RANKS], launcher = getpid();
    int listener = listen_at(&at); /* at any free port */

    need(getsockname(listener, at.ai_addr, &len) == 0, "address of the socket");
    b->hosts = hosts && atoi(hosts) > 0 ? (unsigned)atoi(hosts) : 1;
    fflush(stdout); /* otherwise each rank would print it again */
    for (unsigned i = 0; i < b->ranks; i++) {
        pid[i] = fork();
        need(pid[i] >= 0, "fork");
        if (pid[i] > 0)
            continue;
        become(b, i, launcher);
        if (i > 0)
            close(listener);
        join(b, &at, listener);
        return;
    }
    close(listener);
    exit(wait_for_ranks(pid, b->ranks));
}

void boot_start(struct boot *b, unsigned ranks)
{
    const char *rank = getenv("TAGMPI_RANK");

    *b = (struct boot){.ranks = ranks};
    if (rank)
        start_by_hand(b, rank);
    else
        launch(b);
}
