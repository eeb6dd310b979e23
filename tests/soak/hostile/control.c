// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/soak/hostile/attacks.h"
#include "tests/soak/hostile/effort.h"
#include "tests/soak/hostile/raw.h"

/* --- objects ----------------------------------------------------------------------------------- */

enum { OBJECTS_MAX = 2000 };

static const struct kind {
    uint32_t make, destroy;
} kinds[] = {
    {PM_OP_ALLOC_PD, PM_OP_DEALLOC_PD},    {PM_OP_REG_MR, PM_OP_DEREG_MR},
    {PM_OP_ALLOC_MW, PM_OP_DEALLOC_MW},    {PM_OP_CREATE_CHANNEL, PM_OP_DESTROY_CHANNEL},
    {PM_OP_CREATE_CQ, PM_OP_DESTROY_CQ},   {PM_OP_CREATE_QP, PM_OP_DESTROY_QP},
    {PM_OP_CREATE_SRQ, PM_OP_DESTROY_SRQ}, {PM_OP_OPEN_XRCD, PM_OP_CLOSE_XRCD},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static int make(struct raw_session *s, uint32_t op, struct raw_reply *r)
{
    switch (op) {
    case PM_OP_REG_MR:
        return raw_call(s->sock, op,
                        &(struct pm_reg_mr_req){.pd = s->pd, .access = 1, .va = (uintptr_t)s->memory, .length = 4096},
                        sizeof(struct pm_reg_mr_req), r);
    case PM_OP_ALLOC_MW:
        return raw_call(s->sock, op, &(struct pm_alloc_mw_req){s->pd, IBV_MW_TYPE_2, 0}, sizeof(struct pm_alloc_mw_req),
                        r);
    case PM_OP_CREATE_CQ:
        return raw_call(s->sock, op, &(struct pm_create_cq_req){.cqe = (uint32_t)(1 + rnd(rnd(8) ? 64 : 65536))},
                        sizeof(struct pm_create_cq_req), r);
    case PM_OP_CREATE_QP: {
        struct pm_create_qp_req rq = {.pd = s->pd,
                                      .send_cq = s->cq,
                                      .recv_cq = s->cq,
                                      .type = IBV_QPT_RC,
                                      .max_send_wr = (uint32_t)(1 + rnd(rnd(8) ? 64 : 8192)),
                                      .max_send_sge = 2};
        return raw_call(s->sock, op, &rq, sizeof(rq), r);
    }
    case PM_OP_CREATE_SRQ: {
        struct pm_create_srq_req rq = {.pd = s->pd, .max_wr = 16, .max_sge = 1};
        return raw_call(s->sock, op, &rq, sizeof(rq), r);
    }
    case PM_OP_OPEN_XRCD:
        return raw_call(s->sock, op, &(struct pm_open_xrcd_req){.oflags = O_CREAT}, sizeof(struct pm_open_xrcd_req), r);
    default:
        return raw_call(s->sock, op, NULL, 0, r);
    }
}

void attack_objects(void)
{
    static uint32_t handle[OBJECTS_MAX];
    struct raw_session s;
    struct raw_reply r;
    while (effort_goes_on()) {
        if (!raw_open(&s, (uint32_t)rnd(2)))
            continue;
        for (unsigned round = 0; round < 8 && effort_goes_on(); round++) {
            const struct kind *k = &kinds[rnd(KINDS)];
            unsigned n = 0;
            while (n < OBJECTS_MAX && effort_goes_on() && make(&s, k->make, &r) == 0) {
                memcpy(&handle[n++], r.payload, sizeof(handle[0]));
                raw_close_fds(&r);
            }
            while (n && rnd(1000) && effort_goes_on()) /* sometimes the end of the session frees the rest */
                raw_call(s.sock, k->destroy, &handle[--n], sizeof(handle[0]), NULL);
        }
        raw_close(&s);
    }
}

/* --- status ------------------------------------------------------------------------------------ */

enum { ASKERS = 16, REPORTED_QPS = 4096 };

static void ask(int sock)
{
    static const struct pm_tm_req tm = {.events = UINT32_MAX, .entries = UINT32_MAX};
    struct pm_layout_req layout = {.key = (uint32_t)rnd(2), .pieces = PM_LAYOUT_PIECES, .len = UINT64_MAX};
    switch (rnd(4)) {
    case 0:
        raw_send(sock, PM_OP_TM, &tm, sizeof(tm), NULL, 0, false);
        break;
    case 1:
        raw_send(sock, PM_OP_LAYOUT, &layout, sizeof(layout), NULL, 0, false);
        break;
    default:
        raw_send(sock, PM_OP_STATUS, NULL, 0, NULL, 0, false);
    }
}

/* Each asker has one request under way, and sends the next when its answer is there. */
static void keep_asking(struct pollfd *p)
{
    char text[64];
    for (unsigned i = 0; i < ASKERS; i++) {
        p[i] = (struct pollfd){.fd = raw_connect(), .events = POLLIN};
        ask(p[i].fd);
    }
    while (effort_goes_on()) {
        poll(p, ASKERS, 100);
        for (unsigned i = 0; i < ASKERS; i++) {
            if (!p[i].revents)
                continue;
            if (recv(p[i].fd, text, sizeof(text), 0) <= 0) {
                close(p[i].fd);
                p[i].fd = raw_connect();
            }
            ask(p[i].fd);
        }
    }
    for (unsigned i = 0; i < ASKERS; i++)
        close(p[i].fd);
}

void attack_status(void)
{
    struct pollfd p[ASKERS];
    struct raw_session s;
    struct raw_qp qp;
    if (raw_open(&s, 0)) {
        for (unsigned n = 0; n < REPORTED_QPS && raw_qp(&s, 1, false, &qp); n++)
            continue;
    }
    keep_asking(p);
    raw_close(&s);
}

/* --- half-open connections --------------------------------------------------------------------- */

enum { HALF_OPEN = 1000 };

static void half(int sock)
{
    struct pm_open_req rq = {.abi_version = (uint32_t)rnd(8), .device = (uint32_t)rnd(4)};
    char text[256];
    switch (rnd(6)) {
    case 0: /* nothing */
        break;
    case 1: /* a message that is too short, or anything */
        rnd_fill(text, sizeof(text));
        (void)!send(sock, text, rnd(sizeof(text)), MSG_NOSIGNAL | MSG_DONTWAIT);
        break;
    case 2: /* requests without reading the answers */
        for (unsigned i = 0; i < 100 && raw_send(sock, PM_OP_LIST, NULL, 0, NULL, 0, false); i++)
            continue;
        break;
    case 3: /* the other half of the connection is closed */
        raw_send(sock, PM_OP_OPEN, &rq, sizeof(rq), NULL, 0, false);
        shutdown(sock, (int)rnd(3));
        break;
    default:
        raw_send(sock, PM_OP_OPEN, &rq, sizeof(rq), NULL, 0, false);
    }
}

void attack_halfopen(void)
{
    static int sock[HALF_OPEN];
    unsigned n = 0;
    while (effort_goes_on()) {
        if (n == HALF_OPEN || rnd(400) == 0) {
            while (n)
                close(sock[--n]);
        }
        sock[n] = raw_connect();
        if (sock[n] < 0)
            continue;
        half(sock[n++]);
    }
    while (n)
        close(sock[--n]);
}

/* --- descriptors ------------------------------------------------------------------------------- */

/* A TCP connection with unsent data to a peer that never reads: its last close waits for a second. */
static int slow_socket(int *peer)
{
    struct linger wait = {1, 1};
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    char block[4096] = {0};
    int from = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *peer = -1;
    if (from >= 0 && to >= 0 && bind(to, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(to, 1) == 0 &&
        getsockname(to, (struct sockaddr *)&sa, &len) == 0 && connect(from, (struct sockaddr *)&sa, len) == 0) {
        *peer = accept4(to, NULL, NULL, SOCK_CLOEXEC);
        setsockopt(from, SOL_SOCKET, SO_LINGER, &wait, sizeof(wait));
        while (send(from, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
            continue;
    }
    if (to >= 0)
        close(to);
    return from;
}

static unsigned open_some(int *fd, unsigned most)
{
    unsigned n = 0;
    int p[2];
    if (pipe2(p, O_CLOEXEC) == 0) {
        fd[n++] = p[0];
        fd[n++] = p[1];
    }
    fd[n] = slow_socket(&fd[n + 1]);
    n += 2;
    fd[n++] = eventfd(0, EFD_CLOEXEC);
    fd[n++] = epoll_create1(EPOLL_CLOEXEC);
    fd[n++] = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    fd[n++] = open("/dev/zero", O_RDWR | O_CLOEXEC);
    fd[n++] = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    fd[n++] = open("/", O_PATH | O_CLOEXEC);
    fd[n++] = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    fd[n++] = raw_connect();
    return n < most ? n : most;
}

/* Sends a random choice of them with a request. */
static void send_some(struct raw_session *s, const int *fd, unsigned n)
{
    struct pm_open_xrcd_req xrcd = {.has_fd = 1, .oflags = O_CREAT};
    struct pm_open_req open_rq = {.abi_version = PM_ABI_VERSION, .probe_va = (uintptr_t)fd};
    struct raw_reply r;
    int chosen[64];
    unsigned count = 1 + (unsigned)rnd(rnd(4) ? PM_FDS_MAX : 64);
    for (unsigned i = 0; i < count; i++)
        chosen[i] = fd[rnd(n)];
    if (rnd(2)) {
        int sock = raw_connect();
        raw_send(sock, PM_OP_OPEN, &open_rq, sizeof(open_rq), chosen, count, false);
        close(sock);
        return;
    }
    if (!raw_send(s->sock, PM_OP_OPEN_XRCD, &xrcd, sizeof(xrcd), chosen, count, true) ||
        recv(s->sock, &r, sizeof(r), 0) <= 0) {
        raw_close(s); /* too many descriptors end the session */
        raw_open(s, 0);
    }
}

void attack_descriptors(void)
{
    int fd[32];
    unsigned n = 0, good = 0;
    struct raw_session s;
    raw_open(&s, 0);
    while (effort_goes_on()) {
        n = open_some(fd, 32);
        good = 0;
        for (unsigned i = 0; i < n; i++) {
            if (fd[i] >= 0)
                fd[good++] = fd[i];
        }
        for (unsigned i = 0; i < 100 && good; i++)
            send_some(&s, fd, good);
        while (good)
            close(fd[--good]);
    }
    raw_close(&s);
}
