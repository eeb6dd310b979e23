// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs that stand still, for tests of `pumice why`, `status` and the log. Usage: stuck SCENE; prints the numbers of two
 * connected queue pairs, the first of which is the one that is stuck, and holds still until its input ends.
 *
 * In most scenes packets between the hosts must be lost (pumice fault); the caller sees to that before. */
#include "ends.h"

static struct vt_end a, b;

static void write_n(unsigned n, uint32_t rkey)
{
    for (unsigned i = 0; i < n; i++) {
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
        wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
        wr.wr.rdma.rkey = rkey;
        need(vt_end_post(&a, &wr, 0, 64) == 0);
    }
}

static void send_one(void)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    need(vt_end_post(&a, &wr, 0, 64) == 0);
}

static void read_n(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
        wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
        wr.wr.rdma.rkey = b.mr->rkey;
        need(vt_end_post(&a, &wr, 0, 64) == 0);
    }
}

static void fence(void)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE};
    wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
    wr.wr.rdma.rkey = b.mr->rkey;
    read_n(1);
    need(vt_end_post(&a, &wr, 0, 64) == 0);
}

static void drain(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
    write_n(1, b.mr->rkey);
    usleep(50000);
    need(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) == 0);
    write_n(1, b.mr->rkey);
}

/* timeout 20 is 4.3 s: nothing fails while the caller looks. */
static void connect_both(uint8_t timeout)
{
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 7, .rnr_retry = 6, .sq_psn = 1, .max_rd_atomic = 4};
    int mask =
        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    struct ibv_qp_attr slow = {.min_rnr_timer = 0}; /* 655 ms */

    need(vt_to_init(a.qp) == 0 && vt_to_init(b.qp) == 0);
    need(vt_to_rtr_at(a.qp, b.qp->qp_num, &b.gid) == 0 && vt_to_rtr_at(b.qp, a.qp->qp_num, &a.gid) == 0);
    need(ibv_modify_qp(a.qp, &rts, mask) == 0 && ibv_modify_qp(b.qp, &rts, mask) == 0);
    need(ibv_modify_qp(b.qp, &slow, IBV_QP_MIN_RNR_TIMER) == 0);
}

int main(int argc, char **argv)
{
    const char *scene = argc > 1 ? argv[1] : "idle";
    struct ibv_context *here = vt_open(), *there = vt_open_peer();
    char c;

    vt_end_open(&a, here);
    vt_end_open(&b, there ? there : here);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    if (strcmp(scene, "new") != 0)
        connect_both(strcmp(scene, "retry") == 0 ? 14 : 20);
    if (strcmp(scene, "rnr") == 0)
        send_one();
    else if (strcmp(scene, "ack") == 0)
        write_n(3, b.mr->rkey);
    else if (strcmp(scene, "gone") == 0 && ibv_destroy_qp(b.qp) == 0)
        write_n(1, b.mr->rkey);
    else if (strcmp(scene, "window") == 0)
        write_n(8, b.mr->rkey);
    else if (strcmp(scene, "reads") == 0)
        read_n(12);
    else if (strcmp(scene, "fence") == 0)
        fence();
    else if (strcmp(scene, "drain") == 0)
        drain();
    else if (strcmp(scene, "refused") == 0)
        write_n(1, b.mr->rkey ^ 0x55);
    else if (strcmp(scene, "unpolled") == 0)
        write_n(5, b.mr->rkey);
    if (strcmp(scene, "retry") == 0) {
        write_n(1, b.mr->rkey);
        usleep(200000);
    }
    printf("0x%06x 0x%06x 0x%x\n", a.qp->qp_num, strcmp(scene, "gone") == 0 ? 0 : b.qp->qp_num, b.mr->rkey ^ 0x55);
    fflush(stdout);
    while (read(0, &c, 1) > 0)
        ;
    return 0;
}
