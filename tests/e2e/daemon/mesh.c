// SPDX-License-Identifier: BSD-2-Clause
/* Traffic between all pairs of devices of several daemons, in one process: an RC connection for each pair, and a SEND with
 * data of its own in each direction at the same time. Arguments: the control sockets. */
#include "tests/verbs/ends.h"

#define ENDS_MAX 32

static struct vt_end end[ENDS_MAX];
static struct ibv_qp *qp[ENDS_MAX][ENDS_MAX]; /* qp[i][k]: of end i, connected to end k */
static int ends;

/* Opens all devices of a daemon. */
static void open_all(const char *socket)
{
    int num = 0;
    setenv("PUMICE_SOCKET", socket, 1);
    struct ibv_device **list = ibv_get_device_list(&num);
    need(list && num > 0);
    for (int i = 0; i < num; i++) {
        struct ibv_context *ctx = ibv_open_device(list[i]);
        need(ctx && ends < ENDS_MAX);
        vt_end_open(&end[ends++], ctx);
    }
    ibv_free_device_list(list);
}

/* A byte for each pair and direction. */
static char mark(int from, int to)
{
    return (char)(from * ENDS_MAX / 2 + to + 1);
}

static void post(int from, int to)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    struct ibv_sge s = vt_at(&end[from], 32768 + (uint32_t)to * 512, 512);
    memset(end[from].buf + 32768 + to * 512, mark(from, to), 512);
    wr.sg_list = &s;
    wr.num_sge = 1;
    need(ibv_post_send(qp[from][to], &wr, &bad) == 0);
}

static void connect_all(void)
{
    for (int i = 0; i < ends; i++)
        for (int k = 0; k < ends; k++) {
            struct ibv_sge s = vt_at(&end[i], (uint32_t)k * 512, 512);
            struct ibv_recv_wr wr = {.wr_id = (uint64_t)k, .sg_list = &s, .num_sge = 1}, *bad;
            if (i == k)
                continue;
            need((qp[i][k] = vt_end_qp(&end[i], IBV_QPT_RC, NULL, 0)) && vt_to_init(qp[i][k]) == 0);
            need(ibv_post_recv(qp[i][k], &wr, &bad) == 0);
        }
    for (int i = 0; i < ends; i++)
        for (int k = 0; k < i; k++) {
            need(vt_to_rtr_at(qp[i][k], qp[k][i]->qp_num, &end[k].gid) == 0 && vt_to_rts(qp[i][k]) == 0);
            need(vt_to_rtr_at(qp[k][i], qp[i][k]->qp_num, &end[i].gid) == 0 && vt_to_rts(qp[k][i]) == 0);
        }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        open_all(argv[i]);
    connect_all();
    for (int i = 0; i < ends; i++)
        for (int k = 0; k < ends; k++)
            if (i != k)
                post(i, k);
    int sent = 0, received = 0, right = 0;
    for (int i = 0; i < ends; i++) {
        for (int n = 1; n < ends; n++) {
            struct ibv_wc s = vt_next(end[i].scq), r = vt_next(end[i].rcq);
            sent += s.status == IBV_WC_SUCCESS;
            received += r.status == IBV_WC_SUCCESS && r.byte_len == 512;
        }
        for (int k = 0; k < ends; k++)
            for (int b = 0; b < 512 && i != k; b++)
                right += end[i].buf[k * 512 + b] == mark(k, i);
    }
    printf("%d devices: %d sent, %d received, %d bytes\n", ends, sent, received, right);
    return sent != ends * (ends - 1) || received != sent || right != sent * 512;
}
