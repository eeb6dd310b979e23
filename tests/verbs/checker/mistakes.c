// SPDX-License-Identifier: BSD-2-Clause
/* Mistakes that the checker finds, and the right way beside each. tests/e2e/cli/check.sh runs them one by one.
 * Usage: mistakes RULE wrong|right */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/verbs/vt.h"

static struct vt_pair p;
static bool wrong;

static struct ibv_wc take(struct ibv_cq *cq)
{
    struct ibv_wc wc = {.status = 255};
    need(vt_poll(cq, 1, &wc) == 1);
    return wc;
}

static int write_to(uint32_t from, uint32_t to, uint32_t len, unsigned flags)
{
    struct ibv_sge s = vt_sge(&p, from, len);
    struct ibv_send_wr wr = {.wr_id = 5,
                             .sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = flags,
                             .wr.rdma = {(uintptr_t)p.buf + to, p.mr->rkey}},
                       *bad;
    return ibv_post_send(p.qp[0], &wr, &bad);
}

static int read_to(uint32_t to, uint32_t from, uint32_t len, uint64_t id)
{
    struct ibv_sge s = vt_sge(&p, to, len);
    struct ibv_send_wr wr = {.wr_id = id,
                             .sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)p.buf + from, p.mr->rkey}},
                       *bad;
    return ibv_post_send(p.qp[0], &wr, &bad);
}

static void send_buffer(void)
{
    need(write_to(0, 8192, 4000, IBV_SEND_SIGNALED) == 0);
    if (wrong)
        p.buf[100]++;
    need(take(p.scq).status == IBV_WC_SUCCESS);
    p.buf[100]++;
}

/* Without a completion of its own. */
static void send_buffer_long(void)
{
    need(write_to(0, 32768, 30000, 0) == 0);
    if (wrong)
        p.buf[20000]++;
    need(write_to(0, 32768, 8, IBV_SEND_SIGNALED) == 0 && take(p.scq).status == IBV_WC_SUCCESS);
}

/* The same with ibv_wr_*: inline data are copied at once, others are not. */
static void send_buffer_wr(void)
{
    struct ibv_qp_init_attr_ex init = {.send_cq = p.scq,
                                       .recv_cq = p.rcq,
                                       .cap = {16, 16, 2, 1, 64},
                                       .qp_type = IBV_QPT_RC,
                                       .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = p.pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
    struct ibv_qp *qp = ibv_create_qp_ex(p.ctx, &init);
    union ibv_gid gid = vt_gid(p.ctx);
    struct ibv_qp_ex *x = qp ? ibv_qp_to_qp_ex(qp) : NULL;
    need(x && vt_to_init(qp) == 0 && vt_to_rtr_at(qp, qp->qp_num, &gid) == 0 && vt_to_rts(qp) == 0);
    const struct ibv_sge list[2] = {vt_sge(&p, 0, 50), vt_sge(&p, 1000, 50)};
    ibv_wr_start(x);
    ibv_wr_rdma_write(x, p.mr->rkey, (uintptr_t)p.buf + 9000); /* given up */
    ibv_wr_set_sge(x, p.mr->lkey, (uintptr_t)p.buf, 500);
    ibv_wr_abort(x);
    ibv_wr_start(x);
    x->wr_id = 8;
    x->wr_flags = 0;
    ibv_wr_rdma_write(x, p.mr->rkey, (uintptr_t)p.buf + 9000);
    ibv_wr_set_inline_data(x, p.buf + 2000, 20);
    x->wr_id = 9;
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(x, p.mr->rkey, (uintptr_t)p.buf + 8192);
    ibv_wr_set_sge_list(x, 2, list);
    need(ibv_wr_complete(x) == 0);
    p.buf[2000]++;
    p.buf[300]++;
    if (wrong)
        p.buf[1007]++;
    need(take(p.scq).status == IBV_WC_SUCCESS && ibv_destroy_qp(qp) == 0);
}

static void overlap(void)
{
    need(vt_recv(&p, 1, 1, 0, 1000) == 0 && vt_recv(&p, 1, 2, wrong ? 999 : 1000, 1000) == 0);
}

static void dereg(void)
{
    struct ibv_mr *mr = ibv_reg_mr(p.pd, p.buf, 4096, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge s = {(uintptr_t)p.buf, 64, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    need(vt_recv(&p, 1, 1, 8192, 64) == 0 && ibv_post_send(p.qp[0], &wr, &bad) == 0);
    if (!wrong)
        need(take(p.scq).status == IBV_WC_SUCCESS);
    need(ibv_dereg_mr(mr) == 0);
}

/* A buffer is given back before its completion was polled. by: 0 free, 1 realloc, 2 munmap. */
static void give_back(int by)
{
    char *buf = by == 2 ? mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : malloc(8192);
    struct ibv_mr *mr = ibv_reg_mr(p.pd, buf, 8192, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge s = {(uintptr_t)buf + 64, 512, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 6, .sg_list = &s, .num_sge = 1}, *bad;
    void *other = malloc(100);
    need(ibv_post_recv(p.qp[1], &wr, &bad) == 0);
    free(other); /* this is right */
    if (!wrong)
        need(vt_send(&p, 0, 1, 0, 64, IBV_SEND_SIGNALED) == 0 && take(p.rcq).status == IBV_WC_SUCCESS &&
             ibv_post_recv(p.qp[1], &wr, &bad) == 0 && ibv_dereg_mr(mr) == 0); /* the next one is never filled */
    if (by == 0)
        free(buf);
    else if (by == 1)
        buf = realloc(buf, 1 << 20);
    else
        munmap(buf, 8192);
    if (by == 1)
        free(buf);
    need(!wrong || ibv_dereg_mr(mr) == 0);
}

static void freed(void)
{
    give_back(0);
}

static void freed_realloc(void)
{
    give_back(1);
}

static void freed_munmap(void)
{
    give_back(2);
}

/* The memory is no longer there when its completion comes. */
static void freed_send(void)
{
    char *buf = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(p.pd, buf, 8192, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge s = {(uintptr_t)buf, 8192, mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 7,
                             .sg_list = &s,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .wr.rdma = {(uintptr_t)p.buf, p.mr->rkey}},
                       *bad;
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0);
    if (wrong)
        munmap(buf, 8192);
    take(p.scq); /* with an error, if the device was slow */
    if (!wrong)
        munmap(buf, 8192);
    need(ibv_dereg_mr(mr) == 0);
}

/* The target of a message or of a READ is touched before its completion was polled. */
static void touch_target(bool read, bool write)
{
    char *buf = aligned_alloc(4096, 16384);
    memset(buf, 0, 16384);
    struct ibv_mr *mr = ibv_reg_mr(p.pd, buf, 16384, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge s = {(uintptr_t)buf + 100, 9000, mr->lkey};
    struct ibv_recv_wr recv = {.wr_id = 2, .sg_list = &s, .num_sge = 1}, *bad_recv;
    struct ibv_send_wr wr = {.wr_id = 2,
                             .sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)p.buf, p.mr->rkey}},
                       *bad;
    memset(p.buf, 'm', 9000);
    signal(SIGSEGV, SIG_DFL); /* the checker uses the signal all the same */
    if (!read)
        need(ibv_post_recv(p.qp[1], &recv, &bad_recv) == 0);
    if (wrong && write)
        buf[5000] = 7;
    if (!read)
        need(vt_send(&p, 0, 1, 0, 9000, IBV_SEND_SIGNALED) == 0 && take(p.scq).status == IBV_WC_SUCCESS);
    else
        need(ibv_post_send(p.qp[0], &wr, &bad) == 0);
    if (wrong && !write)
        need(((volatile char *)buf)[5000] >= 0);
    need(take(read ? p.scq : p.rcq).status == IBV_WC_SUCCESS);
    need(buf[99] == 0 && buf[100] == 'm' && buf[5000] == 'm' && buf[9099] == 'm' && buf[9100] == 0);
    need(ibv_dereg_mr(mr) == 0);
    free(buf);
}

static void touch(void)
{
    touch_target(false, false);
}

static void touch_write(void)
{
    touch_target(false, true);
}

/* The library itself may copy a small message to its buffer, when it is polled. */
static void touch_small(void)
{
    char *buf = aligned_alloc(4096, 8192);
    memset(buf, 0, 8192);
    struct ibv_mr *mr = ibv_reg_mr(p.pd, buf, 8192, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge s = {(uintptr_t)buf, 8192, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &s, .num_sge = 1}, *bad;
    for (int i = 0; i < 20; i++) {
        memset(p.buf, i + 1, 8);
        need(ibv_post_recv(p.qp[1], &wr, &bad) == 0 && vt_send(&p, 0, 1, 0, 8, IBV_SEND_SIGNALED) == 0);
        need(take(p.scq).status == IBV_WC_SUCCESS && take(p.rcq).status == IBV_WC_SUCCESS && buf[7] == i + 1);
    }
    need(ibv_dereg_mr(mr) == 0);
    free(buf);
}

static void touch_read_target(void)
{
    touch_target(true, false);
}

static void dead_key(void)
{
    struct ibv_mr *mr = ibv_reg_mr(p.pd, p.buf, 4096, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge s = {(uintptr_t)p.buf, 64, mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;
    need(vt_recv(&p, 1, 1, 8192, 64) == 0 && ibv_dereg_mr(mr) == 0);
    if (!wrong)
        s.lkey = p.mr->lkey;
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0);
}

/* A message goes to memory without the right to write. */
static void access_right(void)
{
    struct ibv_mr *mr = ibv_reg_mr(p.pd, p.buf, 4096, wrong ? 0 : IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge s = {(uintptr_t)p.buf, 64, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 3, .sg_list = &s, .num_sge = 1}, *bad;
    need(ibv_post_recv(p.qp[1], &wr, &bad) == 0 && vt_send(&p, 0, 1, 8192, 64, IBV_SEND_SIGNALED) == 0);
    need((take(p.rcq).status == IBV_WC_SUCCESS) == !wrong && ibv_dereg_mr(mr) == 0);
}

/* Regions whose addresses begin at 0: in the memory of the program, or of the device. */
static void access_bounds(void)
{
    struct ibv_alloc_dm_attr attr = {.length = 4096};
    struct ibv_mr *mr = ibv_reg_mr(p.pd, p.buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
    struct ibv_dm *dm = ibv_alloc_dm(p.ctx, &attr);
    struct ibv_mr *dm_mr = dm ? ibv_reg_dm_mr(p.pd, dm, 0, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED) : NULL;
    need(mr && dm_mr);
    struct ibv_sge s[2] = {{4000, wrong ? 97 : 96, mr->lkey}, {100, 64, dm_mr->lkey}};
    struct ibv_send_wr wr = {.wr_id = 4,
                             .sg_list = s,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)p.buf + 8192, p.mr->rkey}},
                       *bad;
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0 && (take(p.scq).status == IBV_WC_SUCCESS) == !wrong);
    wr.sg_list = &s[1];
    wr.opcode = IBV_WR_RDMA_READ;
    if (!wrong)
        need(ibv_post_send(p.qp[0], &wr, &bad) == 0 && take(p.scq).status == IBV_WC_SUCCESS);
    wr.opcode = IBV_WR_RDMA_WRITE;
    if (!wrong)
        need(ibv_post_send(p.qp[0], &wr, &bad) == 0 && take(p.scq).status == IBV_WC_SUCCESS);
    need(ibv_dereg_mr(dm_mr) == 0 && ibv_free_dm(dm) == 0 && ibv_dereg_mr(mr) == 0);
}

static void dead_key_recv(void)
{
    struct ibv_mr *mr = ibv_reg_mr(p.pd, p.buf, 4096, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge s = {(uintptr_t)p.buf, 64, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &s, .num_sge = 1}, *bad;
    if (wrong)
        need(ibv_dereg_mr(mr) == 0);
    need(ibv_post_recv(p.qp[1], &wr, &bad) == 0);
    if (!wrong)
        need(vt_to_state(p.qp[1], IBV_QPS_ERR) == 0 && take(p.rcq).status == IBV_WC_WR_FLUSH_ERR &&
             ibv_dereg_mr(mr) == 0);
}

static void read_fence(void)
{
    need(read_to(0, 8192, 64, 1) == 0);
    need(write_to(32, 16384, 64, IBV_SEND_SIGNALED | (wrong ? 0 : IBV_SEND_FENCE)) == 0);
    need(take(p.scq).status == IBV_WC_SUCCESS && take(p.scq).status == IBV_WC_SUCCESS);
}

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

static const struct {
    const char *name;
    void (*make)(void);
} rules[] = {
    {"send-buffer", send_buffer},
    {"send-buffer-long", send_buffer_long},
    {"send-buffer-wr", send_buffer_wr},
    {"overlap", overlap},
    {"dereg", dereg},
    {"freed", freed},
    {"freed-realloc", freed_realloc},
    {"freed-munmap", freed_munmap},
    {"freed-send", freed_send},
    {"touch", touch},
    {"touch-write", touch_write},
    {"touch-small", touch_small},
    {"touch-read", touch_read_target},
    {"dead-key", dead_key},
    {"dead-key-recv", dead_key_recv},
    {"access", access_right},
    {"access-bounds", access_bounds},
    {"read-fence", read_fence},
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
    const struct ibv_qp_cap cap = {16, 16, 1, 1, 0};
    if (argc != 3)
        return 2;
    wrong = strcmp(argv[2], "wrong") == 0;
    vt_pair_make(&p, vt_open(), &cap);
    vt_connect(&p);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (strcmp(rules[i].name, argv[1]) == 0)
            rules[i].make();
    }
    if (!wrong || strcmp(argv[1], "left") != 0)
        need(vt_pair_end(&p) && ibv_close_device(p.ctx) == 0);
    return vt_failed;
}
