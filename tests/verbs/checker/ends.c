// SPDX-License-Identifier: BSD-2-Clause
/* Mistakes that only both ends of a connection together show, and the right way beside each. Two processes, or one with both
 * ends. tests/e2e/cli/check.sh runs them.
 * Usage: ends MISTAKE wrong|right             both ends in one process
 *        ends MISTAKE wrong|right 0|1 FOLDER  one end; they meet in the folder */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/verbs/vt.h"

/* The attributes that one end tells the other. */
struct hello {
    union ibv_gid gid;
    uint32_t qpn, rkey;
    uint64_t addr;
};

struct end {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct hello own, peer;
    char *buf;
};

static struct ibv_context *context;
static const char *mistake;
static bool wrong;

static bool is(const char *name)
{
    return wrong && strcmp(mistake, name) == 0;
}

/* --- an end ------------------------------------------------------------------------------------ */

static void make(struct end *e, int number)
{
    struct ibv_qp_init_attr init = {.cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    unsigned rights = IBV_ACCESS_REMOTE_WRITE | (number == 1 && is("qp-access") ? 0 : IBV_ACCESS_REMOTE_READ);
    int region =
        number == 1 && is("region-access") ? IBV_ACCESS_LOCAL_WRITE : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = vt_port(), .qp_access_flags = rights};

    e->pd = ibv_alloc_pd(context);
    e->cq = init.send_cq = init.recv_cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    e->qp = ibv_create_qp(e->pd, &init);
    e->buf = calloc(1, 8192);
    e->mr = ibv_reg_mr(e->pd, e->buf, 8192, region);
    need(e->qp && e->mr);
    need(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    e->own =
        (struct hello){.gid = vt_gid(context), .qpn = e->qp->qp_num, .rkey = e->mr->rkey, .addr = (uintptr_t)e->buf};
}

static void connect_end(struct end *e, int number)
{
    struct ibv_qp_attr a;
    int mask = vt_rtr_attr(e->qp, e->peer.qpn, &e->peer.gid, &a);

    if (number == 1 && is("mtu"))
        a.path_mtu = IBV_MTU_512;
    if (number == 1 && is("psn"))
        a.rq_psn = 77;
    if (number == 1 && is("rd-atomic"))
        a.max_dest_rd_atomic = 1;
    need(ibv_modify_qp(e->qp, &a, mask) == 0 && vt_to_rts(e->qp) == 0);
}

static void end(struct end *e)
{
    need(ibv_destroy_qp(e->qp) == 0 && (!e->mr || ibv_dereg_mr(e->mr) == 0) && ibv_destroy_cq(e->cq) == 0);
    need(ibv_dealloc_pd(e->pd) == 0);
    free(e->buf);
}

/* --- messages ---------------------------------------------------------------------------------- */

static int post(struct end *e, enum ibv_wr_opcode opcode)
{
    struct ibv_sge s = {(uintptr_t)e->buf, 64, e->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 4,
                             .sg_list = &s,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {e->peer.addr + (is("bounds") ? 8192 - 32 : 4096), e->peer.rkey}},
                       *bad;

    return ibv_post_send(e->qp, &wr, &bad);
}

static void post_receive(struct end *e)
{
    struct ibv_sge s = {(uintptr_t)e->buf, 64, e->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 7, .sg_list = &s, .num_sge = 1}, *bad;

    need(ibv_post_recv(e->qp, &wr, &bad) == 0);
}

static enum ibv_wc_status take(struct end *e)
{
    struct ibv_wc wc = {.status = 255};

    need(vt_poll(e->cq, 1, &wc) == 1);
    return wc.status;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* --- two processes ----------------------------------------------------------------------------- */

static const char *folder;

/* Writes what this end says in a phase, and reads what the other says. */
static void meet(int number, const char *phase, const void *own, void *peer, size_t size)
{
    char path[4][300];

    for (int i = 0; i < 2; i++) {
        snprintf(path[i], sizeof(path[i]), "%s/%s.%d", folder, phase, i);
        snprintf(path[2 + i], sizeof(path[i]), "%s/%s.%d.new", folder, phase, i);
    }
    FILE *f = fopen(path[2 + number], "w");
    need(f && fwrite(own, size, 1, f) == 1 && fclose(f) == 0 && rename(path[2 + number], path[number]) == 0);
    while (!(f = fopen(path[!number], "r")))
        pause_ms(1);
    need(fread(peer, size, 1, f) == 1 && fclose(f) == 0);
}

static void run_end(int number)
{
    struct end e;
    char byte = 0;

    make(&e, number);
    meet(number, "hello", &e.own, &e.peer, sizeof(e.own));
    connect_end(&e, number);
    if (number == 1 && !is("late"))
        post_receive(&e);
    if (number == 1 && is("dead")) {
        ibv_dereg_mr(e.mr);
        e.mr = NULL;
    }
    meet(number, "connected", &byte, &byte, 1);
    if (number == 0)
        need(post(&e, IBV_WR_SEND) == 0);
    meet(number, "sent", &byte, &byte, 1);
    if (number == 1 && is("late"))
        post_receive(&e);
    if (!is("dead") && !is("psn"))
        need(take(&e) == IBV_WC_SUCCESS);
    meet(number, "received", &byte, &byte, 1);
    end(&e);
}

/* --- one process ------------------------------------------------------------------------------- */

static void run_both(void)
{
    bool refused = is("qp-access") || is("region-access") || is("bounds") || is("dead");
    struct end e[2];

    for (int i = 0; i < 2; i++)
        make(&e[i], i);
    for (int i = 0; i < 2; i++)
        e[i].peer = e[!i].own;
    if (is("destination"))
        e[1].peer.qpn = e[1].own.qpn;
    for (int i = 0; i < 2; i++)
        connect_end(&e[i], i);
    if (is("dead")) {
        need(ibv_dereg_mr(e[1].mr) == 0);
        e[1].mr = NULL;
    } else if (!is("late")) {
        post_receive(&e[1]);
    }
    if (refused) {
        need(post(&e[0], IBV_WR_RDMA_READ) == 0);
        enum ibv_wc_status status = take(&e[0]);
        need(status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR);
    } else if (!is("psn") && !is("destination")) {
        need(post(&e[0], IBV_WR_RDMA_READ) == 0 && take(&e[0]) == IBV_WC_SUCCESS);
        need(post(&e[0], IBV_WR_SEND) == 0);
        pause_ms(2);
        if (is("late"))
            post_receive(&e[1]);
        need(take(&e[0]) == IBV_WC_SUCCESS && take(&e[1]) == IBV_WC_SUCCESS);
    }
    for (int i = 0; i < 2; i++)
        end(&e[i]);
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 5)
        return 2;
    mistake = argv[1];
    wrong = strcmp(argv[2], "wrong") == 0;
    context = vt_open();
    if (argc == 5) {
        folder = argv[4];
        run_end(atoi(argv[3]));
    } else {
        run_both();
    }
    need(ibv_close_device(context) == 0);
    return vt_failed;
}
