// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/lab/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ROCE_PORT 4791
/* The name of an abstract Unix socket. Each network namespace has its own such names, as it has its own ports. */
#define LOCK_NAME "pumice-lab"
#define LOCK_TRIES 500
#define LOCK_PAUSE_US 20000

void address_in_block(unsigned block, unsigned host, char out[INET6_ADDRSTRLEN])
{
    snprintf(out, INET6_ADDRSTRLEN, "127.0.%u.%u", block, host + 1);
}

int address_check(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(ROCE_PORT)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(ROCE_PORT)};
    bool is_v4 = inet_pton(AF_INET, text, &v4.sin_addr) == 1;
    int err = 0;

    if (!is_v4 && inet_pton(AF_INET6, text, &v6.sin6_addr) != 1)
        return -EINVAL;
    int sock = socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sock < 0)
        return -errno;
    if (bind(sock, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6, is_v4 ? sizeof(v4) : sizeof(v6)) != 0)
        err = -errno;
    close(sock);
    return err;
}

int address_split(const char *text, char (*out)[INET6_ADDRSTRLEN], unsigned max)
{
    unsigned n = 0;

    for (;;) {
        size_t len = strcspn(text, ",");

        if (n == max || len >= INET6_ADDRSTRLEN)
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
