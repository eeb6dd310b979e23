// SPDX-License-Identifier: BSD-2-Clause
/* Shared receive queues: what they refuse, several QPs that complete out of order, the limit, and resizing. No
 * request is lost when a QP fails or is destroyed. */
#include <pthread.h>
#include <sched.h>

#include "tests/verbs/vt.h"

static struct ibv_pd *pd; /* of the part that runs */

static struct ibv_srq *make(uint32_t max_wr, uint32_t max_sge)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = max_wr, .max_sge = max_sge}};
    struct ibv_srq *srq = ibv_create_srq(pd, &a);
    if (srq)
        need(a.attr.max_wr >= max_wr && a.attr.max_sge >= max_sge);
    return srq;
}

static void limits(void)
{
    struct ibv_device_attr d;
    need(ibv_query_device(vt_ctx, &d) == 0);
    ok(d.max_srq_wr >= 1 && d.max_srq_sge >= 1, "the device has SRQs");
    ok_pumice(d.max_srq_wr >= 1024, "of 1024 requests and more");
    errno = 0;
    ok(vt_none(make(0, 1), EINVAL), "an SRQ without requests: EINVAL");
    ok(vt_none(make((uint32_t)d.max_srq_wr + 1, 1), EINVAL), "more requests than the device allows: EINVAL");
    ok(vt_none(make(1, (uint32_t)d.max_srq_sge + 1), EINVAL), "more SGEs than the device allows: EINVAL");
    struct ibv_srq_init_attr_ex tm = {.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ,
                                      .srq_type = IBV_SRQT_BASIC,
                                      .attr = {.max_wr = 4, .max_sge = 1},
                                      .pd = pd};
    ok_pumice(!ibv_create_srq_ex(vt_ctx, &tm) && errno == EINVAL, "a basic SRQ with a CQ: EINVAL");
    tm.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    struct ibv_srq *srq = ibv_create_srq_ex(vt_ctx, &tm);
    uint32_t num;
    ok(srq && ibv_get_srq_num(srq, &num) != 0, "a basic SRQ by the extended call has no number");
    struct ibv_srq_attr q;
    ok(ibv_query_srq(srq, &q) == 0 && q.max_wr >= 4 && q.max_sge >= 1 && q.srq_limit == 0, "query");
    ok(vt_fails(ibv_dealloc_pd(pd), EBUSY), "its PD is busy");
    ok(ibv_destroy_srq(srq) == 0, "destroy");
}

static void posting(void)
{
    struct vt_pair p = {.pd = pd};
    need((p.srq = make(8, 2)));
    vt_pair_make(&p, vt_ctx, NULL);
    struct ibv_srq_attr q;
    need(ibv_query_srq(p.srq, &q) == 0);
    struct ibv_sge s[3] = {vt_sge(&p, 0, 1), vt_sge(&p, 1, 1), vt_sge(&p, 2, 1)};
    struct ibv_recv_wr wr = {.sg_list = s, .num_sge = (int)q.max_sge + 1}, *bad = NULL;
    ok(vt_fails(ibv_post_srq_recv(p.srq, &wr, &bad), EINVAL) && bad == &wr, "too many SGEs: EINVAL");
    wr.num_sge = 1;
    ok(vt_fails(ibv_post_recv(p.qp[0], &wr, &bad), EINVAL), "a receive request to a QP with an SRQ: EINVAL");
    for (uint32_t i = 0; i < q.max_wr; i++)
        need(vt_srq_recv(&p, p.srq, i, 0, 64) == 0);
    ok(vt_fails(vt_srq_recv(&p, p.srq, 99, 0, 64), ENOMEM), "a full queue: ENOMEM");
    ok(vt_fails(ibv_destroy_srq(p.srq), EBUSY), "an SRQ with QPs is busy");
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    ok(ibv_query_qp(p.qp[0], &attr, IBV_QP_STATE, &init) == 0 && init.srq == p.srq && p.qp[0]->srq == p.srq,
       "the QP says which");
    struct ibv_srq *srq = p.srq;
    pd = NULL;
    need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0);
    ok(ibv_destroy_srq(srq) == 0, "until they go; requests in it vanish");
    need(ibv_dereg_mr(p.mr) == 0 && ibv_destroy_cq(p.scq) == 0 && ibv_destroy_cq(p.rcq) == 0);
    free(p.buf);
    pd = p.pd;
}

/* Two QPs of one SRQ whose messages take unequally long; places are reused while others are still in use. Small
 * messages travel in the completion, so a mix of requests would show at once. */
static void out_of_order(void)
{
    struct vt_pair p = {.pd = pd};
    struct ibv_wc wc[8];
    char *got;
    need((p.srq = make(8, 1)));
    p.rcq = p.scq = ibv_create_cq(vt_ctx, 64, NULL, NULL, 0);
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    bool right = true, both[2] = {false, false};
    unsigned posted = 0, done = 0, sent = 0;
    enum { ROUNDS = 3000, SLOT = 2048 };
    for (; posted < 8; posted++)
        need(vt_srq_recv(&p, p.srq, posted % 16, posted % 16 * SLOT, SLOT) == 0);
    while (done < ROUNDS && right) {
        if (sent < ROUNDS && sent < done + 4) {
            unsigned i = sent % 2, len = sent % 7 == 0 ? 1900 : 1 + sent % 60;
            memset(p.buf + 32768 + sent % 8 * SLOT, (int)(sent & 0xff), len);
            if (vt_send(&p, (int)i, 1000, 32768 + sent % 8 * SLOT, len, IBV_SEND_SIGNALED) == 0)
                sent++;
        }
        int n = ibv_poll_cq(p.rcq, 8, wc);
        for (int k = 0; k < n; k++) {
            right &= wc[k].status == IBV_WC_SUCCESS;
            if (wc[k].opcode != IBV_WC_RECV)
                continue;
            got = p.buf + wc[k].wr_id * SLOT;
            for (uint32_t b = 1; b < wc[k].byte_len; b++)
                right &= got[b] == got[0];
            both[wc[k].qp_num == p.qp[0]->qp_num] = true;
            done++;
            memset(got, 0xee, SLOT);
            need(vt_srq_recv(&p, p.srq, wc[k].wr_id, (uint32_t)wc[k].wr_id * SLOT, SLOT) == 0);
        }
    }
    ok(right && both[0] && both[1], "3000 messages of two QPs, each in the request that its completion names");
    need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0 && ibv_destroy_srq(p.srq) == 0);
    need(ibv_dereg_mr(p.mr) == 0 && ibv_destroy_cq(p.rcq) == 0);
    free(p.buf);
}

static void limit_event(void)
{
    struct vt_pair p = {.pd = pd};
    struct ibv_wc wc[16];
    need((p.srq = make(16, 1)));
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    for (unsigned i = 0; i < 10; i++)
        need(vt_srq_recv(&p, p.srq, i, 0, 64) == 0);
    struct ibv_srq_attr a = {.srq_limit = 7}, q;
    ok(ibv_modify_srq(p.srq, &a, IBV_SRQ_LIMIT) == 0 && ibv_query_srq(p.srq, &q) == 0 && q.srq_limit == 7,
       "a limit of 7, with 10 requests");
    for (int i = 0; i < 3; i++)
        need(vt_send(&p, 0, 0, 1024, 8, 0) == 0);
    need(vt_poll(p.rcq, 3, wc) == 3);
    ok(vt_no_event(vt_ctx), "no event while 7 are left");
    need(vt_send(&p, 0, 0, 1024, 8, 0) == 0 && vt_poll(p.rcq, 1, wc) == 1);
    ok(vt_event(vt_ctx, IBV_EVENT_SRQ_LIMIT_REACHED, p.srq), "the fourth message brings it");
    ok(ibv_query_srq(p.srq, &q) == 0 && q.srq_limit == 0, "the limit is gone");
    need(vt_send(&p, 0, 0, 1024, 8, 0) == 0 && vt_poll(p.rcq, 1, wc) == 1);
    ok(vt_no_event(vt_ctx), "it comes once");
    a.srq_limit = 1000;
    ok(vt_fails(ibv_modify_srq(p.srq, &a, IBV_SRQ_LIMIT), EINVAL), "a limit beyond the queue: EINVAL");
    ok_pumice(ibv_modify_srq(p.srq, &a, 1 << 7) == EINVAL, "unknown mask: EINVAL");
    need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0 && ibv_destroy_srq(p.srq) == 0);
    need(ibv_dereg_mr(p.mr) == 0 && ibv_destroy_cq(p.rcq) == 0 && ibv_destroy_cq(p.scq) == 0);
    free(p.buf);
}

static void resizing(void)
{
    struct vt_pair p = {.pd = pd};
    struct ibv_wc wc[64];
    vt_needs(vt_ctx, VT_SRQ_RESIZE);
    need((p.srq = make(4, 1)));
    vt_pair_make(&p, vt_ctx, &(struct ibv_qp_cap){64, 1, 1, 1, 0});
    vt_connect(&p);
    for (unsigned i = 0; i < 4; i++)
        need(vt_srq_recv(&p, p.srq, i, i * 64, 64) == 0);
    struct ibv_srq_attr a = {.max_wr = 3}, q;
    ok(vt_fails(ibv_modify_srq(p.srq, &a, IBV_SRQ_MAX_WR), EINVAL), "fewer than are outstanding: EINVAL");
    a.max_wr = 40;
    ok(ibv_modify_srq(p.srq, &a, IBV_SRQ_MAX_WR) == 0 && ibv_query_srq(p.srq, &q) == 0 && q.max_wr >= 40, "larger");
    for (unsigned i = 4; i < 40; i++)
        need(vt_srq_recv(&p, p.srq, i, i * 64, 64) == 0);
    bool right = true;
    for (unsigned i = 0; i < 40; i++) {
        p.buf[32768] = (char)i;
        need(vt_send(&p, 0, 0, 32768, 64, 0) == 0 && vt_poll(p.rcq, 1, wc) == 1);
        right &= wc[0].wr_id == i && p.buf[i * 64] == (char)i;
    }
    ok(right, "what was posted before and after comes in order");
    a.max_wr = 2;
    ok(ibv_modify_srq(p.srq, &a, IBV_SRQ_MAX_WR) == 0, "smaller");
    need(vt_srq_recv(&p, p.srq, 1, 0, 64) == 0 && ibv_query_srq(p.srq, &q) == 0);
    while (vt_srq_recv(&p, p.srq, 2, 64, 64) == 0)
        right &= q.max_wr-- > 0;
    ok(right && q.max_wr == 1, "it takes as many as it says");
    need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0 && ibv_destroy_srq(p.srq) == 0);
    need(ibv_dereg_mr(p.mr) == 0 && ibv_destroy_cq(p.rcq) == 0 && ibv_destroy_cq(p.scq) == 0);
    free(p.buf);
}

/* A QP in the error state lets the SRQ be; requests whose completions were never polled come back when QPs go. */
static void nothing_leaks(void)
{
    struct vt_pair p = {.pd = pd};
    static char kept[64]; /* requests outlive the QPs */
    struct ibv_mr *mr = ibv_reg_mr(pd, kept, sizeof(kept), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_srq_attr q;
    need(mr && (p.srq = make(4, 1)) && ibv_query_srq(p.srq, &q) == 0);
    struct ibv_sge s = {.addr = (uintptr_t)kept, .length = sizeof(kept), .lkey = mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &s, .num_sge = 1}, *bad;
    for (int round = 0; round < 5; round++) {
        struct ibv_wc wc[8];
        p.scq = p.rcq = NULL;
        p.pd = pd;
        vt_pair_make(&p, vt_ctx, NULL);
        vt_connect(&p);
        unsigned n = 0;
        while (ibv_post_srq_recv(p.srq, &wr, &bad) == 0)
            n++;
        if (round == 0)
            ok(n == q.max_wr, "all places are free at first");
        else if (n != 2)
            ok(false, "the round before freed two places");
        need(vt_send(&p, 0, 0, 1024, 8, IBV_SEND_SIGNALED) == 0 && vt_send(&p, 0, 0, 1024, 8, IBV_SEND_SIGNALED) == 0);
        need(vt_poll(p.scq, 2, wc) == 2); /* they are delivered, but not polled */
        if (round == 2) {
            need(vt_to_state(p.qp[1], IBV_QPS_ERR) == 0);
            ok(vt_event(vt_ctx, IBV_EVENT_QP_LAST_WQE_REACHED, p.qp[1]), "QP to ERR: LAST_WQE_REACHED");
            ok(vt_poll(p.rcq, 2, wc) == 2 && wc[1].status == IBV_WC_SUCCESS && ibv_poll_cq(p.rcq, 1, wc) == 0,
               "and nothing of the SRQ is flushed");
        } else if (round == 3) {
            need(vt_to_state(p.qp[1], IBV_QPS_RESET) == 0);
        }
        need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0);
        need(ibv_dereg_mr(p.mr) == 0 && ibv_destroy_cq(p.rcq) == 0 && ibv_destroy_cq(p.scq) == 0);
        free(p.buf);
    }
    ok(true, "completions that nobody polled gave their places back");
    ok(ibv_destroy_srq(p.srq) == 0 && ibv_dereg_mr(mr) == 0, "destroy");
}

struct worker {
    struct vt_pair *p;
    unsigned posted;
    double end;
};
static void *poster(void *arg)
{
    struct worker *w = arg;
    while (w->posted < 5000 && vt_now() < w->end) {
        if (vt_srq_recv(w->p, w->p->srq, w->posted, w->posted % 64 * 64, 64) == 0)
            w->posted++;
        else
            sched_yield(); /* full: it is the daemon's turn, and it may have to wait for a processor */
    }
    return NULL;
}

static void threads(void)
{
    struct vt_pair p = {.pd = pd};
    struct ibv_wc wc[16];
    need((p.srq = make(32, 1)));
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    double end = vt_now() + 60;
    struct worker w[3] = {{&p, 0, end}, {&p, 0, end}, {&p, 0, end}};
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, poster, &w[i]);
    unsigned got = 0, sent = 0;
    while (got < 15000 && vt_now() < end) {
        if (sent < 15000 && vt_send(&p, 0, 0, 32768, 8, IBV_SEND_SIGNALED) == 0)
            sent++;
        ibv_poll_cq(p.scq, 16, wc);
        int n = ibv_poll_cq(p.rcq, 16, wc);
        got += n > 0 ? (unsigned)n : 0;
    }
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    ok(got == 15000, "three threads post while one polls: 15000 messages");
    need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0 && ibv_destroy_srq(p.srq) == 0);
    need(ibv_dereg_mr(p.mr) == 0 && ibv_destroy_cq(p.rcq) == 0 && ibv_destroy_cq(p.scq) == 0);
    free(p.buf);
}

static void (*body)(void);
static void in_pd(void)
{
    vt_needs(vt_ctx, VT_SRQ);
    need((pd = ibv_alloc_pd(vt_ctx)));
    body();
    ok(ibv_dealloc_pd(pd) == 0, "the PD goes");
}
static void run(const char *name, void (*part)(void))
{
    body = part;
    vt_part(name, in_pd);
}

int main(void)
{
    run("limits", limits);
    run("posting", posting);
    run("two QPs that complete out of order", out_of_order);
    run("the limit event", limit_event);
    run("resizing", resizing);
    run("nothing leaks", nothing_leaks);
    run("threads", threads);
    return vt_failed;
}
