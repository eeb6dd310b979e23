// SPDX-License-Identifier: BSD-2-Clause
/* Mistakes with memory that the checker finds, and the right way beside each. tests/e2e/cli/check.sh runs them one by one.
 * Usage: memory NAME wrong|right */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/verbs/checker/mistake.h"

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

static void post_atomic(uint32_t to, uint64_t id)
{
    struct ibv_sge s = vt_sge(&p, to, 8);
    struct ibv_send_wr wr = {.wr_id = id,
                             .sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.atomic = {.remote_addr = (uintptr_t)p.buf + 8192,
                                           .compare_add = 1,
                                           .rkey = p.mr->rkey}},
                       *bad;
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0);
}

/* The result of an atomic, which shares its page with other data. There are more targets than debug registers. */
static void touch_atomic(void)
{
    volatile uint64_t *result = (volatile uint64_t *)(p.buf + 64);
    int null = open("/dev/null", O_WRONLY);

    for (uint32_t i = 0; i < 8; i++)
        need(vt_recv(&p, 1, i, 4096 + 64 * i, 8) == 0);
    for (uint64_t i = 0; i < 100; i++) {
        p.buf[63] = p.buf[72] = 9;
        post_atomic(64, i);
        if (wrong && i == 42)
            need(*result <= 42); /* the device may have answered */
        if (wrong && i == 43)
            *result = 1000;
        p.buf[63]++; /* its neighbours */
        need(p.buf[72] == 9 && write(null, p.buf, 128) == 128);
        need(take(p.scq).status == IBV_WC_SUCCESS);
        need(i == 43 || *result == i);
    }
    close(null);
}

static void *touch_in_thread(void *arg)
{
    volatile char *buf = arg;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    if (wrong)
        buf[300 + 99]++;
    return NULL;
}

/* The last byte of a small target, by a thread without signals. The program has a handler of its own. */
static void touch_thread(void)
{
    pthread_t thread;

    signal(SIGTRAP, SIG_DFL);
    need(read_to(300, 8192, 100, 6) == 0);
    need(pthread_create(&thread, NULL, touch_in_thread, p.buf) == 0 && pthread_join(thread, NULL) == 0);
    need(take(p.scq).status == IBV_WC_SUCCESS);
}

/* A word in the middle of a small target: which one is watched changes. */
static void touch_inner(void)
{
    for (uint64_t i = 0; i < 100; i++) {
        need(read_to(300, 8192, 100, i) == 0);
        if (wrong)
            p.buf[350]++;
        need(take(p.scq).status == IBV_WC_SUCCESS);
        p.buf[350]++;
    }
}

/* The device no longer fills a target: its queue pair has failed, and then its memory belongs to somebody else. */
static void touch_done(void)
{
    char *buf = malloc(200);
    struct ibv_mr *mr = ibv_reg_mr(p.pd, buf, 200, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge s = {(uintptr_t)buf, 200, mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &s, .num_sge = 1}, *bad;

    need(ibv_post_recv(p.qp[1], &wr, &bad) == 0 && vt_to_state(p.qp[1], IBV_QPS_ERR) == 0);
    memset(buf, 1, 200);
    need(ibv_post_recv(p.qp[1], &wr, &bad) == 0);
    free(buf);
    memset(buf = malloc(200), 2, 200); /* mostly the same memory */
    free(buf);
    need(take(p.rcq).status == IBV_WC_WR_FLUSH_ERR && take(p.rcq).status == IBV_WC_WR_FLUSH_ERR);
    need(ibv_dereg_mr(mr) == 0);
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

static const struct mistake mistakes[] = {
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
    {"touch-atomic", touch_atomic},
    {"touch-thread", touch_thread},
    {"touch-inner", touch_inner},
    {"touch-done", touch_done},
    {"dead-key", dead_key},
    {"dead-key-recv", dead_key_recv},
    {"access", access_right},
    {"access-bounds", access_bounds},
    {"read-fence", read_fence},
};

int main(int argc, char **argv)
{
    const struct mistake *m = mistake_begin(argc, argv, mistakes, sizeof(mistakes) / sizeof(mistakes[0]));
    m->make();
    return mistake_end();
}
