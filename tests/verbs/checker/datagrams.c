// SPDX-License-Identifier: BSD-2-Clause
/* A datagram queue pair whose send queue has failed. The right program takes it from SQE back to RTS before it posts again.
 * tests/e2e/cli/check.sh runs it. Usage: datagrams wrong|right */
#include "tests/verbs/ends.h"

static struct vt_end a;

/* lkey: a wrong one makes the request fail. */
static enum ibv_wc_status send_to(struct ibv_ah *ah, uint32_t lkey)
{
    struct ibv_sge s = {(uintptr_t)a.buf, 64, lkey};
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = ah, .remote_qpn = a.qp->qp_num, .remote_qkey = VT_QKEY}},
                       *bad;
    need(ibv_post_send(a.qp, &wr, &bad) == 0);
    return vt_next(a.scq).status;
}

int main(int argc, char **argv)
{
    struct ibv_context *ctx = vt_open();
    if (argc != 2)
        return 2;
    vt_end_open(&a, ctx);
    struct ibv_ah_attr attr = {.is_global = 1,
                               .port_num = vt_port(),
                               .grh = {.dgid = a.gid, .sgid_index = vt_gid_index(ctx), .hop_limit = 64}};
    struct ibv_ah *ah = ibv_create_ah(a.pd, &attr);
    need(ah && (a.qp = vt_end_qp(&a, IBV_QPT_UD, NULL, 0)));
    need(vt_to_init(a.qp) == 0 && vt_to_rtr(a.qp, 0) == 0 && vt_to_rts(a.qp) == 0);
    need(send_to(ah, a.mr->lkey ^ 1) == IBV_WC_LOC_PROT_ERR);
    struct ibv_qp_attr to_rts = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};
    bool wrong = strcmp(argv[1], "wrong") == 0;
    if (!wrong)
        need(ibv_modify_qp(a.qp, &to_rts, IBV_QP_STATE | IBV_QP_CUR_STATE) == 0);
    need((send_to(ah, a.mr->lkey) == IBV_WC_SUCCESS) == !wrong);
    need(ibv_destroy_ah(ah) == 0 && vt_end_close(&a) && ibv_close_device(ctx) == 0);
    return vt_failed;
}
