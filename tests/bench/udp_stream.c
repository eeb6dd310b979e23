// SPDX-License-Identifier: BSD-2-Clause
/* Measures the highest bandwidth between two processes over UDP with GSO and GRO, by a stream of segments. There is
 * no protocol, and no process reads the data.
 *
 *     udp_stream ADDRESS_A ADDRESS_B SEGMENT SECONDS
 *
 * The sender has no window. Segments that overrun the socket buffer are lost, and only received segments count.
 * Prints MiB/s received. */
#include <arpa/inet.h>
#include <netinet/udp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 4799, DATAGRAM_MAX = 65000 };
static char buf[65536];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static double now_s(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
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
    int fd = socket(AF_INET, SOCK_DGRAM, 0), size = 4 << 20;

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) != 0)
        die(own);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return fd;
}

static void send_forever(int fd, const struct sockaddr_in *to, int segment)
{
    int segments = DATAGRAM_MAX / segment;
    size_t size = (size_t)(segments < 60 ? segments : 60) * (size_t)segment;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0)
        die("UDP_SEGMENT");
    for (;;)
        sendto(fd, buf, size, 0, (const struct sockaddr *)to, sizeof *to);
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return fprintf(stderr, "usage: udp_stream ADDRESS_A ADDRESS_B SEGMENT SECONDS\n"), 2;

    struct sockaddr_in b = address(argv[2]);
    struct timeval limit = {.tv_sec = 2};
    int fd_a = bound(argv[1]), fd_b = bound(argv[2]), one = 1;
    double seconds = atof(argv[4]), start, end;
    long long bytes = 0;
    pid_t child;

    if (setsockopt(fd_b, IPPROTO_UDP, UDP_GRO, &one, sizeof one) != 0)
        die("UDP_GRO");
    setsockopt(fd_b, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if ((child = fork()) < 0)
        die("fork");
    if (child == 0)
        send_forever(fd_a, &b, atoi(argv[3]));
    start = now_s();
    do {
        ssize_t n = recv(fd_b, buf, sizeof buf, 0);

        if (n < 0)
            die("recv");
        bytes += n;
        end = now_s();
    } while (end - start < seconds);
    kill(child, SIGKILL);
    printf("%.1f\n", (double)bytes / (end - start) / 1048576);
    return 0;
}
