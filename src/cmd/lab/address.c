// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/lab/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ROCE_PORT "4791"
/* The name of an abstract Unix socket. Each network namespace has its own such names, as it has its own ports. */
#define LOCK_NAME "pumice-lab"
#define LOCK_TRIES 500
#define LOCK_PAUSE_US 20000

void address_in_block(unsigned block, unsigned host, unsigned device, unsigned index, char out[INET6_ADDRSTRLEN])
{
    snprintf(out, INET6_ADDRSTRLEN, "127.%u.%u.%u", 128 * index + device, block, host + 1);
}

void address_v6(unsigned host, unsigned device, unsigned index, char out[INET6_ADDRSTRLEN])
{
    unsigned group = 2 * device + index;

    if (group)
        snprintf(out, INET6_ADDRSTRLEN, "fd00::%x:%x", group, host + 1);
    else
        snprintf(out, INET6_ADDRSTRLEN, "fd00::%x", host + 1);
}

static int check_one(const char *text)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_DGRAM}, *a;
    struct in_addr v4;
    int err = 0, on = 1;

    /* getaddrinfo parses scopes (fe80::1%eth0), but it also accepts 127.1. */
    if ((inet_pton(AF_INET, text, &v4) != 1 && !strchr(text, ':')) || getaddrinfo(text, ROCE_PORT, &hints, &a) != 0)
        return -EINVAL;
    int sock = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sock < 0) {
        err = -errno;
    } else {
        /* A daemon that has the address only because its interface has it yields it (daemon/net/udp.h). */
        setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(sock, a->ai_addr, a->ai_addrlen) != 0)
            err = -errno;
        close(sock);
    }
    freeaddrinfo(a);
    return err;
}

int address_check(const char *list)
{
    char text[ADDRESS_LIST_MAX], *rest = text, *item;
    int err = 0;

    snprintf(text, sizeof(text), "%s", list);
    while (!err && (item = strsep(&rest, "+")) != NULL)
        err = check_one(item);
    return err;
}

int address_split(const char *text, char (*out)[ADDRESS_LIST_MAX], unsigned max)
{
    unsigned n = 0;

    for (;;) {
        size_t len = strcspn(text, ",");

        if (n == max || len >= ADDRESS_LIST_MAX)
            return -1;
        memcpy(out[n], text, len);
        out[n++][len] = 0;
        if (!text[len])
            return (int)n;
        text += len + 1;
    }
}

int address_lock(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "\0" LOCK_NAME};
    socklen_t len = offsetof(struct sockaddr_un, sun_path) + sizeof(LOCK_NAME);
    int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    for (int i = 0; sock >= 0 && i < LOCK_TRIES; i++) {
        if (bind(sock, (struct sockaddr *)&name, len) == 0)
            return sock;
        usleep(LOCK_PAUSE_US);
    }
    close(sock);
    return -1;
}
