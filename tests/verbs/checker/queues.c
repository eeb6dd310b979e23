// SPDX-License-Identifier: BSD-2-Clause
/* Mistakes with queues, connections and the life of objects that the checker finds, and the right way beside each.
 * tests/e2e/cli/check.sh runs them one by one. Usage: queues NAME wrong|right */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/verbs/checker/mistake.h"

/* late: the CQ is armed after a request was posted. acknowledged: events, of one. */
static void events(bool late, unsigned acknowledged)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(p.ctx);
    struct ibv_cq *cq = ibv_create_cq(p.ctx, 16, NULL, channel, 0), *got;
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(p.pd, &init);
    union ibv_gid gid = vt_gid(p.ctx);
    struct ibv_sge s = vt_sge(&p, 0, 8);
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)p.buf + 8192, p.mr->rkey}},
                       *bad;
    struct ibv_wc wc;
    void *context;
    need(qp && vt_to_init(qp) == 0 && vt_to_rtr_at(qp, qp->qp_num, &gid) == 0 && vt_to_rts(qp) == 0);
    if (late)
        need(ibv_post_send(qp, &wr, &bad) == 0);
    need(ibv_req_notify_cq(cq, 0) == 0 && (!late || wrong || ibv_poll_cq(cq, 1, &wc) >= 0));
    /* With late, the first completion may be there already. The second one makes an event in any case. */
    need(ibv_post_send(qp, &wr, &bad) == 0 && ibv_get_cq_event(channel, &got, &context) == 0);
    if (acknowledged)
        ibv_ack_cq_events(cq, acknowledged);
    need(ibv_destroy_qp(qp) == 0);
    fflush(stdout);
    if (acknowledged != 1)
        alarm(1); /* the next call never returns */
    need(ibv_destroy_cq(cq) == 0 && ibv_destroy_comp_channel(channel) == 0);
}

static void lost_event(void)
{
    events(true, 1);
}

static void unacked(void)
{
    events(false, wrong ? 0 : 1);
}

/* As a program does that takes the number of completions for that of events. */
static void unacked_more(void)
{
    events(false, wrong ? 3 : 1);
}

static void unsignaled(void)
{
    int rc = 0;
    for (unsigned i = 0; i < 5000 && rc == 0; i++) {
        rc = write_to(0, 8192, 8, wrong || i % 8 ? 0 : IBV_SEND_SIGNALED);
        if (!wrong && i % 8 == 0)
            need(take(p.scq).status == IBV_WC_SUCCESS);
    }
    need(rc == (wrong ? ENOMEM : 0));
}

static void cq_size(void)
{
    struct ibv_cq *cq = ibv_create_cq(p.ctx, wrong ? 1 : 40, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {4, (uint32_t)cq->cqe + (wrong ? 1 : 0), 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(p.pd, &init);
    need(qp && vt_to_init(qp) == 0);
    for (uint32_t i = 0; i < (uint32_t)cq->cqe + (wrong ? 1 : 0); i++) {
        struct ibv_sge s = vt_sge(&p, i * 8, 8);
        struct ibv_recv_wr wr = {.sg_list = &s, .num_sge = 1}, *bad;
        need(ibv_post_recv(qp, &wr, &bad) == 0);
    }
    need(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
}

static void after_error(void)
{
    struct ibv_sge s = vt_sge(&p, 0, 8);
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)p.buf, 0x7}},
                       *bad;
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0 && take(p.scq).status == IBV_WC_REM_ACCESS_ERR);
    if (!wrong) {
        need(vt_to_state(p.qp[0], IBV_QPS_RESET) == 0 && vt_to_state(p.qp[1], IBV_QPS_RESET) == 0);
        vt_connect(&p);
    }
    need(write_to(0, 8192, 8, IBV_SEND_SIGNALED) == 0);
    need((take(p.scq).status == IBV_WC_SUCCESS) == !wrong);
}

static void busy(void)
{
    struct ibv_pd *pd = ibv_alloc_pd(p.ctx);
    struct ibv_mr *mr = ibv_reg_mr(pd, p.buf, 4096, 0);
    need(mr && ibv_dealloc_pd(pd) == EBUSY && ibv_dereg_mr(mr) == 0);
    if (!wrong)
        need(ibv_dealloc_pd(pd) == 0);
}

/* A shared receive queue that falls below its limit makes an asynchronous event. */
static void unacked_async(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq_attr limit = {.srq_limit = 1};
    struct ibv_srq *srq = ibv_create_srq(p.pd, &init);
    struct ibv_qp_init_attr with = {
        .send_cq = p.scq, .recv_cq = p.rcq, .srq = srq, .cap = {4, 0, 1, 0, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = srq ? ibv_create_qp(p.pd, &with) : NULL;
    struct ibv_sge s = vt_sge(&p, 0, 8);
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    struct ibv_async_event event;
    need(qp && vt_to_init(qp) == 0 && vt_to_rtr(qp, qp->qp_num) == 0 && vt_to_rts(qp) == 0);
    need(vt_srq_recv(&p, srq, 0, 64, 8) == 0 && ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
    need(ibv_post_send(qp, &wr, &bad) == 0 && take(p.scq).status == IBV_WC_SUCCESS);
    need(take(p.rcq).status == IBV_WC_SUCCESS && ibv_get_async_event(p.ctx, &event) == 0);
    need(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
    if (!wrong)
        ibv_ack_async_event(&event);
    fflush(stdout);
    if (wrong)
        alarm(1); /* to destroy the queue takes for ever */
    need(ibv_destroy_qp(qp) == 0 && ibv_destroy_srq(srq) == 0);
}

/* The CQ is not destroyed. */
static void unacked_exit(void)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(p.ctx);
    struct ibv_cq *cq = ibv_create_cq(p.ctx, 16, NULL, channel, 0), *got;
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(p.pd, &init);
    struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
    void *cq_context;
    need(qp && vt_to_init(qp) == 0 && ibv_post_recv(qp, &wr, &bad) == 0 && ibv_req_notify_cq(cq, 0) == 0);
    need(vt_to_state(qp, IBV_QPS_ERR) == 0 && ibv_get_cq_event(channel, &got, &cq_context) == 0);
    if (!wrong)
        ibv_ack_cq_events(cq, 1);
    if (wrong)
        exit(0);
    need(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_destroy_comp_channel(channel) == 0);
}

/* Two threads use the queue pair of a thread domain, one after the other, or at the same time. */
static struct ibv_qp *shared_qp;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *use(void *arg)
{
    struct timespec t = {0};
    while (t.tv_nsec < 300000000 && t.tv_sec == 0) { /* of this thread's processor time */
        struct ibv_recv_wr wr = {.wr_id = 1}, *bad;
        if (!wrong)
            pthread_mutex_lock(&turn);
        ibv_post_recv(shared_qp, &wr, &bad); /* fails when the queue is full */
        if (!wrong)
            pthread_mutex_unlock(&turn);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    }
    return arg;
}

static void thread(void)
{
    struct ibv_td_init_attr none = {0};
    struct ibv_td *td = ibv_alloc_td(p.ctx, &none);
    struct ibv_parent_domain_init_attr attr = {.pd = p.pd, .td = td};
    struct ibv_pd *parent = td ? ibv_alloc_parent_domain(p.ctx, &attr) : NULL;
    struct ibv_qp_init_attr init = {.send_cq = p.scq, .recv_cq = p.rcq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    pthread_t threads[2];
    need(parent != NULL);
    shared_qp = ibv_create_qp(parent, &init);
    need(shared_qp && vt_to_init(shared_qp) == 0);
    for (int i = 0; i < 2; i++)
        need(pthread_create(&threads[i], NULL, use, NULL) == 0);
    for (int i = 0; i < 2; i++)
        need(pthread_join(threads[i], NULL) == 0);
    need(ibv_destroy_qp(shared_qp) == 0 && ibv_dealloc_pd(parent) == 0 && ibv_dealloc_td(td) == 0);
}

/* A queue pair in state INIT. */
static struct ibv_qp *new_qp(enum ibv_qp_type type)
{
    struct ibv_qp_init_attr init = {.send_cq = p.scq, .recv_cq = p.rcq, .cap = {4, 4, 1, 1, 0}, .qp_type = type};
    struct ibv_qp *qp = ibv_create_qp(p.pd, &init);
    need(qp && vt_to_init(qp) == 0);
    return qp;
}

static void grh(void)
{
    struct ibv_qp *qp = new_qp(IBV_QPT_RC);
    struct ibv_qp_attr a;
    int mask = vt_rtr_attr(qp, qp->qp_num, NULL, &a);
    a.ah_attr.is_global = !wrong;
    need((ibv_modify_qp(qp, &a, mask) == 0) == !wrong && ibv_destroy_qp(qp) == 0);
}

static void grh_ah(void)
{
    struct ibv_ah_attr a = {.is_global = !wrong,
                            .port_num = 1,
                            .grh = {.dgid = vt_gid(p.ctx), .sgid_index = vt_gid_index(p.ctx), .hop_limit = 1}};
    struct ibv_ah *ah = ibv_create_ah(p.pd, &a);
    need((ah != NULL) == !wrong && (!ah || ibv_destroy_ah(ah) == 0));
}

static void grh_room(void)
{
    struct ibv_qp *qp = new_qp(IBV_QPT_UD);
    struct ibv_sge s = vt_sge(&p, 0, wrong ? 32 : 72);
    struct ibv_recv_wr wr = {.wr_id = 8, .sg_list = &s, .num_sge = 1}, *bad;
    need(ibv_post_recv(qp, &wr, &bad) == 0 && ibv_destroy_qp(qp) == 0);
}

static void mtu(void)
{
    struct ibv_qp *qp = new_qp(IBV_QPT_RC);
    struct ibv_port_attr port = vt_port_attr(p.ctx);
    struct ibv_qp_attr a;
    int mask = vt_rtr_attr(qp, qp->qp_num, NULL, &a);
    a.path_mtu = wrong ? port.active_mtu + 1 : port.active_mtu;
    ibv_modify_qp(qp, &a, mask);
    need(ibv_destroy_qp(qp) == 0);
}

static void timeout_of(uint8_t timeout, uint8_t tries)
{
    struct ibv_qp *qp = new_qp(IBV_QPT_RC);
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_RTS, .timeout = wrong ? timeout : 14, .retry_cnt = tries, .rnr_retry = 6, .sq_psn = 1};
    need(vt_to_rtr(qp, qp->qp_num) == 0 &&
         ibv_modify_qp(qp, &a,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0);
    need(ibv_destroy_qp(qp) == 0);
}

static void timeout_never(void)
{
    timeout_of(0, 7);
}

static void timeout_early(void)
{
    timeout_of(7, 3);
}

static void left(void)
{
}

static void forked(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        struct ibv_wc wc;
        if (wrong)
            ibv_poll_cq(p.scq, 1, &wc);
        _exit(0);
    }
    need(waitpid(pid, &status, 0) == pid && status == 0);
}

static const struct mistake mistakes[] = {
    {"lost-event", lost_event},
    {"unacked", unacked},
    {"unacked-more", unacked_more},
    {"unacked-async", unacked_async},
    {"unacked-exit", unacked_exit},
    {"thread", thread},
    {"unsignaled", unsignaled},
    {"cq-size", cq_size},
    {"after-error", after_error},
    {"busy", busy},
    {"grh", grh},
    {"grh-ah", grh_ah},
    {"grh-room", grh_room},
    {"mtu", mtu},
    {"timeout", timeout_never},
    {"timeout-early", timeout_early},
    {"left", left},
    {"fork", forked},
};

int main(int argc, char **argv)
{
    const struct mistake *m = mistake_begin(argc, argv, mistakes, sizeof(mistakes) / sizeof(mistakes[0]));
    m->make();
    return wrong && m->make == left ? vt_failed : mistake_end();
}
