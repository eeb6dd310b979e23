// SPDX-License-Identifier: BSD-2-Clause
/* Connections by librdmacm of less usual kinds, within one device: IDs whose queue pair is a shared receive queue's, one with
 * tag matching among them; queue pairs that librdmacm does not know (rdma_establish, rdma_notify). */
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "tests/verbs/tag_matching/tags.h"

#define TIMEOUT_MS 5000
#define TAG 0x77
#define LENGTH 300

static struct rdma_event_channel *channel;
static struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1, .retry_count = 7};

static struct sockaddr_in own_address(void)
{
    struct ibv_context *c = vt_open();
    union ibv_gid gid = vt_gid(c);
    struct sockaddr_in a = {.sin_family = AF_INET};
    memcpy(&a.sin_addr, &gid.raw[12], 4);
    ibv_close_device(c);
    return a;
}

/* Takes the next event, which must be this one. Returns its ID. */
static struct rdma_cm_id *next(enum rdma_cm_event_type type)
{
    struct rdma_cm_event *e;
    need(rdma_get_cm_event(channel, &e) == 0);
    if (e->event != type)
        printf("# %s, status %d, instead of %s\n", rdma_event_str(e->event), e->status, rdma_event_str(type));
    need(e->event == type);
    struct rdma_cm_id *id = e->id;
    need(rdma_ack_cm_event(e) == 0);
    return id;
}

/* Both sides are told that they are connected, in any order. */
static bool established(void)
{
    struct rdma_cm_id *one = next(RDMA_CM_EVENT_ESTABLISHED);
    return next(RDMA_CM_EVENT_ESTABLISHED) != one;
}

static struct rdma_cm_id *listening(struct sockaddr_in *a)
{
    struct rdma_cm_id *id;
    *a = own_address();
    need(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 && rdma_bind_addr(id, (struct sockaddr *)a) == 0 &&
         rdma_listen(id, 1) == 0);
    a->sin_port = rdma_get_src_port(id);
    return id;
}

static struct rdma_cm_id *resolved(struct sockaddr_in *to)
{
    struct rdma_cm_id *id;
    need(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 &&
         rdma_resolve_addr(id, NULL, (struct sockaddr *)to, TIMEOUT_MS) == 0 &&
         next(RDMA_CM_EVENT_ADDR_RESOLVED) == id && rdma_resolve_route(id, TIMEOUT_MS) == 0 &&
         next(RDMA_CM_EVENT_ROUTE_RESOLVED) == id);
    return id;
}

static struct ibv_qp_init_attr sends(void)
{
    return (struct ibv_qp_init_attr){.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
                                     .qp_type = IBV_QPT_RC,
                                     .sq_sig_all = 1};
}

/* Ends a connection: the peer gets the event, and answers. */
static bool ends(struct rdma_cm_id *client, struct rdma_cm_id *server)
{
    return rdma_disconnect(client) == 0 && next(RDMA_CM_EVENT_DISCONNECTED) == server && rdma_disconnect(server) == 0 &&
           next(RDMA_CM_EVENT_DISCONNECTED) == client;
}

/* --- shared receive queues --------------------------------------------------------------------- */

/* Sends the buffer, and has its completion. */
static bool sent(struct rdma_cm_id *id, void *buf, size_t len, struct ibv_mr *mr)
{
    struct ibv_wc wc;
    return rdma_post_send(id, NULL, buf, len, mr, 0) == 0 && rdma_get_send_comp(id, &wc) == 1 &&
           wc.status == IBV_WC_SUCCESS;
}

static bool closed(struct rdma_cm_id *client, struct rdma_cm_id *server, struct rdma_cm_id *listener)
{
    bool good = ends(client, server);
    rdma_destroy_qp(client);
    rdma_destroy_qp(server);
    return good && rdma_destroy_id(client) == 0 && rdma_destroy_id(listener) == 0;
}

static void basic_srq(void)
{
    static char out[64] = "a message for the queue", in[64];
    struct sockaddr_in a;
    struct rdma_cm_id *listener = listening(&a), *client = resolved(&a);
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_qp_init_attr attr = sends(), shared = sends();
    struct ibv_wc wc;
    need(rdma_create_qp(client, NULL, &attr) == 0 && rdma_connect(client, &param) == 0);
    struct rdma_cm_id *server = next(RDMA_CM_EVENT_CONNECT_REQUEST);
    ok(rdma_create_srq(server, NULL, &srq) == 0 && rdma_create_qp(server, NULL, &shared) == 0 &&
           server->qp->srq == server->srq,
       "an ID with a shared receive queue");
    struct ibv_mr *from = rdma_reg_msgs(client, out, sizeof(out)), *to = rdma_reg_msgs(server, in, sizeof(in));
    need(from && to && rdma_post_recv(server, NULL, in, sizeof(in), to) == 0);
    ok(rdma_accept(server, &param) == 0 && established(), "connects");
    ok(sent(client, out, sizeof(out), from) && rdma_get_recv_comp(server, &wc) == 1 && wc.byte_len == sizeof(out) &&
           memcmp(in, out, sizeof(out)) == 0,
       "a message takes a request of the queue");
    need(rdma_dereg_mr(from) == 0 && rdma_dereg_mr(to) == 0);
    bool good = closed(client, server, listener);
    rdma_destroy_srq(server);
    ok(good && rdma_destroy_id(server) == 0, "it ends");
}

static void tag_matching(void)
{
    struct sockaddr_in a;
    struct rdma_cm_id *listener = listening(&a), *client = resolved(&a);
    struct ibv_qp_init_attr attr = sends();
    struct tm_side r, s;
    tm_side_open(&s, client->verbs);
    attr.send_cq = attr.recv_cq = s.other;
    need(rdma_create_qp(client, s.pd, &attr) == 0 && rdma_connect(client, &param) == 0);
    struct rdma_cm_id *server = next(RDMA_CM_EVENT_CONNECT_REQUEST);
    tm_side_open(&r, server->verbs);
    struct ibv_srq_init_attr_ex srq = {.attr = {.max_wr = 16, .max_sge = 1},
                                       .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                    IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
                                       .srq_type = IBV_SRQT_TM,
                                       .pd = r.pd,
                                       .cq = ibv_cq_ex_to_cq(r.cq),
                                       .tm_cap = {16, 16}};
    struct ibv_qp_init_attr shared = {.send_cq = r.other, .recv_cq = r.other, .qp_type = IBV_QPT_RC};
    need(rdma_create_srq_ex(server, &srq) == 0);
    shared.srq = r.srq = server->srq;
    ok(rdma_create_qp(server, r.pd, &shared) == 0 && server->qp->srq == r.srq, "an ID with a TM-SRQ");
    tm_buffer(&r, 5, 1 << 16, 4096);
    tm_add(&r, 1, TAG, 0, LENGTH);
    need(tm_sync(&r, 0));
    ok(rdma_accept(server, &param) == 0 && established(), "connects");
    tm_header(&s, IBV_TMH_EAGER, TAG, 0);
    memset(s.buf + sizeof(struct ibv_tmh), 'm', LENGTH);
    struct ibv_wc wc;
    ok(rdma_post_send(client, NULL, s.buf, sizeof(struct ibv_tmh) + LENGTH, s.mr, 0) == 0 &&
           vt_poll(s.other, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS,
       "a message with a tag is sent");
    ok(tm_matched(&r, 1, TAG, LENGTH) && r.buf[0] == 'm' && r.buf[LENGTH - 1] == 'm' && r.buf[LENGTH] == 0,
       "it comes to the entry of its tag");
    bool good = closed(client, server, listener);
    rdma_destroy_srq(server);
    r.srq = NULL;
    ok(good && (tm_side_close(&r) | tm_side_close(&s)) == 0 && rdma_destroy_id(server) == 0, "it ends");
}

/* --- queue pairs of the program's own ------------------------------------------------------------ */

/* Moves the queue pair to a state, as librdmacm says. */
static bool moved(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    int mask;
    return rdma_init_qp_attr(id, &attr, &mask) == 0 && ibv_modify_qp(qp, &attr, mask) == 0;
}

/* A connection whose queue pairs librdmacm does not know. */
struct own {
    struct rdma_cm_id *listener, *client, *server;
    struct tm_side r, s; /* of the server, of the client */
    struct ibv_qp *mine, *theirs; /* of the client, of the server */
};

/* Connects up to the response, which the program gets. The server's queue pair is in this state, the client's in INIT. */
static void connect_own(struct own *o, enum ibv_qp_state state)
{
    struct sockaddr_in a;
    struct rdma_conn_param with = param;
    struct rdma_cm_event *e;
    o->listener = listening(&a);
    o->client = resolved(&a);
    tm_side_open(&o->s, o->client->verbs);
    struct ibv_qp_init_attr sa = sends();
    sa.send_cq = sa.recv_cq = o->s.other;
    o->mine = ibv_create_qp(o->s.pd, &sa);
    need(o->mine && moved(o->client, o->mine, IBV_QPS_INIT));
    with.qp_num = o->mine->qp_num;
    need(rdma_connect(o->client, &with) == 0);
    o->server = next(RDMA_CM_EVENT_CONNECT_REQUEST);
    tm_side_open(&o->r, o->server->verbs);
    struct ibv_qp_init_attr ra = sends();
    ra.send_cq = ra.recv_cq = o->r.other;
    o->theirs = ibv_create_qp(o->r.pd, &ra);
    need(o->theirs && moved(o->server, o->theirs, IBV_QPS_INIT) && moved(o->server, o->theirs, IBV_QPS_RTR));
    need(state != IBV_QPS_RTS || moved(o->server, o->theirs, IBV_QPS_RTS));
    with.qp_num = o->theirs->qp_num;
    need(rdma_accept(o->server, &with) == 0 && rdma_get_cm_event(channel, &e) == 0);
    ok(e->event == RDMA_CM_EVENT_CONNECT_RESPONSE && e->id == o->client && e->param.conn.qp_num == o->theirs->qp_num,
       "the response is for the program, with the queue pair of the peer");
    need(rdma_ack_cm_event(e) == 0);
    need(moved(o->client, o->mine, IBV_QPS_RTR) && moved(o->client, o->mine, IBV_QPS_RTS));
}

/* Sends a message from the client to the server. */
static bool carries(struct own *o)
{
    struct ibv_sge to = tm_at(&o->r, 0, 64), from = tm_at(&o->s, 0, 64);
    struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
    struct ibv_wc wc;
    memset(o->s.buf, 'd', 64);
    need(ibv_post_recv(o->theirs, &recv, &bad_recv) == 0);
    return ibv_post_send(o->mine, &send, &bad_send) == 0 && vt_poll(o->r.other, 1, &wc) == 1 &&
           wc.status == IBV_WC_SUCCESS && vt_poll(o->s.other, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS &&
           o->r.buf[63] == 'd';
}

static void close_own(struct own *o)
{
    ok(ends(o->client, o->server), "it ends");
    need(ibv_destroy_qp(o->mine) == 0 && ibv_destroy_qp(o->theirs) == 0);
    ok((tm_side_close(&o->r) | tm_side_close(&o->s)) == 0 && rdma_destroy_id(o->client) == 0 &&
           rdma_destroy_id(o->server) == 0 && rdma_destroy_id(o->listener) == 0,
       "all is destroyed");
}

static void own_queue_pairs(void)
{
    struct own o;
    connect_own(&o, IBV_QPS_RTS);
    ok(rdma_establish(o.client) == 0 && next(RDMA_CM_EVENT_ESTABLISHED) == o.server,
       "rdma_establish completes the connection");
    ok(carries(&o), "data go over it");
    close_own(&o);
}

/* The first message comes before the RTU: the device tells the program, and the program tells librdmacm. */
static void established_by_a_message(void)
{
    struct own o;
    connect_own(&o, IBV_QPS_RTR);
    struct pollfd p = {.fd = channel->fd, .events = POLLIN};
    ok(carries(&o) && vt_event(o.server->verbs, IBV_EVENT_COMM_EST, o.theirs), "a message before the RTU: COMM_EST");
    ok(poll(&p, 1, 0) == 0, "no connection yet");
    errno = 0;
    ok(rdma_notify(o.server, IBV_EVENT_SQ_DRAINED) != 0 && errno == EINVAL, "rdma_notify with another event: EINVAL");
    ok(rdma_notify(o.server, IBV_EVENT_COMM_EST) == 0 && next(RDMA_CM_EVENT_ESTABLISHED) == o.server,
       "rdma_notify completes the connection");
    ok(rdma_establish(o.client) == 0 && moved(o.server, o.theirs, IBV_QPS_RTS) && carries(&o) && poll(&p, 1, 0) == 0,
       "the RTU comes later, and is no event");
    close_own(&o);
}

int main(void)
{
    VT_OWN("connection management in the client library");
    need((channel = rdma_create_event_channel()));
    basic_srq();
    own_queue_pairs();
    established_by_a_message();
    tag_matching();
    rdma_destroy_event_channel(channel);
    return vt_failed;
}
