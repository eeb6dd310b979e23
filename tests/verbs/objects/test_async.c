// SPDX-License-Identifier: BSD-2-Clause
/* Asynchronous events: they come and name their object, destroying this object waits for the acknowledgement, and the
 * descriptor can be polled. */
#include <fcntl.h>
#include <pthread.h>

#include "tests/verbs/vt.h"

static _Atomic bool destroyed;

static bool next(struct ibv_async_event *ev, enum ibv_event_type type)
{
    struct pollfd f = {.fd = vt_ctx->async_fd, .events = POLLIN};
    if (poll(&f, 1, 5000) != 1 || ibv_get_async_event(vt_ctx, ev))
        return false;
    if (ev->event_type != type)
        printf("# got: %s\n", ibv_event_type_str(ev->event_type));
    return ev->event_type == type;
}

static void *destroy_qp(void *qp)
{
    need(ibv_destroy_qp(qp) == 0);
    destroyed = true;
    return NULL;
}

static void drained(void)
{
    struct vt_pair p = {0};
    struct ibv_async_event ev;
    struct ibv_wc wc;
    pthread_t t;
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    need(vt_recv(&p, 1, 0, 64, 8) == 0 && vt_send(&p, 0, 1, 0, 8, IBV_SEND_SIGNALED) == 0 &&
         vt_poll(p.scq, 1, &wc) == 1);
    struct ibv_qp_attr sqd = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    need(ibv_modify_qp(p.qp[0], &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY) == 0);
    ok(next(&ev, IBV_EVENT_SQ_DRAINED) && ev.element.qp == p.qp[0], "SQ_DRAINED names the QP");
    need(vt_send(&p, 0, 2, 0, 8, IBV_SEND_SIGNALED) == 0 && vt_recv(&p, 1, 0, 64, 8) == 0);
    usleep(50000);
    ok(ibv_poll_cq(p.scq, 1, &wc) == 0, "a send in SQD waits");
    need(vt_to_state(p.qp[0], IBV_QPS_RTS) == 0);
    ok(vt_poll(p.scq, 1, &wc) == 1 && wc.wr_id == 2 && wc.status == IBV_WC_SUCCESS, "until RTS");
    need(pthread_create(&t, NULL, destroy_qp, p.qp[0]) == 0);
    usleep(100000);
    ok(!destroyed, "destroying the QP waits for the acknowledgement");
    ibv_ack_async_event(&ev);
    pthread_join(t, NULL);
    ok(destroyed, "and goes on after it");
    need(ibv_destroy_qp(p.qp[1]) == 0 && ibv_dereg_mr(p.mr) == 0 && ibv_destroy_cq(p.scq) == 0 &&
         ibv_destroy_cq(p.rcq) == 0 && ibv_dealloc_pd(p.pd) == 0);
    free(p.buf);
}

static void overrun(void)
{
    struct vt_pair p = {.scq = ibv_create_cq(vt_ctx, 1, NULL, NULL, 0)};
    struct ibv_async_event ev;
    struct ibv_wc wc[8];
    need(p.scq);
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    for (int i = 0; i < p.scq->cqe + 2; i++)
        need(vt_recv(&p, 1, 0, 64, 8) == 0 && vt_send(&p, 0, 1, 0, 8, IBV_SEND_SIGNALED) == 0);
    ok(next(&ev, IBV_EVENT_CQ_ERR) && ev.element.cq == p.scq, "a CQ that overruns: CQ_ERR names it");
    ibv_ack_async_event(&ev);
    while (ibv_poll_cq(p.rcq, 8, wc) > 0)
        ;
    /* A QP whose CQ is lost may have an event of its own. */
    need(fcntl(vt_ctx->async_fd, F_SETFL, O_NONBLOCK) == 0);
    usleep(50000);
    while (ibv_get_async_event(vt_ctx, &ev) == 0)
        ibv_ack_async_event(&ev);
    ok(errno == EAGAIN, "O_NONBLOCK: EAGAIN when there are no more");
    need(fcntl(vt_ctx->async_fd, F_SETFL, 0) == 0);
    ok(vt_pair_end(&p), "everything is destroyed");
}

/* An access error of the peer's request, which completes nothing at the responder: it gets an event. */
static void access_error(void)
{
    struct vt_pair p = {0};
    struct ibv_async_event ev;
    struct ibv_wc wc;
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    struct ibv_sge s = vt_sge(&p, 0, 8);
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)p.buf, p.mr->rkey ^ 0xff}},
                       *bad;
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0);
    ok(vt_poll(p.scq, 1, &wc) == 1 && wc.status == IBV_WC_REM_ACCESS_ERR, "a write with a wrong key: REM_ACCESS_ERR");
    ok(next(&ev, IBV_EVENT_QP_ACCESS_ERR) && ev.element.qp == p.qp[1], "and QP_ACCESS_ERR at the responder");
    ibv_ack_async_event(&ev);
    ok(vt_pair_end(&p), "everything is destroyed");
}

/* The first packet that comes in RTR: the peer is there, though this side may not send yet. */
static void established(void)
{
    struct vt_pair p = {0};
    struct ibv_async_event ev;
    struct ibv_wc wc;
    vt_pair_make(&p, vt_ctx, NULL);
    for (int i = 0; i < 2; i++)
        need(vt_to_init(p.qp[i]) == 0 && vt_recv(&p, i, 0, 64, 8) == 0);
    for (int i = 0; i < 2; i++)
        need(vt_to_rtr(p.qp[i], p.qp[!i]->qp_num) == 0);
    need(vt_to_rts(p.qp[0]) == 0 && vt_send(&p, 0, 1, 0, 8, IBV_SEND_SIGNALED) == 0);
    ok(next(&ev, IBV_EVENT_COMM_EST) && ev.element.qp == p.qp[1], "a packet in RTR: COMM_EST names the QP");
    ibv_ack_async_event(&ev);
    ok(vt_poll(p.scq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS && vt_poll(p.rcq, 1, &wc) == 1,
       "the message is received and acknowledged");
    need(vt_recv(&p, 1, 0, 64, 8) == 0 && vt_send(&p, 0, 2, 0, 8, IBV_SEND_SIGNALED) == 0 &&
         vt_poll(p.scq, 1, &wc) == 1 && vt_to_rts(p.qp[1]) == 0);
    ok(vt_no_event(vt_ctx), "it comes once");
    ok(vt_pair_end(&p), "everything is destroyed");
}

/* A request that no rule of the responder's allows. */
static void invalid_request(void)
{
    struct vt_pair p = {0};
    struct ibv_async_event ev;
    struct ibv_wc wc;
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    struct ibv_qp_attr none = {.qp_access_flags = 0};
    need(ibv_modify_qp(p.qp[1], &none, IBV_QP_ACCESS_FLAGS) == 0);
    struct ibv_sge s = vt_sge(&p, 0, 8);
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)p.buf, p.mr->rkey}},
                       *bad;
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0);
    ok(vt_poll(p.scq, 1, &wc) == 1 && wc.status == IBV_WC_REM_INV_REQ_ERR,
       "a READ that the QP does not grant: REM_INV_REQ_ERR");
    ok(next(&ev, IBV_EVENT_QP_REQ_ERR) && ev.element.qp == p.qp[1], "and QP_REQ_ERR at the responder");
    ibv_ack_async_event(&ev);
    ok(vt_pair_end(&p), "everything is destroyed");
}

/* Events of all kinds of objects: of an SRQ's limit, of QPs that fail, of a CQ that overruns. */
static void make_events(struct vt_pair *p)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq_attr limit = {.srq_limit = 2};
    struct ibv_wc wc;
    *p = (struct vt_pair){.pd = ibv_alloc_pd(vt_ctx), .scq = ibv_create_cq(vt_ctx, 1, NULL, NULL, 0)};
    need(p->pd && p->scq && (p->srq = ibv_create_srq(p->pd, &init)));
    vt_pair_make(p, vt_ctx, NULL);
    vt_connect(p);
    need(vt_srq_recv(p, p->srq, 0, 64, 8) == 0 && ibv_modify_srq(p->srq, &limit, IBV_SRQ_LIMIT) == 0);
    need(vt_send(p, 0, 0, 0, 8, 0) == 0 && vt_poll(p->rcq, 1, &wc) == 1);
    need(vt_to_state(p->qp[0], IBV_QPS_ERR) == 0 && vt_to_state(p->qp[1], IBV_QPS_ERR) == 0);
    for (int i = 0; i < p->scq->cqe + 2; i++)
        need(vt_send(p, 0, 1, 0, 8, IBV_SEND_SIGNALED) == 0);
    usleep(50000);
}

/* Are the events that are left those of living objects? On Pumice none is left. (A device may report each completion
 * that a CQ has no room for.) */
static bool none_of_qps(void)
{
    bool right = true;
    while (!vt_no_event(vt_ctx) && right) {
        struct ibv_async_event ev;
        right = ibv_get_async_event(vt_ctx, &ev) == 0;
        if (!right)
            break;
        printf("# also: %s\n", ibv_event_type_str(ev.event_type));
        right = !vt_is_pumice() && (ev.event_type == IBV_EVENT_CQ_ERR || ev.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
        ibv_ack_async_event(&ev);
    }
    return right;
}

/* Destroying an object drops its unread events, so that the descriptor is not readable without an event. */
static void unread(void)
{
    struct vt_pair p;
    struct ibv_async_event ev;
    make_events(&p);
    need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0);
    bool limit = next(&ev, IBV_EVENT_SRQ_LIMIT_REACHED) && ev.element.srq == p.srq;
    ibv_ack_async_event(&ev);
    bool overrun = next(&ev, IBV_EVENT_CQ_ERR) && ev.element.cq == p.scq;
    ibv_ack_async_event(&ev);
    ok(limit, "QPs go, and their unread events; that of the SRQ is there");
    ok(overrun, "that of the CQ is there");
    ok(none_of_qps(), "no event of a QP is there");
    need(ibv_destroy_srq(p.srq) == 0 && ibv_dereg_mr(p.mr) == 0 && ibv_destroy_cq(p.scq) == 0 &&
         ibv_destroy_cq(p.rcq) == 0 && ibv_dealloc_pd(p.pd) == 0);
    free(p.buf);
    make_events(&p);
    ok(vt_pair_end(&p) == false && errno == EBUSY && !vt_no_event(vt_ctx), "all go but an SRQ and what it needs");
    ok(ibv_destroy_srq(p.srq) == 0 && vt_no_event(vt_ctx), "and when that goes, nothing is left to read");
    need(ibv_dealloc_pd(p.pd) == 0);
}

int main(void)
{
    vt_part("a send queue that is drained", drained);
    vt_part("a packet in RTR", established);
    vt_part("an invalid request", invalid_request);
    vt_part("an access error", access_error);
    vt_part("a CQ that overruns", overrun);
    vt_part("unread events", unread);
    return vt_failed;
}
