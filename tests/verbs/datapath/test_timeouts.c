// SPDX-License-Identifier: BSD-2-Clause
/* Many QPs whose peer does not answer (IBA 9.9.2.1.1), each with its own timeout and number of retries. A QP fails when it has used all its
 * retries, and not before. An answer stops its timer. A QP with a timeout of 0 waits for ever. */
#include "tests/verbs/tag_matching/tags.h"

#define FIRST_CODE 12 /* 4.096 us * 2^12: 16.8 ms */
#define CODES 4
#define RETRIES 4
#define TWINS 2
#define QPS (CODES * RETRIES * TWINS)

static struct vt_end a, b;

struct timed {
    struct ibv_qp *qp, *peer;
    uint8_t code, retries;
    double least; /* seconds until it may fail */
};

static double seconds_of(uint8_t code)
{
    return 4.096e-6 * (double)(1u << code);
}

static struct timed make(uint8_t code, uint8_t retries)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = code, .retry_cnt = retries, .rnr_retry = 0};
    struct timed t = {.code = code, .retries = retries, .least = (retries + 1) * seconds_of(code)};
    need((t.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (t.peer = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    need(vt_to_init(t.qp) == 0 && vt_to_init(t.peer) == 0);
    need(vt_to_rtr_at(t.qp, t.peer->qp_num, &b.gid) == 0 && vt_to_rtr_at(t.peer, t.qp->qp_num, &a.gid) == 0);
    attr.max_rd_atomic = vt_rd_atomic(a.ctx);
    need(ibv_modify_qp(t.qp, &attr,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0);
    return t;
}

static void write_once(struct timed *t, uint64_t id)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr_id = id, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
    wr.wr.rdma.rkey = b.mr->rkey;
    a.qp = t->qp;
    need(vt_end_post(&a, &wr, 0, 8) == 0);
    a.qp = NULL;
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    need(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
    return attr.qp_state;
}

static void destroy(struct timed *t)
{
    need(ibv_destroy_qp(t->qp) == 0 && ibv_destroy_qp(t->peer) == 0);
}

static void all_run_out(void)
{
    struct timed t[QPS], endless = make(0, 1);
    bool early = false, seen[QPS] = {false}, other = false;
    double last = 0;
    for (int i = 0; i < QPS; i++)
        t[i] = make((uint8_t)(FIRST_CODE + i % CODES), (uint8_t)(i / CODES % RETRIES));
    tm_fault("loss=100%");
    double from = vt_now();
    write_once(&endless, QPS);
    for (int i = 0; i < QPS; i++)
        write_once(&t[i], (uint64_t)i);
    for (int n = 0; n < QPS; n++) {
        struct ibv_wc wc = vt_next(a.scq);
        last = vt_now() - from;
        bool known = wc.status == IBV_WC_RETRY_EXC_ERR && wc.wr_id < QPS && !seen[wc.wr_id];
        other |= !known;
        if (!known)
            continue;
        seen[wc.wr_id] = true;
        if (last < t[wc.wr_id].least) {
            printf("# timeout %u, %u retries: failed after %.1f ms, at least %.1f\n", t[wc.wr_id].code,
                   t[wc.wr_id].retries, last * 1e3, t[wc.wr_id].least * 1e3);
            early = true;
        }
    }
    printf("# the last of %d failed after %.0f ms; its timeouts are %.0f\n", QPS, last * 1e3,
           RETRIES * seconds_of(FIRST_CODE + CODES - 1) * 1e3);
    ok(!other, "each QP fails once, with retries exceeded");
    ok(!early, "none before its retries have run out");
    ok(vt_quiet(a.scq) && state_of(endless.qp) == IBV_QPS_RTS, "a QP without a timeout waits");
    tm_fault("");
    for (int i = 0; i < QPS; i++)
        destroy(&t[i]);
    destroy(&endless);
}

static void an_answer_ends_it(void)
{
    struct timed t = make(FIRST_CODE + 2, 0);
    bool right = true;
    for (uint64_t i = 0; i < 20; i++) {
        write_once(&t, i);
        struct ibv_wc wc = vt_next(a.scq);
        right &= wc.status == IBV_WC_SUCCESS && wc.wr_id == i;
    }
    double end = vt_now() + 3 * t.least;
    while (vt_now() < end)
        right &= vt_quiet(a.scq);
    ok(right && state_of(t.qp) == IBV_QPS_RTS, "no timer is left behind an answer");
    destroy(&t);
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    if (ca == cb)
        return; /* within a device nothing is lost */
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    all_run_out();
    an_answer_ends_it();
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    VT_OWN("faults of the daemon");
    return vt_both(test);
}
