// SPDX-License-Identifier: BSD-2-Clause
/* Makes QPs that are connected and idle, prints "ready", and waits until its standard input ends.
 *
 *     idle_qps NUMBER DEPTH */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void need(int holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(1);
}

static void connect_qp(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = peer,
                              .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid}}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};

    need(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0 &&
             ibv_modify_qp(qp, &rtr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0 &&
             ibv_modify_qp(qp, &rts,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                               IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "connect");
}

int main(int argc, char **argv)
{
    unsigned number = argc > 1 ? (unsigned)atoi(argv[1]) : 1000, depth = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    union ibv_gid gid;
    char c;

    need(ctx != NULL && ibv_query_gid(ctx, 1, 0, &gid) == 0, "device");
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
    struct ibv_qp *last = NULL;
    for (unsigned i = 0; i < number; i++) {
        struct ibv_qp_init_attr init = {
            .qp_type = IBV_QPT_RC,
            .send_cq = cq,
            .recv_cq = cq,
            .cap = {.max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1}};
        struct ibv_qp *qp = ibv_create_qp(pd, &init);
        need(qp != NULL, "queue pair");
        if (last) {
            connect_qp(last, &gid, qp->qp_num);
            connect_qp(qp, &gid, last->qp_num);
        }
        last = last ? NULL : qp;
    }
    puts("ready");
    fflush(stdout);
    while (read(0, &c, 1) > 0)
        ;
    return 0;
}
