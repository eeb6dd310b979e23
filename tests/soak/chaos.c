// SPDX-License-Identifier: BSD-2-Clause
/* Makes random verbs calls in one process for some time. It creates and destroys objects in all legal orders, and in
 * some illegal ones. Connected QPs carry messages, and it checks their data.
 *
 *     chaos [--seconds N] [--seed N]
 *
 * A world is a protection domain with two connected QPs, their memory and completion queues. Several worlds exist at
 * a time. Each step picks a world and does one thing to it. Exit code: 0 all was right; 1 something was wrong, and
 * the output has the seed. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORLDS = 6, BLOCK = 1 << 18, DEPTH = 16, DEADLINE_S = 60, QKEY = 0x1234, GRH = 40 };

enum kind { KIND_RC, KIND_SRQ, KIND_XRC, KIND_UD, KIND_MAX };
static const char *const kind_name[KIND_MAX] = {"RC", "RC with SRQ", "XRC", "UD"};

struct world {
    bool alive, broken; /* broken: moved to ERR, only fit to be destroyed */
    enum kind kind;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq[2];
    struct ibv_srq *srq;
    struct ibv_xrcd *xrcd;
    struct ibv_qp *qp[2]; /* sends, receives */
    struct ibv_ah *ah;
    struct ibv_mr *mr[2];
    struct ibv_mw *mw;
    uint8_t *mem[2];
};

static struct ibv_context *ctx;
static union ibv_gid gid;
static struct world worlds[WORLDS];
static uint64_t seed = 1, state, steps, messages;

static uint64_t rnd(uint64_t below)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

static void need(bool holds, const struct world *w, const char *what)
{
    if (holds)
        return;
    printf("chaos --seed %llu, step %llu, %s: %s: %s\n", (unsigned long long)seed, (unsigned long long)steps,
           w ? kind_name[w->kind] : "start", what, strerror(errno));
    exit(1);
}

static uint64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* --- making a world ---------------------------------------------------------------------------- */

static void make_xrc(struct world *w)
{
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    struct ibv_srq_init_attr_ex shared = {.attr = {.max_wr = DEPTH, .max_sge = 2},
                                          .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
                                                       IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
                                          .srq_type = IBV_SRQT_XRC,
                                          .pd = w->pd,
                                          .cq = w->cq[1]};
    struct ibv_qp_init_attr_ex to = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD};
    struct ibv_qp_init_attr_ex from = {.qp_type = IBV_QPT_XRC_SEND,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD,
                                       .pd = w->pd,
                                       .send_cq = w->cq[0],
                                       .cap = {.max_send_wr = DEPTH, .max_send_sge = 2}};

    need((w->xrcd = ibv_open_xrcd(ctx, &domain)) != NULL, w, "open XRC domain");
    shared.xrcd = to.xrcd = w->xrcd;
    need((w->srq = ibv_create_srq_ex(ctx, &shared)) != NULL, w, "create XRC SRQ");
    need((w->qp[1] = ibv_create_qp_ex(ctx, &to)) != NULL, w, "create XRC target");
    need((w->qp[0] = ibv_create_qp_ex(ctx, &from)) != NULL, w, "create XRC initiator");
}

static void make_qps(struct world *w)
{
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = DEPTH, .max_sge = 2}};

    if (w->kind == KIND_XRC) {
        make_xrc(w);
        return;
    }
    if (w->kind == KIND_SRQ)
        need((w->srq = ibv_create_srq(w->pd, &shared)) != NULL, w, "create SRQ");
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_init_attr init = {
            .qp_type = w->kind == KIND_UD ? IBV_QPT_UD : IBV_QPT_RC,
            .send_cq = w->cq[i],
            .recv_cq = w->cq[i],
            .srq = w->srq,
            .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 2, .max_recv_sge = 2}};
        need((w->qp[i] = ibv_create_qp(w->pd, &init)) != NULL, w, "create QP");
    }
}

static void connect_qp(struct world *w, int i)
{
    bool ud = w->kind == KIND_UD, xrc = w->kind == KIND_XRC;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qkey = QKEY,
                            .qp_access_flags =
                                IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
    int m = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);

    need(ibv_modify_qp(w->qp[i], &a, m) == 0, w, "to INIT");
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = w->qp[1 - i]->qp_num,
                             .rq_psn = w->qp[1 - i]->qp_num,
                             .max_dest_rd_atomic = 4,
                             .min_rnr_timer = 1,
                             .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}}};
    m = IBV_QP_STATE;
    if (!ud)
        m |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (!ud && !(xrc && i == 0))
        m |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    need(ibv_modify_qp(w->qp[i], &a, m) == 0, w, "to RTR");
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .timeout = 14,
                             .retry_cnt = 7,
                             .rnr_retry = 7,
                             .sq_psn = w->qp[i]->qp_num,
                             .max_rd_atomic = 4};
    m = IBV_QP_STATE | IBV_QP_SQ_PSN | (ud ? 0 : IBV_QP_TIMEOUT);
    if (!ud && !(xrc && i == 1))
        m |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    need(ibv_modify_qp(w->qp[i], &a, m) == 0, w, "to RTS");
}

static void make_world(struct world *w)
{
    struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}};
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                 IBV_ACCESS_MW_BIND;

    *w = (struct world){.alive = true, .kind = (enum kind)rnd(KIND_MAX)};
    need((w->pd = ibv_alloc_pd(ctx)) != NULL, w, "allocate PD");
    if (rnd(2))
        need((w->channel = ibv_create_comp_channel(ctx)) != NULL, w, "create channel");
    for (int i = 0; i < 2; i++) {
        need((w->cq[i] = ibv_create_cq(ctx, 4 * DEPTH, NULL, w->channel, 0)) != NULL, w, "create CQ");
        need((w->mem[i] = aligned_alloc(4096, BLOCK)) != NULL, w, "memory");
        memset(w->mem[i], 0x5a, BLOCK);
        need((w->mr[i] = ibv_reg_mr(w->pd, w->mem[i], BLOCK, access)) != NULL, w, "register MR");
    }
    make_qps(w);
    connect_qp(w, 0);
    connect_qp(w, 1);
    if (w->kind == KIND_UD)
        need((w->ah = ibv_create_ah(w->pd, &to)) != NULL, w, "create AH");
    else if (rnd(2))
        need((w->mw = ibv_alloc_mw(w->pd, IBV_MW_TYPE_1)) != NULL, w, "allocate window");
}

/* --- and its end ------------------------------------------------------------------------------- */

static void destroy_world(struct world *w)
{
    if (rnd(2))
        need(ibv_dealloc_pd(w->pd) == EBUSY, w, "a PD in use must be busy");
    if (rnd(2))
        need(ibv_destroy_cq(w->cq[0]) == EBUSY, w, "a CQ in use must be busy");
    if (w->srq && rnd(2) && w->kind == KIND_SRQ)
        need(ibv_destroy_srq(w->srq) == EBUSY, w, "an SRQ in use must be busy");
    need(w->mw == NULL || ibv_dealloc_mw(w->mw) == 0, w, "deallocate window");
    int first = (int)rnd(2);
    need(ibv_destroy_qp(w->qp[first]) == 0 && ibv_destroy_qp(w->qp[1 - first]) == 0, w, "destroy QPs");
    need(w->ah == NULL || ibv_destroy_ah(w->ah) == 0, w, "destroy AH");
    need(w->srq == NULL || ibv_destroy_srq(w->srq) == 0, w, "destroy SRQ");
    need(w->xrcd == NULL || ibv_close_xrcd(w->xrcd) == 0, w, "close XRC domain");
    for (int i = 0; i < 2; i++) {
        need(ibv_dereg_mr(w->mr[i]) == 0, w, "deregister MR");
        need(ibv_destroy_cq(w->cq[i]) == 0, w, "destroy CQ");
        free(w->mem[i]);
    }
    need(w->channel == NULL || ibv_destroy_comp_channel(w->channel) == 0, w, "destroy channel");
    need(ibv_dealloc_pd(w->pd) == 0, w, "deallocate PD");
    w->alive = false;
}

/* --- traffic ----------------------------------------------------------------------------------- */

/* One completion; false: none came (UD may lose them). */
static bool wait_for(const struct world *w, int i, struct ibv_wc *wc, unsigned ms)
{
    uint64_t end = now_ms() + ms;
    int n;

    while ((n = ibv_poll_cq(w->cq[i], 1, wc)) == 0 && now_ms() < end)
        ;
    need(n >= 0, w, "poll");
    return n == 1;
}

static void post_recv(struct world *w, uint64_t id, uint32_t at, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)w->mem[1] + at, len, w->mr[1]->lkey};
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

    errno = w->srq ? ibv_post_srq_recv(w->srq, &wr, &bad) : ibv_post_recv(w->qp[1], &wr, &bad);
    need(errno == 0, w, "post receive");
}

static void send_wr(struct world *w, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    wr->send_flags |= IBV_SEND_SIGNALED;
    if (w->kind == KIND_XRC) {
        uint32_t srqn = 0;
        need(ibv_get_srq_num(w->srq, &srqn) == 0, w, "SRQ number");
        wr->qp_type.xrc.remote_srqn = srqn;
    }
    errno = ibv_post_send(w->qp[0], wr, &bad);
    need(errno == 0, w, "post send");
}

static void finish_send(struct world *w, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc;

    need(wait_for(w, 0, &wc, DEADLINE_S * 1000), w, "a send request must complete");
    errno = 0;
    if (wc.status != IBV_WC_SUCCESS)
        printf("status %d %s, vendor %u\n", wc.status, ibv_wc_status_str(wc.status), wc.vendor_err);
    need(wc.status == IBV_WC_SUCCESS && wc.opcode == opcode, w, "a send request must succeed");
}

static void fill(uint8_t *p, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        p[i] = (uint8_t)rnd(256);
}

static void do_send(struct world *w)
{
    bool ud = w->kind == KIND_UD;
    uint32_t len = (uint32_t)rnd(ud ? 1024 : 20000), from = (uint32_t)rnd(1000), to = (uint32_t)rnd(1000);
    struct ibv_sge sge = {(uintptr_t)w->mem[0] + from, len, w->mr[0]->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_wc wc;

    if (ud) {
        wr.wr.ud.ah = w->ah;
        wr.wr.ud.remote_qpn = w->qp[1]->qp_num;
        wr.wr.ud.remote_qkey = QKEY;
    }
    fill(w->mem[0] + from, len);
    post_recv(w, steps, to, len + (ud ? GRH : 0));
    send_wr(w, &wr);
    finish_send(w, IBV_WC_SEND);
    if (!wait_for(w, 1, &wc, ud ? 500 : DEADLINE_S * 1000)) {
        need(ud, w, "a receive request must complete");
        w->broken = true; /* the request still waits: this world is at its end */
        return;
    }
    errno = 0;
    need(wc.status == IBV_WC_SUCCESS && wc.wr_id == steps && wc.byte_len == len + (ud ? GRH : 0), w,
         "receive completion");
    need(memcmp(w->mem[1] + to + (ud ? GRH : 0), w->mem[0] + from, len) == 0, w, "received data");
}

static void do_rdma(struct world *w)
{
    bool write = rnd(2);
    uint32_t len = (uint32_t)rnd(100000), from = (uint32_t)rnd(1000), to = (uint32_t)rnd(1000);
    struct ibv_sge sge = {(uintptr_t)w->mem[0] + from, len, w->mr[0]->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ};

    wr.wr.rdma.remote_addr = (uintptr_t)w->mem[1] + to;
    wr.wr.rdma.rkey = w->mr[1]->rkey;
    fill(write ? w->mem[0] + from : w->mem[1] + to, len);
    send_wr(w, &wr);
    finish_send(w, write ? IBV_WC_RDMA_WRITE : IBV_WC_RDMA_READ);
    need(memcmp(w->mem[0] + from, w->mem[1] + to, len) == 0, w, "RDMA data");
}

static void do_atomic(struct world *w)
{
    uint32_t at = 8 * (uint32_t)rnd(100);
    uint64_t before, after, add = rnd(UINT64_MAX), got;
    struct ibv_sge sge = {(uintptr_t)w->mem[0] + 4096, 8, w->mr[0]->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};

    wr.wr.atomic.remote_addr = (uintptr_t)w->mem[1] + at;
    wr.wr.atomic.rkey = w->mr[1]->rkey;
    wr.wr.atomic.compare_add = add;
    memcpy(&before, w->mem[1] + at, 8);
    send_wr(w, &wr);
    finish_send(w, IBV_WC_FETCH_ADD);
    memcpy(&after, w->mem[1] + at, 8);
    memcpy(&got, w->mem[0] + 4096, 8);
    need(got == before && after == before + add, w, "atomic");
}

/* --- other things ------------------------------------------------------------------------------ */

static void do_window(struct world *w)
{
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {.mr = w->mr[0],
                                             .addr = (uintptr_t)w->mem[0] + 8192,
                                             .length = 1 + rnd(8192),
                                             .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ}};

    if (!w->mw)
        return;
    errno = ibv_bind_mw(w->qp[0], w->mw, &bind);
    need(errno == 0, w, "bind window");
    finish_send(w, IBV_WC_BIND_MW);
}

static void do_memory(struct world *w)
{
    uint32_t at = 4096 * (uint32_t)rnd(8);
    struct ibv_mr *mr = ibv_reg_mr(w->pd, w->mem[0] + at, 1 + rnd(BLOCK - at), (int)(rnd(2) * IBV_ACCESS_LOCAL_WRITE));

    need(mr != NULL, w, "register more memory");
    if (rnd(2))
        need(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) == 0, w, "reregister");
    need(ibv_dereg_mr(mr) == 0, w, "deregister more memory");
}

static void do_resize(struct world *w)
{
    need(ibv_resize_cq(w->cq[rnd(2)], (int)(4 * DEPTH + rnd(1000))) == 0, w, "resize CQ");
}

static void do_query(struct world *w)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    struct ibv_srq_attr s;

    need(ibv_query_qp(w->qp[0], &a, IBV_QP_STATE | IBV_QP_CAP, &init) == 0 && a.qp_state == IBV_QPS_RTS, w, "query QP");
    if (w->srq)
        need(ibv_query_srq(w->srq, &s) == 0 && s.max_wr >= DEPTH, w, "query SRQ");
}

/* Moves a QP to ERR. Its posted requests come back flushed. */
static void do_break(struct world *w)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    struct ibv_wc wc;

    if (w->kind == KIND_RC)
        post_recv(w, steps, 0, 64);
    need(ibv_modify_qp(w->qp[1], &a, IBV_QP_STATE) == 0, w, "to ERR");
    if (w->kind == KIND_RC) {
        need(wait_for(w, 1, &wc, DEADLINE_S * 1000), w, "a receive request must be flushed");
        need(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == steps, w, "flushed");
    }
    w->broken = true;
}

static void step(void)
{
    struct world *w = &worlds[rnd(WORLDS)];

    steps++;
    if (!w->alive) {
        make_world(w);
        return;
    }
    if (w->broken || rnd(20) == 0) {
        destroy_world(w);
        return;
    }
    static void (*const act[])(struct world *) = {do_send,   do_send,   do_rdma,   do_rdma, do_atomic,
                                                  do_window, do_memory, do_resize, do_query};
    unsigned i = (unsigned)rnd(sizeof(act) / sizeof(act[0]));
    if (rnd(50) == 0)
        do_break(w);
    else if (w->kind != KIND_UD || i < 2 || i > 5)
        act[i](w), messages += i < 5;
}

static void start(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    need(list && list[0], NULL, "no device");
    need((ctx = ibv_open_device(list[0])) != NULL, NULL, "open device");
    ibv_free_device_list(list);
    need(ibv_query_gid(ctx, 1, 0, &gid) == 0, NULL, "query GID");
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"seconds", 1, NULL, 't'}, {"seed", 1, NULL, 's'}, {0}};
    uint64_t seconds = 10;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 't')
            seconds = strtoull(optarg, NULL, 0);
        else if (c == 's')
            seed = strtoull(optarg, NULL, 0);
        else
            return 1;
    }
    state = seed;
    start();
    for (uint64_t end = now_ms() + seconds * 1000; now_ms() < end;)
        step();
    for (int i = 0; i < WORLDS; i++)
        if (worlds[i].alive)
            destroy_world(&worlds[i]);
    need(ibv_close_device(ctx) == 0, NULL, "close device");
    printf("ok %llu steps %llu messages\n", (unsigned long long)steps, (unsigned long long)messages);
    return 0;
}
