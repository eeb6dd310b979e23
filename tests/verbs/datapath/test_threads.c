// SPDX-License-Identifier: BSD-2-Clause
/* Many threads on one context: they post to one QP, poll one CQ, and create and destroy objects at the same time.
 * Every request completes exactly once. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/verbs/vt.h"

#define POSTERS 3
#define POLLERS 2
#define PER_POSTER 3000
#define TOTAL (POSTERS * PER_POSTER)

static struct vt_pair p;
static _Atomic int sent[TOTAL], received, completed;
static _Atomic bool stop, wrong;

static void *post(void *arg)
{
    uint64_t base = (uint64_t)(uintptr_t)arg * PER_POSTER;
    for (uint64_t i = 0; i < PER_POSTER && !wrong; i++) {
        uint64_t payload = base + i;
        struct ibv_sge s = {.addr = (uintptr_t)&payload, .length = 8};
        struct ibv_send_wr wr = {.wr_id = payload,
                                 .sg_list = &s,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_SEND,
                                 .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED},
                           *bad;
        int rc;
        while ((rc = ibv_post_send(p.qp[0], &wr, &bad)) == ENOMEM && !wrong)
            sched_yield();
        if (rc)
            wrong = true;
    }
    return NULL;
}

/* wr_id of a receive request is its buffer's number; the message in it names the sender's request. */
static void received_one(const struct ibv_wc *wc)
{
    uint64_t payload;
    memcpy(&payload, p.buf + 8 * wc->wr_id, 8);
    if (wc->status != IBV_WC_SUCCESS || wc->byte_len != 8 || payload >= TOTAL ||
        atomic_fetch_add(&sent[payload], 1) != 0)
        wrong = true;
    atomic_fetch_add(&received, 1);
    if (vt_recv(&p, 1, wc->wr_id, 8 * (uint32_t)wc->wr_id, 8))
        wrong = true;
}

static void *poll_both(void *arg)
{
    (void)arg;
    while (!stop && !wrong) {
        struct ibv_wc wc[4];
        int n = ibv_poll_cq(p.scq, 4, wc);
        for (int i = 0; i < n; i++) {
            if (wc[i].opcode & IBV_WC_RECV)
                received_one(&wc[i]);
            else if (wc[i].status == IBV_WC_SUCCESS)
                atomic_fetch_add(&completed, 1);
            else
                wrong = true;
        }
        if (n < 0)
            wrong = true;
    }
    return NULL;
}

/* Objects come and go, on the same CQ too: the other threads' completions must not suffer. */
static void *churn(void *arg)
{
    static char memory[4096];
    unsigned *rounds = arg;
    while (!stop && !wrong) {
        struct ibv_qp_init_attr a = {.send_cq = p.scq, .recv_cq = p.scq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
        struct ibv_pd *pd = ibv_alloc_pd(p.ctx);
        struct ibv_mr *mr = pd ? ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE) : NULL;
        struct ibv_qp *qp = pd ? ibv_create_qp(pd, &a) : NULL;
        if (!mr || !qp || vt_to_init(qp)) {
            wrong = true;
            break;
        }
        struct ibv_sge s = {.addr = (uintptr_t)memory, .length = 8, .lkey = mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = 1 << 20, .sg_list = &s, .num_sge = 1}, *bad;
        /* No message uses this request. It is discarded with the QP. */
        if (ibv_post_recv(qp, &wr, &bad) || ibv_destroy_qp(qp) || ibv_dereg_mr(mr) || ibv_dealloc_pd(pd))
            wrong = true;
        (*rounds)++;
    }
    return NULL;
}

static void threads(void)
{
    struct ibv_qp_cap cap = {64, 128, 1, 1, 64};
    pthread_t posters[POSTERS], pollers[POLLERS], churner;
    unsigned rounds = 0;
    need((p.scq = ibv_create_cq(vt_ctx, 512, NULL, NULL, 0)));
    p.rcq = p.scq;
    vt_pair_make(&p, vt_ctx, &cap);
    vt_connect(&p);
    for (uint32_t i = 0; i < 128; i++)
        need(vt_recv(&p, 1, i, 8 * i, 8) == 0);
    for (int i = 0; i < POLLERS; i++)
        need(pthread_create(&pollers[i], NULL, poll_both, NULL) == 0);
    need(pthread_create(&churner, NULL, churn, &rounds) == 0);
    for (int i = 0; i < POSTERS; i++)
        need(pthread_create(&posters[i], NULL, post, (void *)(uintptr_t)i) == 0);
    for (int i = 0; i < POSTERS; i++)
        pthread_join(posters[i], NULL);
    double end = vt_now() + 20;
    while ((received < TOTAL || completed < TOTAL) && !wrong && vt_now() < end)
        usleep(1000);
    stop = true;
    for (int i = 0; i < POLLERS; i++)
        pthread_join(pollers[i], NULL);
    pthread_join(churner, NULL);
    ok(!wrong, "no call failed, no message came twice");
    ok(received == TOTAL && completed == TOTAL, "every request completed");
    ok(rounds > 0, "while objects came and went");
    ok(vt_pair_end(&p), "everything is destroyed");
}

int main(void)
{
    vt_part("threads", threads);
    return vt_failed;
}
