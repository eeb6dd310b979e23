// SPDX-License-Identifier: BSD-2-Clause
/* An XRC target, packet by packet: messages whose packets do not name the same SRQ, and an SRQ that is destroyed in the middle of a message.
 * The target fails, its initiator gets one NAK, and no SRQ but the one that the message began with loses a receive request. The program is
 * the initiator. */
#include <fcntl.h>

#include "tests/verbs/wire/wire_host.h"

#define FIRST 10u

static struct vt_end e;
static struct wire_host w;
static struct ibv_xrcd *domain;
static struct ibv_qp *target;
static uint8_t data[WIRE_MTU];

static void srq_recv(struct ibv_srq *srq, uint64_t id, uint32_t at)
{
    struct ibv_sge s = vt_at(&e, at, 2 * WIRE_MTU);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;
    need(ibv_post_srq_recv(srq, &wr, &bad) == 0);
}

static void connect_again(void)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain};
    struct pkt p;
    if (target)
        need(ibv_destroy_qp(target) == 0);
    while (wire_take(&w, 0.02, &p))
        ;
    need((target = ibv_create_qp_ex(vt_ctx, &attr)));
    wire_connect(&w, target, FIRST);
}

static void send_part(uint8_t operation, uint32_t psn, uint32_t srqn, uint32_t len)
{
    wire_send(&w, (struct pkt){.opcode = OP_SERVICE_XRC | operation, .psn = psn, .srqn = srqn}, data, len);
}

static bool failed(enum ibv_event_type event)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    bool told = vt_event(vt_ctx, event, target);
    need(ibv_query_qp(target, &attr, IBV_QP_STATE, &init) == 0);
    return told && attr.qp_state == IBV_QPS_ERR;
}

/* A whole message through a new connection. */
static bool gets(uint32_t srqn, struct ibv_cq *cq, uint64_t id)
{
    connect_again();
    send_part(OP_SEND_ONLY, FIRST, srqn, 8);
    if (!wire_answer(&w, AETH_ACK, FIRST, 1))
        return false;
    struct ibv_wc wc = vt_next(cq);
    if (wc.wr_id != id)
        printf("# got: request %lu, not %lu\n", (unsigned long)wc.wr_id, (unsigned long)id);
    return wc.status == IBV_WC_SUCCESS && wc.wr_id == id;
}

/* The packets of a message name two SRQs, both with receive requests. */
static void split(uint8_t second, uint32_t second_len, const char *what)
{
    uint32_t n1, n2;
    struct ibv_cq *cq2 = ibv_create_cq(vt_ctx, 16, NULL, NULL, 0);
    struct ibv_srq *s1 = vt_xrc_srq(e.pd, domain, e.rcq, &n1), *s2 = vt_xrc_srq(e.pd, domain, cq2, &n2);
    srq_recv(s1, 1, 0);
    srq_recv(s1, 3, 0);
    srq_recv(s2, 2, 4096);
    connect_again();
    send_part(OP_SEND_FIRST, FIRST, n1, WIRE_MTU);
    need(wire_answer(&w, AETH_ACK, FIRST, 0));
    send_part(second, FIRST + 1, n2, second_len);
    ok(wire_answer(&w, NAK_INVALID_REQUEST, FIRST + 1, 0) && failed(IBV_EVENT_QP_REQ_ERR), what);
    struct ibv_wc taken = vt_next(e.rcq);
    ok(taken.status == IBV_WC_WR_FLUSH_ERR && taken.wr_id == 1, "the request that the message has taken is flushed");
    send_part(OP_SEND_LAST, FIRST + 2, n1, 8);
    ok(wire_quiet(&w) && vt_quiet(e.rcq) && vt_quiet(cq2), "it answers nothing more, and nothing is received");
    ok(gets(n1, e.rcq, 3) && gets(n2, cq2, 2), "the other requests of both SRQs are still there");
    need(ibv_destroy_srq(s1) == 0 && ibv_destroy_srq(s2) == 0 && ibv_destroy_cq(cq2) == 0);
}

static void destroyed(void)
{
    uint32_t n1, n2;
    struct ibv_srq *s1 = vt_xrc_srq(e.pd, domain, e.rcq, &n1), *s2 = vt_xrc_srq(e.pd, domain, e.rcq, &n2);
    srq_recv(s1, 1, 0);
    srq_recv(s2, 2, 4096);
    connect_again();
    send_part(OP_SEND_FIRST, FIRST, n1, WIRE_MTU);
    need(wire_answer(&w, AETH_ACK, FIRST, 0));
    ok(ibv_destroy_srq(s1) == 0, "an SRQ can be destroyed while a message for it arrives");
    send_part(OP_SEND_MIDDLE, FIRST + 1, n1, WIRE_MTU);
    ok(wire_answer(&w, NAK_REMOTE_ACCESS, FIRST + 1, 0) && failed(IBV_EVENT_QP_ACCESS_ERR),
       "the next packet of it: one NAK (remote access), an event, and the target is in ERR");
    send_part(OP_SEND_LAST, FIRST + 2, n1, 8);
    ok(wire_quiet(&w) && vt_quiet(e.rcq), "the last one gets no answer, and nothing is received");
    ok(gets(n2, e.rcq, 2), "another SRQ of the domain has its request");
    need(ibv_destroy_srq(s2) == 0);
}

int main(void)
{
    struct ibv_xrcd_init_attr x = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    VT_OWN("it needs the packets of the device");
    vt_ctx = vt_open();
    vt_needs(vt_ctx, VT_XRC);
    wire_open(&w, vt_ctx);
    vt_end_open(&e, vt_ctx);
    need((domain = ibv_open_xrcd(vt_ctx, &x)));
    split(OP_SEND_LAST, 8,
          "the last packet names another SRQ: one NAK (invalid request), an event, and the target is in ERR");
    split(OP_SEND_MIDDLE, WIRE_MTU, "the second packet names another SRQ: the same");
    destroyed();
    wire_close(&w);
    need(ibv_destroy_qp(target) == 0);
    ok(ibv_close_xrcd(domain) == 0 && vt_end_close(&e) && ibv_close_device(vt_ctx) == 0, "all is closed");
    return vt_failed;
}
