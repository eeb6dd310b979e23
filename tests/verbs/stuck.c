// SPDX-License-Identifier: BSD-2-Clause
/* Makes QPs that stand still, for tests of `pumice why`, `status` and the log. Usage: stuck SCENE. It prints the
 * numbers of two connected QPs; the first one is stuck. It waits until its input ends.
 *
 * In most scenes packets between the hosts must be lost (pumice fault). The caller sets this up before. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "tests/verbs/ends.h"

#define CROWD 48

static struct vt_end a, b;

static int to_rts(struct ibv_qp *qp, uint8_t timeout)
{
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 7, .rnr_retry = 6, .sq_psn = 1, .max_rd_atomic = 4};
    return ibv_modify_qp(qp, &rts,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

/* Unsignaled ones, so that nothing has to be polled. */
static void write_long(unsigned n, uint32_t length)
{
    for (unsigned i = 0; i < n; i++) {
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_RDMA_WRITE};
        wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
        wr.wr.rdma.rkey = b.mr->rkey;
        need(vt_end_post(&a, &wr, 0, length) == 0);
    }
}

static int post_write(uint64_t id, uint32_t rkey)
{
    struct ibv_send_wr wr = {.wr_id = id, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
    wr.wr.rdma.rkey = rkey;
    return vt_end_post(&a, &wr, 0, 64);
}

static void write_n(unsigned n, uint32_t rkey)
{
    for (unsigned i = 0; i < n; i++)
        need(post_write(i, rkey) == 0);
}

/* Registers a page of the other end, unmaps it, and writes to it. */
static void write_unmapped(void)
{
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(b.pd, page, 4096, VT_ALL_ACCESS);
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_wc wc;

    need(mr && munmap(page, 4096) == 0);
    wr.wr.rdma.remote_addr = (uintptr_t)page;
    wr.wr.rdma.rkey = mr->rkey;
    need(vt_end_post(&a, &wr, 0, 64) == 0 && vt_poll(a.scq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

static void send_one(void)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    need(vt_end_post(&a, &wr, 0, 64) == 0);
}

static void read_n(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED};
        wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
        wr.wr.rdma.rkey = b.mr->rkey;
        need(vt_end_post(&a, &wr, 0, 64) == 0);
    }
}

static void fence(void)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE};
    wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
    wr.wr.rdma.rkey = b.mr->rkey;
    read_n(1);
    need(vt_end_post(&a, &wr, 0, 64) == 0);
}

static void drain(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};
    write_n(1, b.mr->rkey);
    usleep(50000);
    need(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) == 0);
    write_n(1, b.mr->rkey);
}

/* Twenty requests at once on a completion queue with room for few: a program that does not count its completions. */
static void overrun(void)
{
    write_n(16, b.mr->rkey);
}

/* Two XRC messages: one for an SRQ without a receive request, behind it one for an SRQ that has one. */
static void xrc(void)
{
    struct ibv_xrcd_init_attr x = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    struct ibv_xrcd *domain = ibv_open_xrcd(b.ctx, &x);
    struct ibv_qp_init_attr_ex target = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain};
    struct ibv_qp_attr slow = {.min_rnr_timer = 0}; /* 655 ms */
    uint32_t num[2];

    need(domain && (a.qp = vt_end_qp(&a, IBV_QPT_XRC_SEND, NULL, 0)) && (b.qp = ibv_create_qp_ex(b.ctx, &target)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    need(ibv_modify_qp(b.qp, &slow, IBV_QP_MIN_RNR_TIMER) == 0);
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_srq *srq = vt_xrc_srq(b.pd, domain, b.rcq, &num[i]);
        struct ibv_sge s = vt_at(&b, 0, 64);
        struct ibv_recv_wr wr = {.sg_list = &s, .num_sge = 1}, *bad;

        need(i == 0 || ibv_post_srq_recv(srq, &wr, &bad) == 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .qp_type.xrc.remote_srqn = num[i]};
        need(vt_end_post(&a, &wr, 0, 64) == 0);
    }
}

/* Enough other queue pairs that send to the same host that its socket's buffer is spoken for. */
static void crowd(void)
{
    struct vt_end mine = a;
    for (unsigned i = 0; i < CROWD; i++) {
        need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)));
        need(vt_to_init(a.qp) == 0 && vt_to_rtr_at(a.qp, b.qp->qp_num, &b.gid) == 0);
        need(to_rts(a.qp, 20) == 0);
        write_long(4, 1024);
    }
    a = mine;
    usleep(100000);
    write_long(4, 1024);
}

/* The rings of this program's queue pairs are a "pumice-qp" of its memory each, which begins with the tail of the send
 * queue. */
static _Atomic uint32_t *tails[4];
static unsigned find_tails(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned n = 0;

    need(maps);
    while (fgets(line, sizeof(line), maps) && n < 4) {
        unsigned long at;
        if (strstr(line, "pumice-qp") && sscanf(line, "%lx", &at) == 1)
            tails[n++] = (_Atomic uint32_t *)at;
    }
    fclose(maps);
    return n;
}

/* Three requests more than were posted, without a word to the daemon. */
static void unread(void)
{
    for (unsigned i = find_tails(); i-- > 0;)
        atomic_store(tails[i], 3);
}

/* While one thread writes nonsense into the rings, the other lets the daemon look at them. */
static void *scribble(void *stop)
{
    unsigned n = find_tails();

    while (!atomic_load((_Atomic bool *)stop))
        for (unsigned i = 0; i < n; i++)
            atomic_store(tails[i], 0x7fffffff);
    return NULL;
}
static void nonsense(void)
{
    struct pollfd f = {.fd = a.ctx->async_fd, .events = POLLIN};
    _Atomic bool stop = false;
    pthread_t thread;

    need(pthread_create(&thread, NULL, scribble, &stop) == 0);
    usleep(50000);
    for (unsigned i = 0; i < 5000 && poll(&f, 1, 2) == 0; i++) {
        struct ibv_wc wc;
        post_write(i, b.mr->rkey); /* unless the queue is full */
        ibv_poll_cq(a.scq, 1, &wc);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

/* timeout 20 is 4.3 s: nothing fails while the caller looks. */
static void connect_both(uint8_t timeout)
{
    struct ibv_qp_attr slow = {.min_rnr_timer = 0}; /* 655 ms */

    need(vt_to_init(a.qp) == 0 && vt_to_init(b.qp) == 0);
    need(vt_to_rtr_at(a.qp, b.qp->qp_num, &b.gid) == 0 && vt_to_rtr_at(b.qp, a.qp->qp_num, &a.gid) == 0);
    need(to_rts(a.qp, timeout) == 0 && to_rts(b.qp, timeout) == 0);
    need(ibv_modify_qp(b.qp, &slow, IBV_QP_MIN_RNR_TIMER) == 0);
}

int main(int argc, char **argv)
{
    const char *scene = argc > 1 ? argv[1] : "idle";
    struct ibv_context *here = vt_open(), *there = vt_open_peer();
    char c;

    vt_end_open(&a, here);
    vt_end_open(&b, there ? there : here);
    if (strcmp(scene, "overrun") == 0) {
        need(ibv_destroy_cq(a.scq) == 0);
        need((a.scq = ibv_create_cq(a.ctx, 2, NULL, NULL, 0)));
    }
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    if (strcmp(scene, "xrc") == 0)
        xrc();
    else if (strcmp(scene, "new") != 0)
        connect_both(strcmp(scene, "retry") == 0 ? 14 : 20);
    if (strcmp(scene, "rnr") == 0)
        send_one();
    else if (strcmp(scene, "ack") == 0)
        write_n(3, b.mr->rkey);
    else if (strcmp(scene, "gone") == 0 && ibv_destroy_qp(b.qp) == 0)
        write_n(1, b.mr->rkey);
    else if (strcmp(scene, "window") == 0)
        write_n(8, b.mr->rkey);
    else if (strcmp(scene, "reads") == 0)
        read_n(12);
    else if (strcmp(scene, "fence") == 0)
        fence();
    else if (strcmp(scene, "drain") == 0)
        drain();
    else if (strcmp(scene, "refused") == 0)
        write_n(1, b.mr->rkey ^ 0x55);
    else if (strcmp(scene, "unmapped") == 0)
        write_unmapped();
    else if (strcmp(scene, "unpolled") == 0)
        write_n(5, b.mr->rkey);
    else if (strcmp(scene, "overrun") == 0)
        overrun();
    else if (strcmp(scene, "crowd") == 0)
        crowd();
    else if (strcmp(scene, "marked") == 0)
        write_long(16, VT_BUF);
    else if (strcmp(scene, "nonsense") == 0)
        nonsense();
    else if (strcmp(scene, "unread") == 0)
        unread();
    if (strcmp(scene, "retry") == 0) {
        write_n(1, b.mr->rkey);
        usleep(200000);
    }
    printf("0x%06x 0x%06x 0x%x\n", a.qp->qp_num, strcmp(scene, "gone") == 0 ? 0 : b.qp->qp_num, b.mr->rkey ^ 0x55);
    fflush(stdout);
    while (read(0, &c, 1) > 0)
        ;
    return 0;
}
