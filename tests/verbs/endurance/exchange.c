// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/verbs/endurance/endurance.h"

#define LISTEN_SECONDS 20 /* for which a client waits for its server */

/* Connects to the server. The server may not listen yet: then the client tries again. */
static int connect_to(const struct addrinfo *ai)
{
    time_t end = time(NULL) + LISTEN_SECONDS;

    for (;;) {
        int fd = socket(ai->ai_family, SOCK_STREAM, 0);

        if (fd < 0)
            die("socket");
        if (connect(fd, ai->ai_addr, ai->ai_addrlen) == 0)
            return fd;
        if (errno != ECONNREFUSED || time(NULL) >= end)
            die("connect");
        close(fd);
        usleep(50000);
    }
}

static void tcp_connect(void)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = opt.host ? 0 : AI_PASSIVE, .ai_family = AF_INET},
                    *ai;
    char service[16];
    int one = 1, fd = -1;

    snprintf(service, sizeof service, "%d", opt.port);
    if (getaddrinfo(opt.host, service, &hints, &ai) != 0)
        die("address");
    if (opt.host) {
        st.tcp = connect_to(ai);
    } else {
        if ((fd = socket(ai->ai_family, SOCK_STREAM, 0)) < 0)
            die("socket");
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, 1) != 0 || (st.tcp = accept(fd, NULL, NULL)) < 0)
            die("listen");
        close(fd);
    }
    freeaddrinfo(ai);
}

void tcp_write(const void *p, size_t n)
{
    if (write(st.tcp, p, n) != (ssize_t)n)
        die("TCP write");
}

void tcp_read(void *p, size_t n)
{
    if (recv(st.tcp, p, n, MSG_WAITALL) != (ssize_t)n) {
        errno = ECONNRESET;
        die("TCP read");
    }
}

/* A peer that died leaves an end of file. */
bool peer_gone(void)
{
    char c;

    return recv(st.tcp, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void exchange(void)
{
    bool client = opt.host != NULL;

    tcp_connect();
    st.local.params = par;
    if (client)
        tcp_write(&par, sizeof par);
    else
        tcp_read(&par, sizeof par);
    block_make();
    objects_create();
    if (ibv_query_gid(st.ctx, 1, opt.gid_index, &st.local.gid) != 0)
        die("query GID");
    st.local.sender = st.qp->qp_num;
    st.local.qpn = st.target ? st.target->qp_num : st.qp->qp_num;
    if (par.transport == TRANSPORT_XRC && ibv_get_srq_num(st.srq, &st.local.srqn) != 0)
        die("SRQ number");
    st.local.psn = (uint32_t)mix(par.seed + (client ? 1 : 2)) & 0xffffff;
    st.local.rkey = st.mr->rkey;
    st.local.addr = (uintptr_t)st.block;
    tcp_write(&st.local, sizeof st.local);
    tcp_read(&st.remote, sizeof st.remote);
}
