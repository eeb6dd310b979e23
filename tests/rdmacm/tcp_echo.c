// SPDX-License-Identifier: BSD-2-Clause
/* A TCP server and client that know nothing of RDMA. The client sends random bytes, the server sends them back, and the client
 * compares. With librspreload.so, their sockets become rsockets.
 *     tcp_echo PORT                    the server, for one connection
 *     tcp_echo PORT ADDRESS BYTES      the client */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 50000 };

static void need(int holds, const char *what)
{
    if (holds)
        return;
    printf("tcp_echo: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int open_socket(const char *address, const char *port)
{
    struct addrinfo *to,
        hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = address ? 0 : AI_PASSIVE};
    int fd, one = 1;

    need(getaddrinfo(address, port, &hints, &to) == 0, "getaddrinfo");
    need((fd = socket(to->ai_family, SOCK_STREAM, 0)) >= 0, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (address)
        need(connect(fd, to->ai_addr, to->ai_addrlen) == 0, "connect");
    else
        need(bind(fd, to->ai_addr, to->ai_addrlen) == 0 && listen(fd, 4) == 0, "bind, listen");
    freeaddrinfo(to);
    return fd;
}

static void serve(const char *port)
{
    static char buf[PIECE];
    int listener = open_socket(NULL, port), fd = accept(listener, NULL, NULL);
    long long total = 0;
    ssize_t n;

    need(fd >= 0, "accept");
    while ((n = recv(fd, buf, sizeof(buf), 0)) > 0) {
        for (ssize_t done = 0, step; done < n; done += step)
            need((step = send(fd, buf + done, (size_t)(n - done), 0)) > 0, "send");
        total += n;
    }
    need(n == 0, "recv");
    shutdown(fd, SHUT_RDWR);
    close(fd);
    close(listener);
    printf("ok %lld bytes\n", total);
}

/* The byte at a place of the stream. */
static char byte_at(unsigned long long at)
{
    uint64_t z = (at / 8 + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    return (char)(z >> (8 * (at % 8)));
}

static void call(const char *port, const char *address, unsigned long long bytes)
{
    static char out[PIECE], in[PIECE];
    int fd = open_socket(address, port);
    unsigned long long sent = 0, received = 0;

    while (received < bytes) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        /* No more on the way than fits into the buffers: the server sends back only what it has received. */
        if (sent < bytes && sent < received + PIECE)
            p.events |= POLLOUT;
        need(poll(&p, 1, 30000) > 0, "poll");
        if (p.revents & POLLOUT) {
            size_t want = bytes - sent < PIECE ? (size_t)(bytes - sent) : PIECE;
            for (size_t i = 0; i < want; i++)
                out[i] = byte_at(sent + i);
            ssize_t n = send(fd, out, want, MSG_DONTWAIT);
            need(n > 0 || errno == EAGAIN || errno == EWOULDBLOCK, "send");
            sent += n > 0 ? (unsigned long long)n : 0;
        }
        if (p.revents & POLLIN) {
            ssize_t n = recv(fd, in, sizeof(in), 0);
            need(n > 0, "recv");
            for (ssize_t i = 0; i < n; i++)
                need(in[i] == byte_at(received + (unsigned long long)i), "wrong data");
            received += (unsigned long long)n;
        }
    }
    shutdown(fd, SHUT_RDWR);
    close(fd);
    printf("ok %llu bytes\n", received);
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        serve(argv[1]);
    } else if (argc == 4) {
        call(argv[1], argv[2], strtoull(argv[3], NULL, 0));
    } else {
        fprintf(stderr, "usage: tcp_echo PORT [ADDRESS BYTES]\n");
        return 2;
    }
    return 0;
}
