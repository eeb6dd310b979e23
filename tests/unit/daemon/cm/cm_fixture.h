// SPDX-License-Identifier: BSD-2-Clause
/* Hosts of connection management without threads, network or devices: a connection management thread whose loop the test
 * turns, and one mad_box that stands for a device. The test is the client, and carries MADs from box to box. Shared by
 * the unit tests and the fuzz target. */
#ifndef PUMICE_TESTS_UNIT_DAEMON_CM_CM_FIXTURE_H
#define PUMICE_TESTS_UNIT_DAEMON_CM_CM_FIXTURE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/cm/cm_thread.h"
#include "daemon/cm/host/ucma_abi.h"
#include "daemon/core/cm/cm.h"
#include "pumice/abi_cm.h"
#include "wire/gid.h"

#define CM_NODES 2

struct cm_node {
    struct cm_thread t;
    struct mad_box box;
    int sock; /* of the client */
    uint64_t channel;
    int pipe; /* of that channel */
};
static struct cm_node cm_node[CM_NODES]; /* 127.0.0.1 and 127.0.0.2 */

/* Hands a MAD to the node that has its destination. */
static inline void cm_hand_over(struct cm_datagram *d)
{
    for (unsigned i = 0; i < CM_NODES; i++) {
        const struct mad_device *m = &cm_node[i].box.device;

        for (unsigned k = 0; k < m->num_gids; k++) {
            if (memcmp(m->gids[k], d->local_gid, 16) != 0)
                continue;
            d->sgid_index = (uint8_t)k;
            mad_box_received(&cm_node[i].box, d);
        }
    }
}

/* Carries the MADs that a node has sent. Those to or from addresses that no node has are lost. */
static inline bool cm_carry(struct cm_node *from)
{
    struct cm_datagram d;
    bool any = false;

    while (mad_box_next_to_send(&from->box, &d)) {
        struct cm_datagram r = d;

        any = true;
        memcpy(r.local_gid, d.remote_gid, sizeof(r.local_gid));
        memcpy(r.remote_gid, from->box.device.gids[d.sgid_index], sizeof(r.remote_gid));
        cm_hand_over(&r);
    }
    return any;
}

/* Turns the loops until nothing moves. */
static inline void cm_settle(void)
{
    bool moved = true;

    for (unsigned i = 0; i < 100 && moved; i++) {
        moved = false;
        for (unsigned n = 0; n < CM_NODES; n++) {
            cm_thread_turn(&cm_node[n].t);
            cm_thread_turn(&cm_node[n].t);
            moved |= cm_carry(&cm_node[n]) || !TAILQ_EMPTY(&cm_node[n].t.host.ending);
        }
    }
}

/* Sends a request and reads the reply. Returns its status. fd: gets the descriptor of the reply; NULL: it has none. */
static inline int cm_request_on(struct cm_node *n, int sock, uint32_t op, const void *payload, size_t len, void *rep,
                                size_t rep_len, int *fd)
{
    struct pm_request head = {op, (uint32_t)len};
    struct iovec out[2] = {{&head, sizeof(head)}, {(void *)(uintptr_t)payload, len}};
    struct pm_reply reply = {.status = -EPIPE};
    uint8_t body[PM_MSG_MAX];
    struct iovec in[2] = {{&reply, sizeof(reply)}, {body, sizeof(body)}};
    _Alignas(struct cmsghdr) uint8_t ctl[CMSG_SPACE(sizeof(int))];
    struct msghdr m = {.msg_iov = in, .msg_iovlen = 2, .msg_control = ctl, .msg_controllen = sizeof(ctl)};

    if (sendmsg(sock, &(struct msghdr){.msg_iov = out, .msg_iovlen = len ? 2 : 1}, MSG_NOSIGNAL) < 0)
        return -EPIPE;
    cm_thread_turn(&n->t);
    if (recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
        return -EPIPE;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c && fd)
        memcpy(fd, CMSG_DATA(c), sizeof(*fd));
    if (reply.status == 0 && rep)
        memcpy(rep, body, rep_len < reply.len ? rep_len : reply.len);
    return reply.status;
}

static inline int cm_request(struct cm_node *n, uint32_t op, const void *payload, size_t len, void *rep, size_t rep_len,
                             int *fd)
{
    return cm_request_on(n, n->sock, op, payload, len, rep, rep_len, fd);
}

/* Connects a client of the user. */
static inline int cm_connect_client(struct cm_node *n, uid_t uid)
{
    struct ucred cred = {.pid = getpid(), .uid = uid};
    struct pm_reply reply;
    int sock[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) != 0)
        return -1;
    fcntl(sock[1], F_SETFL, O_NONBLOCK);
    cm_client_open(&n->t.clients, sock[1], &cred);
    if (recv(sock[0], &reply, sizeof(reply), MSG_DONTWAIT) < (ssize_t)sizeof(reply) || reply.status != 0) {
        close(sock[0]);
        return -1;
    }
    return sock[0];
}

static inline int cm_channel_on(struct cm_node *n, int sock, uint64_t *channel, int *pipe)
{
    struct pm_cm_create_channel_rep rep = {0};
    int rc = cm_request_on(n, sock, PM_OP_CM_CREATE_CHANNEL, NULL, 0, &rep, sizeof(rep), pipe);

    *channel = rep.channel;
    return rc;
}

static inline void cm_describe(struct cm_node *n, const char *ip)
{
    struct mad_device d = {.guid = 0x1000 + (uint64_t)(n - cm_node), .ifindex = 1, .active_mtu = 5, .num_gids = 1};
    struct in_addr a;

    inet_pton(AF_INET, ip, &a);
    gid_from_v4(d.gids[0], &a);
    mad_box_describe(&n->box, &d);
}

static inline bool cm_start_quota(struct quota *q)
{
    static const char *const ip[CM_NODES] = {"127.0.0.1", "127.0.0.2"};
    char why[ERROR_TEXT_MAX];

    signal(SIGPIPE, SIG_IGN); /* as in pumiced */
    for (unsigned i = 0; i < CM_NODES; i++) {
        struct cm_node *n = &cm_node[i];
        struct cm_thread_config cfg = {.box = {&n->box}, .num_boxes = 1, .quota = q, .control_share = 100};

        mad_box_init(&n->box);
        cm_describe(n, ip[i]);
        if (cm_thread_init(&n->t, &cfg, why) != 0)
            return false;
        n->sock = cm_connect_client(n, geteuid());
        if (n->sock < 0 || cm_channel_on(n, n->sock, &n->channel, &n->pipe) != 0)
            return false;
    }
    return true;
}

static inline bool cm_start(void)
{
    return cm_start_quota(NULL);
}

static inline void cm_end(void)
{
    for (unsigned i = 0; i < CM_NODES; i++) {
        close(cm_node[i].sock);
        close(cm_node[i].pipe);
        cm_thread_fini(&cm_node[i].t);
        mad_box_fini(&cm_node[i].box);
    }
}

/* --- commands ---------------------------------------------------------------------------------- */

static inline int cm_command_extra(struct cm_node *n, uint64_t channel, uint32_t cmd, const void *in, size_t in_len,
                                   const void *extra, size_t extra_len, void *out, size_t out_len)
{
    struct {
        struct pm_cm_command_req head;
        uint8_t bytes[2 * PM_CM_IN_MAX];
    } rq = {.head = {channel, cmd, (uint16_t)in_len, (uint16_t)out_len, (uint16_t)extra_len, {0}}};

    memcpy(rq.bytes, in, in_len);
    if (extra_len)
        memcpy(rq.bytes + in_len, extra, extra_len);
    return cm_request(n, PM_OP_CM_COMMAND, &rq, sizeof(rq.head) + in_len + extra_len, out, out_len, NULL);
}

static inline int cm_command(struct cm_node *n, uint32_t cmd, const void *in, size_t in_len, void *out, size_t out_len)
{
    return cm_command_extra(n, n->channel, cmd, in, in_len, NULL, 0, out, out_len);
}

static inline uint32_t cm_create(struct cm_node *n, uint16_t ps, uint64_t uid)
{
    struct rdma_ucm_create_id in = {.uid = uid, .ps = ps};
    struct rdma_ucm_create_id_resp out = {0};

    cm_command(n, RDMA_USER_CM_CMD_CREATE_ID, &in, sizeof(in), &out, sizeof(out));
    return out.id;
}

/* Returns the events that were reported, or -errno. */
static inline int cm_destroy(struct cm_node *n, uint32_t id)
{
    struct rdma_ucm_destroy_id in = {.id = id};
    struct rdma_ucm_destroy_id_resp out = {0};
    int rc = cm_command(n, RDMA_USER_CM_CMD_DESTROY_ID, &in, sizeof(in), &out, sizeof(out));

    return rc ? rc : (int)out.events_reported;
}

static inline struct sockaddr_in cm_sockaddr(const char *ip, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

    inet_pton(AF_INET, ip, &a.sin_addr);
    return a;
}

static inline int cm_bind_to(struct cm_node *n, uint32_t id, const void *addr, size_t size)
{
    struct rdma_ucm_bind in = {.id = id, .addr_size = (uint16_t)size};

    memcpy(&in.addr, addr, size);
    return cm_command(n, RDMA_USER_CM_CMD_BIND, &in, sizeof(in), NULL, 0);
}

static inline int cm_bind_ip(struct cm_node *n, uint32_t id, const char *ip, uint16_t port)
{
    struct sockaddr_in a = cm_sockaddr(ip, port);

    return cm_bind_to(n, id, &a, sizeof(a));
}

static inline int cm_listen_on(struct cm_node *n, uint32_t id, uint32_t backlog)
{
    struct rdma_ucm_listen in = {id, backlog};

    return cm_command(n, RDMA_USER_CM_CMD_LISTEN, &in, sizeof(in), NULL, 0);
}

static inline int cm_resolve(struct cm_node *n, uint32_t id, const char *src, const char *dst, uint16_t port)
{
    struct rdma_ucm_resolve_addr in = {.id = id, .timeout_ms = 1000, .dst_size = sizeof(struct sockaddr_in)};
    struct sockaddr_in from = cm_sockaddr(src ? src : "0.0.0.0", 0), to = cm_sockaddr(dst, port);

    in.src_size = src ? sizeof(from) : 0;
    if (src)
        memcpy(&in.src_addr, &from, sizeof(from));
    memcpy(&in.dst_addr, &to, sizeof(to));
    return cm_command(n, RDMA_USER_CM_CMD_RESOLVE_ADDR, &in, sizeof(in), NULL, 0);
}

static inline int cm_route(struct cm_node *n, uint32_t id)
{
    struct rdma_ucm_resolve_route in = {id, 1000};

    return cm_command(n, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &in, sizeof(in), NULL, 0);
}

static inline struct rdma_ucm_conn_param cm_param(uint32_t qpn, const char *text)
{
    struct rdma_ucm_conn_param p = {
        .qp_num = qpn, .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .valid = 1};

    p.private_data_len = (uint8_t)(strlen(text) + 1);
    memcpy(p.private_data, text, p.private_data_len);
    return p;
}

static inline int cm_connect_id(struct cm_node *n, uint32_t id, uint32_t qpn, const char *text)
{
    struct rdma_ucm_connect in = {.conn_param = cm_param(qpn, text), .id = id};

    return cm_command(n, RDMA_USER_CM_CMD_CONNECT, &in, sizeof(in), NULL, 0);
}

static inline int cm_accept_id(struct cm_node *n, uint32_t id, uint64_t uid, uint32_t qpn, const char *text)
{
    struct rdma_ucm_accept in = {.uid = uid, .conn_param = cm_param(qpn, text), .id = id};

    return cm_command(n, RDMA_USER_CM_CMD_ACCEPT, &in, sizeof(in), NULL, 0);
}

static inline int cm_init_attr(struct cm_node *n, uint32_t id, uint32_t state, struct ib_uverbs_qp_attr *out)
{
    struct rdma_ucm_init_qp_attr in = {.id = id, .qp_state = state};

    return cm_command(n, RDMA_USER_CM_CMD_INIT_QP_ATTR, &in, sizeof(in), out, sizeof(*out));
}

/* --- events ------------------------------------------------------------------------------------ */

/* Unread bytes of a channel: the number of its events. */
static inline int cm_bytes(int pipe)
{
    int n = -1;

    ioctl(pipe, FIONREAD, &n);
    return n;
}

/* Takes a byte and an event, as the client library does. -EAGAIN: the pipe has no byte. */
static inline int cm_event_of(struct cm_node *n, uint64_t channel, int pipe, struct rdma_ucm_event_resp *ev)
{
    struct rdma_ucm_get_event in = {0};
    char byte;

    memset(ev, 0, sizeof(*ev));
    if (cm_bytes(pipe) <= 0 || read(pipe, &byte, 1) != 1)
        return -EAGAIN;
    return cm_command_extra(n, channel, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), NULL, 0, ev, sizeof(*ev));
}

/* Lets everything happen, and takes an event. */
static inline int cm_event(struct cm_node *n, struct rdma_ucm_event_resp *ev)
{
    cm_settle();
    return cm_event_of(n, n->channel, n->pipe, ev);
}

/* --- a connection ------------------------------------------------------------------------------ */

struct cm_pair {
    uint32_t listener, server, client;
    uint16_t port;
};

/* An established connection from node 1 to node 0. Returns 0, or the number of the step that failed. */
static inline int cm_pair_connect(struct cm_pair *p)
{
    struct cm_node *a = &cm_node[0], *b = &cm_node[1];
    struct rdma_ucm_event_resp ev;

    p->port = 7471;
    p->listener = cm_create(a, RDMA_PS_TCP, 100);
    p->client = cm_create(b, RDMA_PS_TCP, 200);
    if (cm_bind_ip(a, p->listener, "127.0.0.1", p->port) || cm_listen_on(a, p->listener, 4))
        return 1;
    if (cm_resolve(b, p->client, "127.0.0.2", "127.0.0.1", p->port) || cm_event(b, &ev) ||
        ev.event != CM_EVENT_ADDR_RESOLVED)
        return 2;
    if (cm_route(b, p->client) || cm_event(b, &ev) || ev.event != CM_EVENT_ROUTE_RESOLVED)
        return 3;
    if (cm_connect_id(b, p->client, 0x22, "hello") || cm_event(a, &ev) || ev.event != CM_EVENT_CONNECT_REQUEST)
        return 4;
    p->server = ev.id;
    if (cm_accept_id(a, p->server, 101, 0x11, "welcome") || cm_event(b, &ev) || ev.event != CM_EVENT_CONNECT_RESPONSE)
        return 5;
    struct rdma_ucm_accept in = {.id = p->client}; /* the RTU */
    if (cm_command(b, RDMA_USER_CM_CMD_ACCEPT, &in, sizeof(in), NULL, 0) || cm_event(a, &ev) ||
        ev.event != CM_EVENT_ESTABLISHED)
        return 6;
    return 0;
}

#endif
