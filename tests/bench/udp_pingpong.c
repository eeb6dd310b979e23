// SPDX-License-Identifier: BSD-2-Clause
/* Measures the lowest latency between two processes over UDP, by a ping-pong of small datagrams.
 *
 *     udp_pingpong busy|block ADDRESS_A ADDRESS_B SIZE ROUNDS
 *
 * busy: both ends poll with MSG_DONTWAIT and yield the CPU in between. block: both sleep in recv. Prints half of the
 * median round trip in µs. */
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 4799, WARM_UP = 1000, SIZE_MAX_ = 65507 };

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static double now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static struct sockaddr_in address(const char *text)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};

    if (inet_pton(AF_INET, text, &a.sin_addr) != 1)
        die(text);
    return a;
}

static int bound(const char *own)
{
    struct sockaddr_in a = address(own);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0)
        die(own);
    return fd;
}

static void receive(int fd, char *buf, bool busy)
{
    while (recv(fd, buf, SIZE_MAX_, busy ? MSG_DONTWAIT : 0) < 0) {
        if (errno != EAGAIN)
            die("recv");
        sched_yield();
    }
}

static void transmit(int fd, const char *buf, size_t size, const struct sockaddr_in *to)
{
    if (sendto(fd, buf, size, 0, (const struct sockaddr *)to, sizeof *to) != (ssize_t)size)
        die("sendto");
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static char buf[SIZE_MAX_];

    if (argc != 6)
        return fprintf(stderr, "usage: udp_pingpong busy|block ADDRESS_A ADDRESS_B SIZE ROUNDS\n"), 2;

    bool busy = strcmp(argv[1], "busy") == 0;
    struct sockaddr_in a = address(argv[2]), b = address(argv[3]);
    size_t size = (size_t)atoi(argv[4]), rounds = (size_t)atoi(argv[5]);
    int fd_a = bound(argv[2]), fd_b = bound(argv[3]);
    double *took = calloc(rounds, sizeof *took);
    pid_t child = fork();

    if (took == NULL || child < 0)
        die("start");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) {
            receive(fd_b, buf, busy);
            transmit(fd_b, buf, size, &a);
        }
    }
    for (size_t i = 0; i < rounds + WARM_UP; i++) {
        double start = now_us();

        transmit(fd_a, buf, size, &b);
        receive(fd_a, buf, busy);
        if (i >= WARM_UP)
            took[i - WARM_UP] = now_us() - start;
    }
    kill(child, SIGKILL);
    qsort(took, rounds, sizeof *took, compare);
    printf("%.3f\n", took[rounds / 2] / 2);
    return 0;
}
