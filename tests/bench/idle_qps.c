// SPDX-License-Identifier: BSD-2-Clause
/* Makes QPs that are connected and idle, and measures what that takes: the rates of creating, connecting and destroying,
 * and the latency of a message between two other QPs, before and with the idle ones.
 *
 *     idle_qps NUMBER DEPTH
 *
 * It prints "begin BEFORE" before it makes them: half of the median round trip in us. It waits for a line. Then it prints
 * "ready CREATED CONNECTED IDLE": QPs created and connected per second, and the same time with them. It waits until its
 * standard input ends, destroys the QPs, and prints the QPs destroyed per second. */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 4000u

static struct ibv_pd *pd;
static union ibv_gid gid;

static void need(int holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(1);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct ibv_qp *make_qp(struct ibv_cq *cq, unsigned depth)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    need(qp != NULL, "queue pair");
    return qp;
}

static void connect_qp(struct ibv_qp *qp, uint32_t peer)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = peer,
                              .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid}}};
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

static void take(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int n;
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    need(n == 1 && wc.status == IBV_WC_SUCCESS, "completion");
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Half of the median round trip between the two QPs, in us. */
static double latency(struct ibv_qp *const qp[2])
{
    static double took[ROUNDS];
    struct ibv_recv_wr recv = {.wr_id = 0}, *bad_recv;
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    for (unsigned i = 0; i < ROUNDS; i++) {
        double from = seconds();
        for (unsigned k = 0; k < 2; k++) {
            need(ibv_post_recv(qp[1 - k], &recv, &bad_recv) == 0 && ibv_post_send(qp[k], &send, &bad) == 0, "post");
            take(qp[1 - k]->recv_cq);
            take(qp[k]->send_cq);
        }
        took[i] = seconds() - from;
    }
    qsort(took, ROUNDS, sizeof(took[0]), by_value);
    return took[ROUNDS / 2] / 2 * 1e6;
}

int main(int argc, char **argv)
{
    unsigned number = argc > 1 ? (unsigned)atoi(argv[1]) : 1000, depth = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_qp **idle = calloc(number, sizeof(struct ibv_qp *)), *busy[2];
    char c;

    need(ctx != NULL && idle && ibv_query_gid(ctx, 1, 0, &gid) == 0, "device");
    pd = ibv_alloc_pd(ctx);
    for (unsigned i = 0; i < 2; i++)
        busy[i] = make_qp(ibv_create_cq(ctx, 64, NULL, NULL, 0), 16);
    for (unsigned i = 0; i < 2; i++)
        connect_qp(busy[i], busy[1 - i]->qp_num);
    printf("begin %.2f\n", latency(busy));
    fflush(stdout);
    need(read(0, &c, 1) == 1, "a line");
    struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
    double start = seconds();
    for (unsigned i = 0; i < number; i++)
        idle[i] = make_qp(cq, depth);
    double created = seconds();
    for (unsigned i = 0; i < number; i++)
        connect_qp(idle[i], idle[(i ^ 1) < number ? i ^ 1 : i]->qp_num);
    double connected = seconds();
    printf("ready %.0f %.0f %.2f\n", number / (created - start), number / (connected - created), latency(busy));
    fflush(stdout);
    while (read(0, &c, 1) > 0)
        ;
    start = seconds();
    for (unsigned i = 0; i < number; i++)
        ibv_destroy_qp(idle[i]);
    printf("%.0f\n", number / (seconds() - start));
    return 0;
}
