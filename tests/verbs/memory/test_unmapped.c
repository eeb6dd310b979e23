// SPDX-License-Identifier: BSD-2-Clause
/* Memory that its program unmaps while it is registered. A NIC has the pages pinned, so peers see no error. */
#include <sys/mman.h>

#include "tests/verbs/ends.h"

#define PAGE 4096u

static struct vt_end a, b;
static char *area; /* of b: three pages, of which the second one is not there any more */

static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

/* To be called when everything else is made: a new object must not get the hole. */
static struct ibv_mr *register_hole(int flags)
{
    area = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(area != MAP_FAILED);
    memset(area, 'o', 3 * PAGE);
    struct ibv_mr *mr = ibv_reg_mr(b.pd, area, 3 * PAGE, vt_access(b.ctx) | flags);
    need(mr && munmap(area + PAGE, PAGE) == 0);
    return mr;
}

static void drop_hole(struct ibv_mr *mr)
{
    need(ibv_dereg_mr(mr) == 0 && munmap(area, PAGE) == 0 && munmap(area + 2 * PAGE, PAGE) == 0);
}

/* The status of a request of a for [area + off, area + off + len). */
static int ask(enum ibv_wr_opcode opcode, const struct ibv_mr *mr, uint32_t off, uint32_t len)
{
    struct ibv_send_wr wr = {.opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)area + off;
        wr.wr.atomic.rkey = mr->rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = (uintptr_t)area + off;
        wr.wr.rdma.rkey = mr->rkey;
    }
    need(vt_end_post(&a, &wr, 0, len) == 0);
    return vt_next(a.scq).status;
}

static bool holds(const char *at, char c, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        if (at[i] != c)
            return false;
    return true;
}

static void peers_requests(void)
{
    connect_again();
    struct ibv_mr *mr = register_hole(0);
    memset(a.buf, 'n', 3 * PAGE);
    ok(ask(IBV_WR_RDMA_WRITE, mr, PAGE + 100, 64) == IBV_WC_SUCCESS, "a WRITE to memory that was unmapped");
    ok(ask(IBV_WR_RDMA_WRITE, mr, 8, 3 * PAGE - 16) == IBV_WC_SUCCESS && holds(area + 8, 'n', PAGE - 8) &&
           holds(area + 2 * PAGE, 'n', PAGE - 8) && holds(area, 'o', 8) && holds(area + 3 * PAGE - 8, 'o', 8),
       "a WRITE over it: what there is has the new data");
    memset(a.buf, 'x', 3 * PAGE);
    ok(ask(IBV_WR_RDMA_READ, mr, 0, 3 * PAGE) == IBV_WC_SUCCESS && holds(a.buf + 8, 'n', PAGE - 8) &&
           holds(a.buf + 2 * PAGE, 'n', PAGE - 8),
       "a READ of all: what there is");
    ok(ask(IBV_WR_RDMA_READ, mr, PAGE, 32) == IBV_WC_SUCCESS, "a short READ");
    if (!vt_lacks(a.ctx, VT_ATOMICS))
        ok(ask(IBV_WR_ATOMIC_FETCH_AND_ADD, mr, PAGE + 8, 8) == IBV_WC_SUCCESS, "an atomic");

    struct ibv_sge sge = {.addr = (uintptr_t)area + PAGE, .length = PAGE, .lkey = mr->lkey};
    struct ibv_recv_wr recv = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    need(ibv_post_recv(b.qp, &recv, &bad) == 0 && vt_end_post(&a, &send, 0, 1000) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS, "a SEND to a receive request there");
    struct ibv_wc wc = vt_next(b.rcq);
    ok(wc.status == IBV_WC_SUCCESS && wc.byte_len == 1000 && wc.wr_id == 9, "which completes, too");

    ok(ask(IBV_WR_RDMA_WRITE, mr, 0, 100) == IBV_WC_SUCCESS && a.qp->state == b.qp->state,
       "the connection goes on after all this");
    drop_hole(mr);
}

/* Pumice's own choices, where a NIC has bytes that the daemon does not know, or no pinned page. */
static void own_choices(void)
{
    connect_again();
    struct ibv_mr *mr = register_hole(0);
    memset(a.buf, 'x', PAGE);
    ok(ask(IBV_WR_RDMA_READ, mr, PAGE, 1000) == IBV_WC_SUCCESS && holds(a.buf, 0, 1000), "a READ returns zeros");

    struct ibv_sge sge = {.addr = (uintptr_t)area + PAGE, .length = 100, .lkey = mr->lkey};
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)a.buf;
    wr.wr.rdma.rkey = a.mr->rkey;
    need(ibv_post_send(b.qp, &wr, &bad) == 0);
    ok(vt_next(b.scq).status == IBV_WC_SUCCESS, "the result of an own READ is dropped");
    wr.opcode = IBV_WR_RDMA_WRITE;
    need(ibv_post_send(b.qp, &wr, &bad) == 0);
    ok(vt_next(b.scq).status == IBV_WC_LOC_PROT_ERR, "data to send that are not there: an error");
    drop_hole(mr);

    connect_again();
    mr = register_hole(IBV_ACCESS_ON_DEMAND);
    ok(ask(IBV_WR_RDMA_WRITE, mr, PAGE, 64) == IBV_WC_REM_OP_ERR, "a region for on-demand paging: an error");
    drop_hole(mr);
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    peers_requests();
    if (vt_own("memory of which the daemon knows nothing"))
        own_choices();
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    return vt_both(test);
}
