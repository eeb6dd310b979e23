// SPDX-License-Identifier: BSD-2-Clause
/* Receive requests of an XRC domain, whose completions name the target queue pair, and not the shared receive queue. The right
 * program uses a buffer again when its completion was polled. The wrong one posts the next request before.
 * tests/e2e/cli/check.sh runs it. Usage: xrc wrong|right */
#include <fcntl.h>

#include "tests/verbs/ends.h"

static struct vt_end a, b; /* a sends; b has the target and the SRQ */

static void receive(struct ibv_srq *srq, uint64_t id)
{
    struct ibv_sge s = vt_at(&b, 0, 64);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;
    need(ibv_post_srq_recv(srq, &wr, &bad) == 0);
}

static void message(uint32_t srqn)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .qp_type.xrc.remote_srqn = srqn};
    need(vt_end_post(&a, &wr, 0, 64) == 0 && vt_next(a.scq).status == IBV_WC_SUCCESS);
}

static void exchange(bool wrong, struct ibv_srq *srq, uint32_t srqn)
{
    receive(srq, 1);
    message(srqn);
    if (wrong)
        receive(srq, 2);
    need(vt_next(b.rcq).wr_id == 1);
    if (!wrong)
        receive(srq, 2);
    message(srqn);
    need(vt_next(b.rcq).wr_id == 2);
}

int main(int argc, char **argv)
{
    struct ibv_xrcd_init_attr x = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    uint32_t srqn;
    if (argc != 2)
        return 2;
    struct ibv_context *ctx = vt_open();
    vt_needs(ctx, VT_XRC);
    vt_end_open(&a, ctx);
    vt_end_open(&b, ctx);
    struct ibv_xrcd *domain = ibv_open_xrcd(ctx, &x);
    need(domain);
    struct ibv_srq *srq = vt_xrc_srq(b.pd, domain, b.rcq, &srqn);
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain};
    struct ibv_qp *target = ibv_create_qp_ex(ctx, &attr);
    need(target && (a.qp = vt_end_qp(&a, IBV_QPT_XRC_SEND, NULL, 0)));
    vt_link(a.qp, &a.gid, target, &b.gid);
    exchange(strcmp(argv[1], "wrong") == 0, srq, srqn);
    need(ibv_destroy_qp(target) == 0 && ibv_destroy_srq(srq) == 0 && ibv_close_xrcd(domain) == 0);
    need(vt_end_close(&a) && vt_end_close(&b) && ibv_close_device(ctx) == 0);
    return vt_failed;
}
