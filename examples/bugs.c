// SPDX-License-Identifier: BSD-2-Clause
/* A program with five mistakes. It seems to work: here, and mostly on a NIC. The checker finds all five:
 *
 *     pumice run --check build/examples/bugs
 *
 * Two queue pairs of one process send each other a few messages. Each mistake is marked; docs/checks.md explains the rules. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE 1024u

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp[2];
static char *buf; /* the messages of both sides */

static void need(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "bugs: %s failed\n", what);
        exit(1);
    }
}

/* --- setting up -------------------------------------------------------------------------------- */

/* The index of the first GID of RoCE v2. */
static uint8_t find_gid(void)
{
    struct ibv_gid_entry entry;

    for (uint8_t i = 0; ibv_query_gid_ex(context, 1, i, &entry, 0) == 0; i++) {
        if (entry.gid_type == IBV_GID_TYPE_ROCE_V2)
            return i;
    }
    need(0, "finding a GID");
    return 0;
}

static void connect_to(struct ibv_qp *one, uint32_t peer, uint8_t gid_index, const union ibv_gid *gid)
{
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ};
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .sgid_index = gid_index, .hop_limit = 64}}};
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 6, .max_rd_atomic = 1};

    need(ibv_modify_qp(one, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
    need(ibv_modify_qp(one, &rtr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "RTR");
    need(ibv_modify_qp(one, &rts,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "RTS");
}

static void set_up(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    uint8_t gid_index;
    union ibv_gid gid;

    need(list && list[0], "finding a device");
    context = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    need(context != NULL, "opening the device");
    gid_index = find_gid();
    need(ibv_query_gid(context, 1, gid_index, &gid) == 0, "reading the GID");
    pd = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    cq = ibv_create_cq(context, 64, NULL, channel, 0);
    buf = calloc(8, MESSAGE);
    mr = ibv_reg_mr(pd, buf, 8 * MESSAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    need(pd && channel && cq && mr, "making objects");
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_init_attr attr = {
            .send_cq = cq, .recv_cq = cq, .cap = {16, 16, 1, 1, 0}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};

        need((qp[i] = ibv_create_qp(pd, &attr)) != NULL, "a queue pair");
    }
    for (int i = 0; i < 2; i++)
        connect_to(qp[i], qp[!i]->qp_num, gid_index, &gid);
}

/* --- messages ---------------------------------------------------------------------------------- */

static void post(enum ibv_wr_opcode opcode, char *at)
{
    struct ibv_sge sge = {(uintptr_t)at, MESSAGE, mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = opcode, .wr.rdma = {(uintptr_t)buf + 7 * MESSAGE, mr->rkey}};
    struct ibv_send_wr *bad;

    need(ibv_post_send(qp[0], &wr, &bad) == 0, "a post");
}

static void receive_at(char *at)
{
    struct ibv_sge sge = {(uintptr_t)at, MESSAGE, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    need(ibv_post_recv(qp[1], &wr, &bad) == 0, "a receive request");
}

static void take(int completions)
{
    struct ibv_wc wc;

    while (completions) {
        int n = ibv_poll_cq(cq, 1, &wc);

        need(n >= 0 && (n == 0 || wc.status == IBV_WC_SUCCESS), "a request");
        completions -= n;
    }
}

static void wait_for_event(void)
{
    struct ibv_cq *of;
    void *of_context;

    need(ibv_get_cq_event(channel, &of, &of_context) == 0, "waiting");
    ibv_ack_cq_events(of, 1);
}

int main(void)
{
    set_up();

    /* 1. The messages arrive at places that have bytes in common (overlap). */
    receive_at(buf + 4 * MESSAGE);
    receive_at(buf + 5 * MESSAGE - 8);
    receive_at(buf + 6 * MESSAGE);

    /* 2. The next message is written over the last one, before that was sent (send-buffer). */
    strcpy(buf, "the first message");
    post(IBV_WR_SEND, buf);
    strcpy(buf, "the second message");
    post(IBV_WR_SEND, buf);
    take(4);

    /* 3. What a READ brings is sent on, but the READ may not have ended (read-fence). */
    post(IBV_WR_RDMA_READ, buf + MESSAGE);
    post(IBV_WR_SEND, buf + MESSAGE);

    /* 4. The completions may have come before the CQ was armed, and then there is no event (lost-event). So this program
     * sends one more message to itself, and mostly is lucky. */
    receive_at(buf + 3 * MESSAGE);
    ibv_req_notify_cq(cq, 0);
    post(IBV_WR_SEND, buf);
    wait_for_event();
    take(5);

    /* 5. The protection domain is destroyed before its objects: the call fails, and nobody looks (busy). */
    ibv_dealloc_pd(pd);
    ibv_destroy_qp(qp[0]);
    ibv_destroy_qp(qp[1]);
    ibv_dereg_mr(mr);
    ibv_destroy_cq(cq);
    ibv_destroy_comp_channel(channel);
    ibv_close_device(context);
    free(buf);
    printf("all messages arrived\n");
    return 0;
}
