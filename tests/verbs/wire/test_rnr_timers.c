// SPDX-License-Identifier: BSD-2-Clause
/* The RNR timer codes. A requester that meets a responder without receive request waits at least as long as the code says, for each of the
 * 32 codes. Then it tries once more, as rnr_retry says. */
#include "tests/verbs/ends.h"

#define CODES 32

static struct vt_end a, b;

/* Milliseconds (IBA table 46). */
static const double wait_ms[CODES] = {655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,   0.16,   0.24,  0.32,
                                      0.48,   0.64,  0.96,  1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24, 15.36,
                                      20.48,  30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    struct ibv_qp *from[CODES], *to[CODES];
    struct ibv_wc wc;
    double begin;
    bool right = true, longest = true;
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    for (unsigned i = 0; i < CODES; i++) {
        struct ibv_qp_attr code = {.min_rnr_timer = (uint8_t)i};
        struct ibv_qp_attr once = {
            .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 1, .sq_psn = 1, .max_rd_atomic = 1};
        need((from[i] = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (to[i] = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
        need(vt_to_init(from[i]) == 0 && vt_to_init(to[i]) == 0);
        need(vt_to_rtr_at(from[i], to[i]->qp_num, &b.gid) == 0 && vt_to_rtr_at(to[i], from[i]->qp_num, &a.gid) == 0);
        need(vt_to_rts(to[i]) == 0 && ibv_modify_qp(to[i], &code, IBV_QP_MIN_RNR_TIMER) == 0);
        need(ibv_modify_qp(from[i], &once,
                           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_MAX_QP_RD_ATOMIC) == 0);
    }
    begin = vt_now();
    for (unsigned i = 0; i < CODES; i++) {
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
        a.qp = from[i];
        need(vt_end_post(&a, &wr, 0, 8) == 0);
    }
    a.qp = NULL;
    for (unsigned i = 0; i < CODES; i++) {
        wc = vt_next(a.scq);
        double ms = (vt_now() - begin) * 1000;
        right &= wc.status == IBV_WC_RNR_RETRY_EXC_ERR && ms >= wait_ms[wc.wr_id % CODES];
        if (!right)
            printf("# code %lu: status %d after %.2f ms\n", (unsigned long)wc.wr_id, wc.status, ms);
        longest &= i + 1 < CODES || wc.wr_id == 0;
    }
    ok(right, "each wait is as long as its code says, and the error comes after it");
    ok(longest, "code 0 is the longest");
    for (unsigned i = 0; i < CODES; i++)
        need(ibv_destroy_qp(from[i]) == 0 && ibv_destroy_qp(to[i]) == 0);
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    return vt_both(test);
}
