// SPDX-License-Identifier: BSD-2-Clause
/* The commands are written as librdmacm writes them, because librdmacm keeps the device open until its process ends. */
#include "tests/failing/life_cm.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define CM_FILE "/dev/infiniband/rdma_cm"
/* Longer than a request of a connection is repeated. */
#define HANG_MS 60000
#define PORT 4242

/* enum rdma_cm_event_type. Its header can't be included beside that of the kernel. */
enum { ADDR_RESOLVED = 0, ROUTE_RESOLVED = 2, CONNECT_REQUEST = 4, REJECTED = 8 };
enum { LISTENER = 1, CALLER };

struct cm_life {
    int fd;
    uint32_t id[2]; /* 0 is an ID, too */
    unsigned ids;
    struct sockaddr_in6 own; /* an IPv4 address fits as well */
    struct life_result *result;
};

static bool step(struct cm_life *l, bool good, const char *what, int error)
{
    if (!good && !l->result->failed) {
        l->result->failed = what;
        l->result->error = error;
    }
    return good;
}

static bool command(struct cm_life *l, const char *what, uint32_t number, const void *in, size_t len, size_t out)
{
    struct {
        struct rdma_ucm_cmd_hdr head;
        char body[512];
    } c = {.head = {number, (uint16_t)len, (uint16_t)out}};

    memcpy(c.body, in, len);
    ssize_t n = write(l->fd, &c, sizeof(c.head) + len);
    return step(l, n == (ssize_t)(sizeof(c.head) + len), what, errno);
}

static bool create(struct cm_life *l, uint64_t uid)
{
    struct rdma_ucm_create_id_resp rep = {0};
    struct rdma_ucm_create_id in = {.uid = uid, .response = (uintptr_t)&rep, .ps = RDMA_PS_TCP, .qp_type = IBV_QPT_RC};

    if (!command(l, "cm create_id", RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), sizeof(rep)))
        return false;
    l->id[l->ids++] = rep.id;
    return true;
}

static bool destroy(struct cm_life *l, uint32_t id)
{
    struct rdma_ucm_destroy_id_resp rep;
    struct rdma_ucm_destroy_id in = {.response = (uintptr_t)&rep, .id = id};

    return command(l, "cm destroy_id", RDMA_USER_CM_CMD_DESTROY_ID, &in, sizeof(in), sizeof(rep));
}

/* Waits for an event of the caller, and refuses connections meanwhile. */
static bool await(struct cm_life *l, const char *what, uint32_t event)
{
    struct rdma_ucm_event_resp rep;
    struct rdma_ucm_get_event get = {.response = (uintptr_t)&rep};

    for (;;) {
        struct pollfd p = {.fd = l->fd, .events = POLLIN};
        if (poll(&p, 1, HANG_MS) != 1) {
            l->result->wrong = "no event of connection management came";
            return false;
        }
        if (!command(l, "cm get_event", RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), sizeof(rep)))
            return false;
        if (rep.event != CONNECT_REQUEST)
            return step(l, rep.event == event, what, (int)rep.status);
        struct rdma_ucm_reject no = {.id = rep.id};
        command(l, "cm reject", RDMA_USER_CM_CMD_REJECT, &no, sizeof(no), 0);
        destroy(l, rep.id);
    }
}

static bool listens(struct cm_life *l)
{
    struct rdma_ucm_bind bind = {.addr_size = sizeof(struct sockaddr_in)};
    struct rdma_ucm_listen listen = {.backlog = 4};

    if (!create(l, LISTENER))
        return false;
    bind.id = listen.id = l->id[0];
    memcpy(&bind.addr, &l->own, sizeof(struct sockaddr_in));
    return command(l, "cm bind", RDMA_USER_CM_CMD_BIND, &bind, sizeof(bind), 0) &&
           command(l, "cm listen", RDMA_USER_CM_CMD_LISTEN, &listen, sizeof(listen), 0);
}

static bool calls(struct cm_life *l)
{
    struct rdma_ucm_resolve_addr addr = {.timeout_ms = 2000, .dst_size = sizeof(struct sockaddr_in)};
    struct rdma_ucm_resolve_route route = {.timeout_ms = 2000};
    struct rdma_ucm_connect connect = {.conn_param = {.qp_num = 77,
                                                      .responder_resources = 1,
                                                      .initiator_depth = 1,
                                                      .retry_count = 7,
                                                      .rnr_retry_count = 7,
                                                      .valid = 1}};

    if (!create(l, CALLER))
        return false;
    addr.id = route.id = connect.id = l->id[1];
    memcpy(&addr.dst_addr, &l->own, sizeof(struct sockaddr_in));
    return command(l, "cm resolve_addr", RDMA_USER_CM_CMD_RESOLVE_ADDR, &addr, sizeof(addr), 0) &&
           await(l, "cm address", ADDR_RESOLVED) &&
           command(l, "cm resolve_route", RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0) &&
           await(l, "cm route", ROUTE_RESOLVED) &&
           command(l, "cm connect", RDMA_USER_CM_CMD_CONNECT, &connect, sizeof(connect), 0) &&
           await(l, "cm refusal", REJECTED);
}

void life_cm_run(const union ibv_gid *own, struct life_result *r)
{
    struct cm_life l = {.fd = open(CM_FILE, O_RDWR | O_CLOEXEC), .result = r};
    struct sockaddr_in *sin = (struct sockaddr_in *)(void *)&l.own;

    if (!step(&l, l.fd >= 0, "cm open", errno))
        return;
    sin->sin_family = AF_INET;
    sin->sin_port = htons(PORT);
    memcpy(&sin->sin_addr, own->raw + 12, 4);
    if (listens(&l))
        calls(&l);
    while (l.ids)
        destroy(&l, l.id[--l.ids]);
    close(l.fd);
}
