// SPDX-License-Identifier: BSD-2-Clause
/* Posts WRITEs of 8 bytes from the first device to the last one, and polls once after each BATCH of them, whether there
 * is a completion or not. Prints how many it posted in a second, and the median and the 99th percentile of the
 * microseconds that a batch took with its poll.
 *
 *     post_poll BATCH SECONDS */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DEPTH = 128, SIGNAL_EACH = 16, TIMES_MAX = 1 << 20 };

static void need(int holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(1);
}

/* One end of the connection. */
struct end {
    struct ibv_context *ctx;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    union ibv_gid gid;
    uint64_t memory[DEPTH];
};

static void open_end(struct end *e, struct ibv_device *device)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 8}};

    e->ctx = ibv_open_device(device);
    need(e->ctx != NULL && ibv_query_gid(e->ctx, 1, 0, &e->gid) == 0, "device");
    struct ibv_pd *pd = ibv_alloc_pd(e->ctx);
    e->cq = init.send_cq = init.recv_cq = ibv_create_cq(e->ctx, DEPTH, NULL, NULL, 0);
    e->mr = ibv_reg_mr(pd, e->memory, sizeof(e->memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    e->qp = ibv_create_qp(pd, &init);
    need(e->qp != NULL && e->mr != NULL, "queue pair");
}

static void connect_end(struct end *e, const struct end *peer)
{
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = peer->qp->qp_num,
                              .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = peer->gid}}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};

    need(ibv_modify_qp(e->qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0 &&
             ibv_modify_qp(e->qp, &rtr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0 &&
             ibv_modify_qp(e->qp, &rts,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                               IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "connect");
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Posts one WRITE. A completion frees the places of the SIGNAL_EACH requests before it. */
static void post(struct end *e, const struct end *peer, uint64_t number)
{
    struct ibv_sge sge = {.addr = (uintptr_t)e->memory, .length = 8, .lkey = e->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_INLINE | (number % SIGNAL_EACH == 0 ? IBV_SEND_SIGNALED : 0),
                             .wr.rdma = {.remote_addr = (uintptr_t)peer->memory, .rkey = peer->mr->rkey}};
    struct ibv_send_wr *bad;

    need(ibv_post_send(e->qp, &wr, &bad) == 0, "post");
}

/* The durations of the last TIMES_MAX batches, in microseconds. A float is exact enough. */
static float times[TIMES_MAX];

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    unsigned batch = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    static struct end a, b;
    struct ibv_wc wc[DEPTH];
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);

    need(list && n > 0 && batch > 0 && batch <= DEPTH / 2, "devices");
    open_end(&a, list[0]);
    open_end(&b, list[n - 1]);
    connect_end(&a, &b);
    connect_end(&b, &a);
    uint64_t posted = 0, done = 0;
    uint64_t batches = 0;
    double begin = now(), before = begin, after = begin;
    while (after - begin < seconds) {
        for (unsigned i = 0; i < batch && posted - done < DEPTH; i++)
            post(&a, &b, ++posted);
        int found = ibv_poll_cq(a.cq, DEPTH, wc);
        need(found >= 0 && (found == 0 || wc[0].status == IBV_WC_SUCCESS), "poll");
        done += (uint64_t)found * SIGNAL_EACH;
        after = now();
        times[batches++ % TIMES_MAX] = (float)((after - before) * 1e6);
        before = after;
    }
    size_t kept = batches < TIMES_MAX ? (size_t)batches : TIMES_MAX;
    qsort(times, kept, sizeof(times[0]), compare);
    printf("%.0f %.3f %.3f\n", (double)posted / (after - begin), (double)times[kept / 2],
           (double)times[kept * 99 / 100]);
    return 0;
}
