// SPDX-License-Identifier: BSD-2-Clause
#include "src/cmd/run/name_server.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define VARIABLE "FI_VERBS_DGRAM_NAME_SERVER_PORT"

/* Binds a socket to a free port, and never listens on it. Linux gives a bound port to no other socket, except to one
 * with SO_REUSEADDR that names this port, if both have SO_REUSEADDR. libfabric's name server is such a socket. Returns
 * the port, or 0 if there is none: then libfabric uses its default. */
static in_port_t reserve(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t len = sizeof(any);
    int on = 1, sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (sock < 0)
        return 0;
    if (setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(sock, (struct sockaddr *)&any, sizeof(any)) != 0 ||
        getsockname(sock, (struct sockaddr *)&any, &len) != 0) {
        close(sock);
        return 0;
    }
    return ntohs(any.sin_port);
}

void name_server_reserve(void)
{
    char number[8];

    if (getenv(VARIABLE))
        return;
    snprintf(number, sizeof(number), "%u", reserve());
    if (number[0] != '0')
        setenv(VARIABLE, number, 1);
}
