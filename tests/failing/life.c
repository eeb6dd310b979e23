// SPDX-License-Identifier: BSD-2-Clause
#include "tests/failing/life.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/tm_types.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pumice/layout.h"
#include "src/verbs/base/verbs_v65.h"
#include "tests/failing/daemon_state.h"
#include "tests/failing/life_cm.h"

/* The system's library may not have them; the one that the program runs with has. */
#pragma weak ibv_create_comp_cntr
#pragma weak ibv_destroy_comp_cntr
#pragma weak ibv_inc_comp_cntr
#pragma weak ibv_qp_attach_comp_cntr

#define BUFFER 65536u
#define ACCESS                                                                                                         \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |            \
     IBV_ACCESS_MW_BIND)
/* Much longer than a queue pair of this test repeats a packet. A packet that has not come by then never comes. */
#define HANG_S 20.0

static _Alignas(4096) char own[BUFFER], other[BUFFER];
static struct life_result result;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Notes a step that failed, and returns whether the life goes on. */
static bool step(bool good, const char *what, int error)
{
    if (!good && !result.failed) {
        result.failed = what;
        result.error = error;
    }
    return good;
}
#define MAKE(what, call) exists(what, (call))
#define DO(what, call) zero(what, (call))

static bool exists(const char *what, const void *object)
{
    return step(object != NULL, what, errno);
}

static bool zero(const char *what, int rc)
{
    return step(rc == 0, what, rc > 0 ? rc : errno);
}

/* --- opening ----------------------------------------------------------------------------------- */

struct ibv_context *life_open(const char *socket)
{
    struct ibv_context *c = NULL;
    struct ibv_device **list;

    setenv("PUMICE_SOCKET", socket, 1);
    list = ibv_get_device_list(NULL);
    if (list && list[0])
        c = ibv_open_device(list[0]);
    if (list)
        ibv_free_device_list(list);
    return c;
}

bool life_peer_open(struct life_peer *p, const char *socket)
{
    return (p->ctx = life_open(socket)) && (p->pd = ibv_alloc_pd(p->ctx)) &&
           (p->cq = ibv_create_cq(p->ctx, 64, NULL, NULL, 0)) && (p->mr = ibv_reg_mr(p->pd, other, BUFFER, ACCESS)) &&
           ibv_query_gid(p->ctx, 1, 0, &p->gid) == 0;
}

/* --- the objects of a life --------------------------------------------------------------------- */

struct life {
    const char *socket;
    const struct life_peer *peer;
    struct ibv_context *ctx;
    union ibv_gid gid;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_mw *mw, *layout_mw;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq, *quiet_cq; /* with the channel; without */
    struct ibv_cq_ex *tm_cq;
    unsigned events; /* events of cq that are not acknowledged */
    struct ibv_srq *srq, *tm_srq;
    struct ibv_xrcd *xrcd;
    struct ibv_qp *target, *ud, *far, *peer_qp;
    struct ibv_qp *opened; /* another handle of the target */
    struct ibv_comp_cntr *counter; /* of far */
    struct ibv_qp *near[2]; /* connected to each other */
    struct ibv_ah *ah;
    bool in_group;
};

static const union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3}};

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq, enum ibv_qp_type type)
{
    struct ibv_qp_init_attr a = {
        .send_cq = cq, .recv_cq = cq, .srq = srq, .cap = {8, 8, 2, 2, 32}, .qp_type = type, .sq_sig_all = 1};

    return ibv_create_qp(pd, &a);
}

static struct ibv_srq *make_tm_srq(struct life *l)
{
    struct ibv_srq_init_attr_ex a = {.attr = {.max_wr = 8, .max_sge = 1},
                                     .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
                                                  IBV_SRQ_INIT_ATTR_TM,
                                     .srq_type = IBV_SRQT_TM,
                                     .pd = l->pd,
                                     .cq = ibv_cq_ex_to_cq(l->tm_cq),
                                     .tm_cap = {.max_num_tags = 4, .max_ops = 4}};

    return ibv_create_srq_ex(l->ctx, &a);
}

static struct ibv_qp *make_target(struct life *l)
{
    struct ibv_qp_init_attr_ex a = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = l->xrcd};

    return ibv_create_qp_ex(l->ctx, &a);
}

static struct ibv_qp *open_target(struct life *l)
{
    struct ibv_qp_open_attr a = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_CONTEXT |
                                              IBV_QP_OPEN_ATTR_TYPE,
                                 .qp_num = l->target->qp_num,
                                 .xrcd = l->xrcd,
                                 .qp_context = l,
                                 .qp_type = IBV_QPT_XRC_RECV};

    return ibv_open_qp(l->ctx, &a);
}

static struct ibv_mw *make_layout_mw(struct life *l)
{
    struct pumice_mw_alloc_attr_ex a = {.pd = l->pd, .type = IBV_MW_TYPE_2, .max_descriptors = 4};

    return pumice_alloc_mw_ex(&a);
}

static struct ibv_comp_cntr *make_counter(struct life *l)
{
    struct vb_comp_cntr_attr_v65 a = {0};

    return ibv_create_comp_cntr(l->ctx, (struct ibv_comp_cntr_init_attr *)(void *)&a);
}

static int attach_counter(struct life *l)
{
    struct vb_attach_comp_cntr_v65 a = {.ops = VB_COMP_CNTR_ALL};

    return ibv_qp_attach_comp_cntr(l->far, l->counter, (struct ibv_qp_attach_comp_cntr_attr *)(void *)&a);
}

static bool make_memory(struct life *l)
{
    return MAKE("alloc_pd", l->pd = ibv_alloc_pd(l->ctx)) &&
           MAKE("reg_mr", l->mr = ibv_reg_mr(l->pd, own, BUFFER, ACCESS)) &&
           MAKE("alloc_mw", l->mw = ibv_alloc_mw(l->pd, IBV_MW_TYPE_2)) &&
           MAKE("alloc_mw layout", l->layout_mw = make_layout_mw(l)) &&
           DO("rereg_mr", ibv_rereg_mr(l->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ACCESS));
}

static bool make_queues(struct life *l)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 8, .max_sge = 2}};
    struct ibv_cq_init_attr_ex tm_cq = {.cqe = 32, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    struct ibv_srq_attr larger = {.max_wr = 100};
    struct ibv_modify_cq_attr moderation = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {.cq_count = 1}};

    return MAKE("create_comp_channel", l->channel = ibv_create_comp_channel(l->ctx)) &&
           MAKE("create_cq", l->cq = ibv_create_cq(l->ctx, 32, NULL, l->channel, 0)) &&
           MAKE("create_cq 2", l->quiet_cq = ibv_create_cq(l->ctx, 32, NULL, NULL, 0)) &&
           DO("resize_cq", ibv_resize_cq(l->cq, 200)) && DO("modify_cq", ibv_modify_cq(l->cq, &moderation)) &&
           MAKE("create_srq", l->srq = ibv_create_srq(l->pd, &srq)) &&
           DO("resize_srq", ibv_modify_srq(l->srq, &larger, IBV_SRQ_MAX_WR)) &&
           MAKE("create_cq tm", l->tm_cq = ibv_create_cq_ex(l->ctx, &tm_cq)) &&
           MAKE("create_srq tm", l->tm_srq = make_tm_srq(l));
}

static bool make_qps(struct life *l)
{
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};

    return MAKE("open_xrcd", l->xrcd = ibv_open_xrcd(l->ctx, &domain)) &&
           MAKE("create_qp target", l->target = make_target(l)) && MAKE("open_qp", l->opened = open_target(l)) &&
           MAKE("create_qp far", l->far = make_qp(l->pd, l->cq, NULL, IBV_QPT_RC)) &&
           MAKE("create_qp near", l->near[0] = make_qp(l->pd, l->quiet_cq, l->srq, IBV_QPT_RC)) &&
           MAKE("create_qp near 2", l->near[1] = make_qp(l->pd, l->quiet_cq, l->srq, IBV_QPT_RC)) &&
           MAKE("create_qp ud", l->ud = make_qp(l->pd, l->quiet_cq, NULL, IBV_QPT_UD)) &&
           DO("attach_mcast", ibv_attach_mcast(l->ud, &group, 0)) && (l->in_group = true) &&
           MAKE("create_comp_cntr", l->counter = make_counter(l)) && DO("attach_comp_cntr", attach_counter(l)) &&
           DO("inc_comp_cntr", ibv_inc_comp_cntr(l->counter, 1));
}

/* --- connecting -------------------------------------------------------------------------------- */

static int connect_to(struct ibv_qp *qp, uint32_t qpn, const union ibv_gid *gid)
{
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS & ~IBV_ACCESS_MW_BIND};
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = qpn,
                              .rq_psn = 1,
                              .max_dest_rd_atomic = 1,
                              .min_rnr_timer = 1,
                              .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 64}}};
    /* A timeout of 16 ms and seven retries: a lost packet ends no connection, and a dead one ends soon. */
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = 12, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = 1, .max_rd_atomic = 1};
    int rc = ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    if (rc == 0)
        rc = ibv_modify_qp(qp, &rtr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (rc == 0)
        rc = ibv_modify_qp(qp, &rts,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                               IBV_QP_MAX_QP_RD_ATOMIC);
    return rc;
}

static bool connect_all(struct life *l)
{
    struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1, .grh = {.dgid = l->peer->gid, .hop_limit = 64}};

    l->peer_qp = make_qp(l->peer->pd, l->peer->cq, NULL, IBV_QPT_RC);
    if (!l->peer_qp || connect_to(l->peer_qp, l->far->qp_num, &l->gid) != 0) {
        result.wrong = "the other host makes no queue pair";
        return false;
    }
    return MAKE("create_ah", l->ah = ibv_create_ah(l->pd, &ah)) &&
           DO("connect far", connect_to(l->far, l->peer_qp->qp_num, &l->peer->gid)) &&
           DO("connect near", connect_to(l->near[0], l->near[1]->qp_num, &l->gid)) &&
           DO("connect near 2", connect_to(l->near[1], l->near[0]->qp_num, &l->gid));
}

/* --- traffic ----------------------------------------------------------------------------------- */

/* Waits for a completion. Returns false if it reports an error, or if none comes. */
static bool await(struct ibv_cq *cq, const char *what)
{
    double end = now() + HANG_S;
    struct ibv_wc wc;
    int n = 0;

    while (n == 0 && now() < end)
        n = ibv_poll_cq(cq, 1, &wc);
    if (n == 0)
        result.wrong = what;
    return n == 1 && step(wc.status == IBV_WC_SUCCESS, what, (int)wc.status);
}

/* The same, for a CQ that was armed: the event must come first. */
static bool await_event(struct life *l, const char *what)
{
    struct pollfd p = {.fd = l->channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    void *context;

    if (poll(&p, 1, (int)(HANG_S * 1000)) != 1) {
        result.wrong = "no event came of a completion queue that was armed";
        return false;
    }
    if (!DO("get_cq_event", ibv_get_cq_event(l->channel, &cq, &context)))
        return false;
    l->events++;
    return await(l->cq, what);
}

static int post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, const struct ibv_mr *mr, uint32_t len,
                const struct ibv_mr *to)
{
    struct ibv_sge s = {.addr = (uintptr_t)mr->addr, .length = len, .lkey = mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = opcode}, *bad;

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)to->addr;
        wr.wr.atomic.rkey = to->rkey;
        wr.wr.atomic.compare_add = 1;
    } else if (to) {
        wr.wr.rdma.remote_addr = (uintptr_t)to->addr + BUFFER / 2;
        wr.wr.rdma.rkey = to->rkey;
    }
    return ibv_post_send(qp, &wr, &bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_srq *srq, const struct ibv_mr *mr)
{
    struct ibv_sge s = {.addr = (uintptr_t)mr->addr + 4096, .length = 4096, .lkey = mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &s, .num_sge = 1}, *bad;

    return srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
}

/* The data that arrives is right: a completion with success says so. */
static bool arrived(const char *at, size_t len, const char *what)
{
    for (size_t i = 0; i < len; i++) {
        if (at[i] != own[i]) {
            result.wrong = what;
            return false;
        }
    }
    return true;
}

static bool traffic_far(struct life *l)
{
    const struct life_peer *p = l->peer;

    memset(other, 0, sizeof(other));
    return DO("req_notify", ibv_req_notify_cq(l->cq, 0)) && post_recv(l->peer_qp, NULL, p->mr) == 0 &&
           DO("post", post(l->far, IBV_WR_SEND, l->mr, 3000, NULL)) && await_event(l, "SEND") &&
           arrived(other + 4096, 3000, "a SEND completed, but its data did not arrive") &&
           DO("post", post(l->far, IBV_WR_RDMA_WRITE, l->mr, 30000, p->mr)) && await(l->cq, "WRITE") &&
           arrived(other + BUFFER / 2, 30000, "a WRITE completed, but its data did not arrive") &&
           DO("post", post(l->far, IBV_WR_RDMA_READ, l->mr, 30000, p->mr)) && await(l->cq, "READ") &&
           DO("post", post(l->far, IBV_WR_ATOMIC_FETCH_AND_ADD, l->mr, 8, p->mr)) && await(l->cq, "atomic") &&
           DO("post", post_recv(l->far, NULL, l->mr)) && post(l->peer_qp, IBV_WR_SEND, p->mr, 3000, NULL) == 0 &&
           await(l->cq, "RECV");
}

static bool traffic_near(struct life *l)
{
    return DO("post", post_recv(NULL, l->srq, l->mr)) && DO("post", post(l->near[0], IBV_WR_SEND, l->mr, 3000, NULL)) &&
           await(l->quiet_cq, "SEND near") && await(l->quiet_cq, "RECV near") &&
           DO("post", post(l->near[0], IBV_WR_RDMA_WRITE, l->mr, 30000, l->mr)) && await(l->quiet_cq, "WRITE near") &&
           arrived(own + BUFFER / 2, 30000, "a WRITE within the device completed, but its data did not arrive");
}

/* --- questions --------------------------------------------------------------------------------- */

static bool ask_status(struct life *l)
{
    int error = daemon_state_ask(l->socket);

    if (error == ETIMEDOUT)
        result.wrong = "the daemon does not answer a question for its status";
    return DO("status", error);
}

static bool query_all(struct life *l)
{
    struct ibv_qp_init_attr init;
    struct ibv_srq_attr srq;
    struct ibv_qp_attr qp;
    struct ibv_port_attr port;

    return DO("query_qp", ibv_query_qp(l->far, &qp, IBV_QP_STATE, &init)) &&
           DO("query_srq", ibv_query_srq(l->srq, &srq)) && DO("query_port", ibv_query_port(l->ctx, 1, &port)) &&
           ask_status(l);
}

/* --- the whole life ---------------------------------------------------------------------------- */

static void fill_buffer(void)
{
    for (size_t i = 0; i < sizeof(own); i++)
        own[i] = (char)(i * 31 + 7);
}

/* Gives everything back. Errors count as errors of the life, but they stop nothing. */
static void end(struct life *l)
{
    if (l->events)
        ibv_ack_cq_events(l->cq, l->events);
    if (l->in_group)
        DO("detach_mcast", ibv_detach_mcast(l->ud, &group, 0));
    if (l->ah)
        DO("destroy_ah", ibv_destroy_ah(l->ah));
    struct ibv_qp *qps[] = {l->ud, l->far, l->near[0], l->near[1], l->opened, l->target};
    for (unsigned i = 0; i < sizeof(qps) / sizeof(qps[0]); i++) {
        if (qps[i])
            DO("destroy_qp", ibv_destroy_qp(qps[i]));
    }
    if (l->counter)
        DO("destroy_comp_cntr", ibv_destroy_comp_cntr(l->counter));
    if (l->peer_qp && ibv_destroy_qp(l->peer_qp) != 0)
        result.wrong = "the other host does not destroy its queue pair";
    if (l->xrcd)
        DO("close_xrcd", ibv_close_xrcd(l->xrcd));
    if (l->tm_srq)
        DO("destroy_srq tm", ibv_destroy_srq(l->tm_srq));
    if (l->srq)
        DO("destroy_srq", ibv_destroy_srq(l->srq));
    if (l->cq)
        DO("destroy_cq", ibv_destroy_cq(l->cq));
    if (l->quiet_cq)
        DO("destroy_cq 2", ibv_destroy_cq(l->quiet_cq));
    if (l->tm_cq)
        DO("destroy_cq tm", ibv_destroy_cq(ibv_cq_ex_to_cq(l->tm_cq)));
    if (l->channel)
        DO("destroy_comp_channel", ibv_destroy_comp_channel(l->channel));
    if (l->mw)
        DO("dealloc_mw", ibv_dealloc_mw(l->mw));
    if (l->layout_mw)
        DO("dealloc_mw layout", ibv_dealloc_mw(l->layout_mw));
    if (l->mr)
        DO("dereg_mr", ibv_dereg_mr(l->mr));
    if (l->pd)
        DO("dealloc_pd", ibv_dealloc_pd(l->pd));
    if (l->ctx)
        DO("close_device", ibv_close_device(l->ctx));
}

struct life_result life_run(const char *socket, const struct life_peer *peer)
{
    struct life l = {.socket = socket, .peer = peer};
    struct ibv_wc wc;

    result = (struct life_result){NULL};
    fill_buffer();
    if (MAKE("open_device", l.ctx = life_open(socket)) && DO("query_gid", ibv_query_gid(l.ctx, 1, 0, &l.gid)) &&
        make_memory(&l) && make_queues(&l) && make_qps(&l) && connect_all(&l) && traffic_far(&l) && traffic_near(&l) &&
        query_all(&l))
        life_cm_run(&l.gid, &result);
    end(&l);
    while (ibv_poll_cq(peer->cq, 1, &wc) > 0)
        ; /* what the other host saw of it */
    return result;
}
