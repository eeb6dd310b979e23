// SPDX-License-Identifier: BSD-2-Clause
/* ibv_post_send and ibv_post_recv: what they refuse, where bad_wr points then, and that a refused request leaves no
 * trace. */
#include "tests/verbs/ends.h"

static struct vt_pair p;

static void begin(void)
{
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
}
static void end(void)
{
    ok(vt_pair_end(&p), "everything is destroyed");
}

static int send_list(struct ibv_send_wr *wr, int num, struct ibv_send_wr **bad)
{
    for (int i = 0; i < num; i++)
        wr[i].next = i + 1 < num ? &wr[i + 1] : NULL;
    *bad = NULL;
    return ibv_post_send(p.qp[0], wr, bad);
}

static void states(void)
{
    struct ibv_sge s;
    vt_pair_make(&p, vt_ctx, NULL);
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad = NULL;
    struct ibv_recv_wr rr = {.sg_list = &s, .num_sge = 1}, *bad_rr = NULL;
    s = vt_sge(&p, 0, 8);
    ok(vt_fails(ibv_post_recv(p.qp[0], &rr, &bad_rr), EINVAL) && bad_rr == &rr, "receive in RESET: EINVAL");
    ok(vt_fails(ibv_post_send(p.qp[0], &wr, &bad), EINVAL) && bad == &wr, "send in RESET: EINVAL");
    need(vt_to_init(p.qp[0]) == 0 && vt_to_init(p.qp[1]) == 0);
    ok(ibv_post_recv(p.qp[1], &rr, &bad_rr) == 0, "receive in INIT");
    ok(vt_fails(ibv_post_send(p.qp[0], &wr, &bad), EINVAL), "send in INIT: EINVAL");
    need(vt_to_rtr(p.qp[0], p.qp[1]->qp_num) == 0 && vt_to_rtr(p.qp[1], p.qp[0]->qp_num) == 0);
    ok(vt_fails(ibv_post_send(p.qp[0], &wr, &bad), EINVAL), "send in RTR: EINVAL");
    need(vt_to_rts(p.qp[0]) == 0 && vt_to_rts(p.qp[1]) == 0);
    struct ibv_wc wc;
    wr.send_flags = IBV_SEND_SIGNALED;
    ok(ibv_post_send(p.qp[0], &wr, &bad) == 0 && vt_poll(p.scq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS,
       "send in RTS");
    ok(vt_poll(p.rcq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "it reaches the request posted in INIT");
    usleep(20000);
    ok(ibv_poll_cq(p.rcq, 1, &wc) == 0, "the requests that were refused were not sent");
    end();
}

static void bad_requests(void)
{
    struct ibv_sge s[32];
    struct ibv_send_wr wr[3] = {{0}}, *bad;
    char big[4096] = {0};
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    begin();
    need(ibv_query_qp(p.qp[0], &attr, IBV_QP_CAP, &init) == 0);
    need(init.cap.max_send_sge < 32 && init.cap.max_inline_data < sizeof(big));
    for (int i = 0; i < 32; i++)
        s[i] = vt_sge(&p, 0, 1);
    for (int i = 0; i < 3; i++)
        wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i, .sg_list = s, .num_sge = 1, .opcode = IBV_WR_SEND};
    wr[0].send_flags = IBV_SEND_SIGNALED;

    need(vt_recv(&p, 1, 7, 0, 64) == 0);
    wr[1].num_sge = (int)init.cap.max_send_sge + 1;
    ok(vt_fails(send_list(wr, 3, &bad), EINVAL) && bad == &wr[1], "too many SGEs: EINVAL at the second request");
    struct ibv_wc wc[2];
    ok(vt_poll(p.scq, 1, wc) == 1 && wc[0].wr_id == 0 && vt_poll(p.rcq, 1, wc) == 1, "the first of that list was sent");
    usleep(20000);
    ok(ibv_poll_cq(p.scq, 1, wc) == 0 && ibv_poll_cq(p.rcq, 1, wc) == 0, "the third was not");

    wr[0].send_flags = IBV_SEND_INLINE;
    s[0] = (struct ibv_sge){.addr = (uintptr_t)big, .length = init.cap.max_inline_data + 1};
    ok(vt_fails(send_list(wr, 1, &bad), EINVAL) && bad == wr, "more inline data than granted: EINVAL");
    wr[0].opcode = IBV_WR_RDMA_READ;
    s[0].length = 1;
    ok_pumice(send_list(wr, 1, &bad) == EINVAL, "inline READ: EINVAL");
    wr[0].send_flags = 0;
    wr[0].num_sge = -1;
    ok_pumice(send_list(wr, 1, &bad) == EINVAL, "negative number of SGEs: EINVAL");
    wr[0].num_sge = 1;
    wr[0].opcode = IBV_WR_TSO;
    wr[0].send_flags = IBV_SEND_SIGNALED;
    ok(vt_refuses(send_list(wr, 1, &bad), EINVAL, p.scq), "TSO on RC: EINVAL");
    wr[0].opcode = (enum ibv_wr_opcode)99;
    ok(vt_refuses(send_list(wr, 1, &bad), EINVAL, p.scq), "unknown opcode: EINVAL");

    struct ibv_recv_wr rr = {.sg_list = s, .num_sge = (int)init.cap.max_recv_sge + 1}, *bad_rr = NULL;
    ok(vt_fails(ibv_post_recv(p.qp[1], &rr, &bad_rr), EINVAL) && bad_rr == &rr, "receive with too many SGEs: EINVAL");
    end();
}

/* QP 0 has its receive queue full. */
static void error_state(void)
{
    struct ibv_wc wc[64];
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    need(ibv_query_qp(p.qp[0], &attr, IBV_QP_CAP, &init) == 0);
    int n = (int)init.cap.max_recv_wr;
    need(vt_to_state(p.qp[0], IBV_QPS_ERR) == 0);
    bool right = vt_poll(p.rcq, n, wc) == n;
    for (int i = 0; right && i < n; i++)
        right = wc[i].status == IBV_WC_WR_FLUSH_ERR && wc[i].wr_id == (uint64_t)i && wc[i].qp_num == p.qp[0]->qp_num;
    ok(right, "ERR flushes the receive queue in order");
    ok(vt_send(&p, 0, 41, 0, 8, 0) == 0 && vt_poll(p.scq, 1, wc) == 1 && wc[0].wr_id == 41 &&
           wc[0].status == IBV_WC_WR_FLUSH_ERR,
       "an unsignaled send in ERR is accepted and flushed");
    ok(vt_recv(&p, 0, 42, 0, 8) == 0 && vt_poll(p.rcq, 1, wc) == 1 && wc[0].wr_id == 42 &&
           wc[0].status == IBV_WC_WR_FLUSH_ERR,
       "a receive in ERR is accepted and flushed");

    /* RESET takes what waits in the CQs along, and the queues start empty. */
    need(vt_recv(&p, 0, 43, 0, 8) == 0 && vt_send(&p, 0, 44, 0, 8, 0) == 0);
    usleep(20000);
    need(vt_to_state(p.qp[0], IBV_QPS_RESET) == 0 && vt_to_state(p.qp[1], IBV_QPS_RESET) == 0);
    ok_pumice(ibv_poll_cq(p.rcq, 1, wc) == 0 && ibv_poll_cq(p.scq, 1, wc) == 0, "RESET leaves no completions behind");
    while (ibv_poll_cq(p.rcq, 1, wc) > 0 || ibv_poll_cq(p.scq, 1, wc) > 0) /* a device may leave them */
        ;
    vt_connect(&p);
    strcpy(p.buf, "again");
    ok(vt_recv(&p, 1, 45, 1024, 8) == 0 && vt_send(&p, 0, 46, 0, 6, IBV_SEND_SIGNALED) == 0 &&
           vt_poll(p.scq, 1, wc) == 1 && wc[0].wr_id == 46 && wc[0].status == IBV_WC_SUCCESS &&
           vt_poll(p.rcq, 1, wc) == 1 && wc[0].wr_id == 45 && !strcmp(p.buf + 1024, "again"),
       "and the QP can be used again");
}

/* Fills both queues of a pair: the peer has no receive request, so nothing completes. */
static void full_queues(void)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    begin();
    struct ibv_sge s = vt_sge(&p, 0, 8);
    need(ibv_query_qp(p.qp[0], &attr, IBV_QP_CAP, &init) == 0);
    int room = (int)init.cap.max_send_wr, recv_room = (int)init.cap.max_recv_wr;
    struct ibv_send_wr *wr = calloc((size_t)room + 2, sizeof(*wr)), *bad;
    for (int i = 0; i < room + 2; i++)
        wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i,
                                     .sg_list = &s,
                                     .num_sge = 1,
                                     .opcode = IBV_WR_SEND,
                                     .send_flags = i % 2 ? IBV_SEND_SIGNALED : 0};
    wr[room - 1].send_flags = IBV_SEND_SIGNALED;
    ok(vt_fails(send_list(wr, room + 2, &bad), ENOMEM) && bad == &wr[room],
       "send queue full: ENOMEM at the first that has no room");
    ok(vt_fails(send_list(wr, 1, &bad), ENOMEM) && bad == wr, "still full");

    int posted = 0;
    while (vt_recv(&p, 0, (uint64_t)posted, 0, 8) == 0)
        posted++;
    ok(posted == recv_room, "receive queue full after max_recv_wr requests");

    /* Let it go: the peer receives all, the slots come back. */
    for (int i = 0; i < room; i++) {
        struct ibv_wc wc;
        need(vt_recv(&p, 1, 0, 64, 8) == 0);
        need(vt_poll(p.rcq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    }
    struct ibv_wc wc[64];
    int signaled = room / 2 + (room % 2);
    ok(vt_poll(p.scq, signaled, wc) == signaled && wc[signaled - 1].wr_id == (uint64_t)room - 1,
       "all signaled requests completed");
    need(vt_recv(&p, 1, 0, 64, 8) == 0);
    wr[0].send_flags = IBV_SEND_SIGNALED;
    ok(send_list(wr, 1, &bad) == 0 && vt_poll(p.scq, 1, wc) == 1 && vt_poll(p.rcq, 1, wc) == 1, "there is room again");
    free(wr);
    error_state();
    end();
}

/* Inline data over several SGEs, and a small message over several receive SGEs. */
static void inline_data(void)
{
    char a[] = "abcdef", b[] = "0123456789";
    begin();
    struct ibv_sge s[3] = {{(uintptr_t)a, 6, 0}, {(uintptr_t)a, 0, 0}, {(uintptr_t)b, 10, 0}};
    struct ibv_sge r[4] = {vt_sge(&p, 100, 3), vt_sge(&p, 200, 0), vt_sge(&p, 300, 9), vt_sge(&p, 400, 50)};
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = s,
                             .num_sge = 3,
                             .opcode = IBV_WR_SEND_WITH_IMM,
                             .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
                             .imm_data = htonl(0x12345678)},
                       *bad;
    struct ibv_recv_wr rr = {.wr_id = 2, .sg_list = r, .num_sge = 4}, *bad_rr;
    struct ibv_wc wc;
    memset(p.buf, '-', 1024);
    need(ibv_post_recv(p.qp[1], &rr, &bad_rr) == 0);
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0);
    memset(a, 'x', 6);
    memset(b, 'x', 10);
    ok(vt_poll(p.rcq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV && wc.wr_id == 2 &&
           wc.qp_num == p.qp[1]->qp_num,
       "inline send with immediate: its completion");
    ok(wc.byte_len == 16, "its length");
    if (!ok((wc.wc_flags & ~(unsigned)IBV_WC_GRH) == IBV_WC_WITH_IMM, "its flags: with immediate data"))
        printf("#   wc_flags 0x%x\n", wc.wc_flags);
    ok(wc.imm_data == htonl(0x12345678), "its immediate data");
    ok(!memcmp(p.buf + 100, "abc-", 4) && !memcmp(p.buf + 300, "def012345-", 10) && !memcmp(p.buf + 400, "6789-", 5) &&
           p.buf[200] == '-' && p.buf[99] == '-',
       "its bytes are where the receive request's SGEs say");
    ok(vt_poll(p.scq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND,
       "and the sender's completion");
    end();
}

int main(void)
{
    vt_part("states", states);
    vt_part("bad requests", bad_requests);
    vt_part("inline data", inline_data);
    vt_part("full queues and the error state", full_queues);
    return vt_failed;
}
