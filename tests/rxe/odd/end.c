// SPDX-License-Identifier: BSD-2-Clause
/* The objects of an end: device, memory, queue pair. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rxe/odd/odd.h"

enum { QKEY = 0x11111111 };
#define ALL_REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

void end_open(struct end *e, const char *device, int gid_index)
{
    int num;
    struct ibv_device **list = ibv_get_device_list(&num);
    for (int i = 0; list && i < num && !e->ctx; i++)
        if (!device || strcmp(device, ibv_get_device_name(list[i])) == 0)
            e->ctx = ibv_open_device(list[i]);
    if (!e->ctx)
        die(device ? device : "no RDMA device");
    ibv_free_device_list(list);
    e->gid_index = gid_index;
    if (ibv_query_gid(e->ctx, 1, gid_index, &e->gid) != 0)
        die("query GID");
    fcntl(e->ctx->async_fd, F_SETFL, fcntl(e->ctx->async_fd, F_GETFL) | O_NONBLOCK);
    e->block = aligned_alloc(4096, BLOCK_BYTES);
    e->expected = malloc(BLOCK_BYTES);
    e->ignore = malloc(BLOCK_BYTES);
    if (!e->block || !e->expected || !e->ignore)
        die("memory");
}

/* ::ffff:239.77.0.1 or ff0e::77:1, as the family of the GID asks for. */
union ibv_gid end_group(const struct end *e)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    union ibv_gid group = {.raw = {0xff, 0x0e, [13] = 0x77, [15] = 1}};
    if (memcmp(e->gid.raw, mapped, sizeof mapped) == 0)
        group = (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff, 239, 77, 0, 1}};
    return group;
}

static void make_memory(struct end *e, const struct odd_case *c)
{
    int access = (int)(ALL_REMOTE & ~c->refuse) | IBV_ACCESS_LOCAL_WRITE | (c->window.type ? IBV_ACCESS_MW_BIND : 0);
    model_fill(e->block, e->server);
    if (!(e->pd = ibv_alloc_pd(e->ctx)) || !(e->other_pd = ibv_alloc_pd(e->ctx)))
        die("protection domain");
    e->all = ibv_reg_mr(e->pd, e->block, BLOCK_BYTES, IBV_ACCESS_LOCAL_WRITE);
    e->target = ibv_reg_mr(e->pd, e->block + TARGET, TARGET_BYTES, access);
    e->other = ibv_reg_mr(e->other_pd, e->block, BLOCK_BYTES, ALL_REMOTE | IBV_ACCESS_LOCAL_WRITE);
    e->no_write = ibv_reg_mr(e->pd, e->block, BLOCK_BYTES, 0);
    if (!e->all || !e->target || !e->other || !e->no_write)
        die("memory region");
    if (e->server && c->window.type && !(e->mw = ibv_alloc_mw(e->pd, c->window.type)))
        die("memory window");
}

static void to_init(struct end *e, const struct odd_case *c)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    bool ud = e->qp->qp_type == IBV_QPT_UD;
    a.qp_access_flags = ud ? 0 : (ALL_REMOTE & ~c->qp_refuse);
    if (e->qp->qp_type == IBV_QPT_UC)
        a.qp_access_flags &= IBV_ACCESS_REMOTE_WRITE;
    if (ibv_modify_qp(e->qp, &a,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)))
        die("modify to INIT");
}

void end_make(struct end *e, const struct odd_case *c)
{
    make_memory(e, c);
    if (!(e->send_cq = ibv_create_cq(e->ctx, 2 * QUEUE_DEPTH, NULL, NULL, 0)) ||
        !(e->recv_cq = ibv_create_cq(e->ctx, 2 * QUEUE_DEPTH, NULL, NULL, 0)))
        die("completion queue");
    if (e->server && c->srq) {
        struct ibv_srq_init_attr srq = {.attr = {.max_wr = QUEUE_DEPTH, .max_sge = 1}};
        if (!(e->srq = ibv_create_srq(e->pd, &srq)))
            die("shared receive queue");
    }
    struct ibv_qp_init_attr a = {.send_cq = e->send_cq,
                                 .recv_cq = e->recv_cq,
                                 .srq = e->srq,
                                 .cap = {QUEUE_DEPTH, e->srq ? 0 : QUEUE_DEPTH, MAX_SGE, 1, 64},
                                 .qp_type = c->type ? c->type : IBV_QPT_RC,
                                 .sq_sig_all = 0};
    if (!(e->qp = ibv_create_qp(e->pd, &a)))
        die("queue pair");
    if (!e->server || c->peer != PEER_RESET)
        to_init(e, c);
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
    return bytes == 4096   ? IBV_MTU_4096
           : bytes == 2048 ? IBV_MTU_2048
           : bytes == 512  ? IBV_MTU_512
           : bytes == 256  ? IBV_MTU_256
                           : IBV_MTU_1024;
}

static uint8_t or_usual(uint8_t value, uint8_t usual)
{
    return value == 0 ? usual : value == NEVER ? 0 : value;
}

static struct ibv_ah_attr address(const struct end *e, const struct odd_case *c)
{
    struct ibv_ah_attr a = {
        .is_global = 1, .port_num = 1, .grh = {.sgid_index = (uint8_t)e->gid_index, .hop_limit = 64}};
    a.grh.dgid = c->group ? end_group(e) : e->peer.gid;
    return a;
}

static int to_rtr(struct end *e, const struct odd_case *c)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = mtu_code(c->mtu),
                            .dest_qp_num = !e->server && c->wrong_qpn ? c->wrong_qpn : e->peer.qpn,
                            .rq_psn = e->peer.psn,
                            .max_dest_rd_atomic = 16,
                            .min_rnr_timer = or_usual(c->min_rnr_timer, 1),
                            .ah_attr = address(e, c)};
    int mask = IBV_QP_STATE;
    if (c->type != IBV_QPT_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (e->qp->qp_type == IBV_QPT_RC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return ibv_modify_qp(e->qp, &a, mask);
}

static int to_rts(struct end *e, const struct odd_case *c, uint32_t psn)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .timeout = or_usual(c->timeout, 14),
                            .retry_cnt = or_usual(c->retry_cnt, 7),
                            .rnr_retry = or_usual(c->rnr_retry, 7),
                            .sq_psn = (psn + (uint32_t)(e->server ? 0 : c->psn_ahead)) & 0xffffff,
                            .max_rd_atomic = or_usual(c->max_rd_atomic, 16)};
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (e->qp->qp_type == IBV_QPT_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return ibv_modify_qp(e->qp, &a, mask);
}

/* The server's QP in the state that the case asks for. */
static void spoil(struct end *e, const struct odd_case *c)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};
    if (c->peer == PEER_ERROR && ibv_modify_qp(e->qp, &a, IBV_QP_STATE))
        die("modify to ERR");
    if (c->peer == PEER_GONE) {
        if (ibv_destroy_qp(e->qp))
            die("destroy queue pair");
        e->qp = NULL;
    }
}

void end_connect(struct end *e, const struct odd_case *c, const struct info *own)
{
    union ibv_gid group = end_group(e);
    if (!e->server || (c->peer != PEER_RESET && c->peer != PEER_INIT)) {
        if (to_rtr(e, c))
            die("modify to RTR");
        if (to_rts(e, c, own->psn))
            die("modify to RTS");
    }
    if (e->server && c->group && ibv_attach_mcast(e->qp, &group, 0))
        die("attach to the multicast group");
    if (!e->server && c->type == IBV_QPT_UD) {
        struct ibv_ah_attr a = address(e, c);
        if (!(e->ah = ibv_create_ah(e->pd, &a)))
            die("address handle");
    }
    if (e->server) {
        if (c->srq_limit) {
            struct ibv_srq_attr limit = {.srq_limit = c->srq_limit};
            if (ibv_modify_srq(e->srq, &limit, IBV_SRQ_LIMIT))
                die("SRQ limit");
        }
        spoil(e, c);
    }
}

void end_free(struct end *e, const struct odd_case *c)
{
    union ibv_gid group = end_group(e);
    struct ibv_async_event event;
    if (e->server && c->group && ibv_detach_mcast(e->qp, &group, 0))
        die("detach from the multicast group");
    while (ibv_get_async_event(e->ctx, &event) == 0)
        ibv_ack_async_event(&event);
    if ((e->ah && ibv_destroy_ah(e->ah)) || (e->qp && ibv_destroy_qp(e->qp)) || (e->srq && ibv_destroy_srq(e->srq)))
        die("destroy queue pair");
    if (e->mw && ibv_dealloc_mw(e->mw))
        die("free memory window");
    if (ibv_dereg_mr(e->all) || ibv_dereg_mr(e->target) || ibv_dereg_mr(e->other) || ibv_dereg_mr(e->no_write))
        die("deregister memory");
    if (ibv_destroy_cq(e->send_cq) || ibv_destroy_cq(e->recv_cq) || ibv_dealloc_pd(e->pd) ||
        ibv_dealloc_pd(e->other_pd))
        die("destroy");
    e->qp = NULL;
    e->srq = NULL;
    e->mw = NULL;
    e->ah = NULL;
}
