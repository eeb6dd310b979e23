// SPDX-License-Identifier: BSD-2-Clause
/* The process that made an XRC target is killed, or destroys it. A killed maker leaves the target to its domain: messages go on. With the
 * last reference to the domain the target ends, and its initiator gets no answer any more. A maker that destroys the target ends it at once,
 * because nobody else has opened it. */
#include <fcntl.h>
#include <sys/wait.h>

#include "tests/verbs/ends.h"

#define BEFORE 50u /* messages while the maker lives */
#define AFTER 50u

static struct vt_end a, b; /* a has the initiator; b has the SRQ */
static char path[] = "/tmp/vt-maker-XXXXXX";

static struct ibv_xrcd *open_domain(struct ibv_context *ctx, int oflags)
{
    int fd = open(path, O_RDONLY);
    struct ibv_xrcd_init_attr x = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = oflags};
    struct ibv_xrcd *domain = ibv_open_xrcd(ctx, &x);
    close(fd);
    need(domain);
    return domain;
}

/* The maker: connects the target to the initiator whose number it reads, and writes the number of the target. Then it waits for a byte, and
 * destroys the target. It is linked to nothing of the parent. */
static void maker(int in, int out, bool peer)
{
    struct ibv_context *ctx = peer ? vt_open_peer() : vt_open();
    struct ibv_xrcd *domain = open_domain(ctx, 0);
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain};
    struct ibv_qp *target = ibv_create_qp_ex(ctx, &attr);
    uint32_t initiator;
    char byte;
    need(target && write(out, &target->qp_num, 4) == 4 && read(in, &initiator, 4) == 4);
    need(vt_to_init(target) == 0 && vt_to_rtr_at(target, initiator, &a.gid) == 0);
    need(write(out, "r", 1) == 1);
    if (read(in, &byte, 1) == 1)
        need(ibv_destroy_qp(target) == 0 && write(out, "d", 1) == 1);
    pause();
}

struct child {
    pid_t pid;
    int in, out;
};
/* Starts a maker, and connects the initiator with its target. */
static struct child start(void)
{
    int down[2], up[2];
    uint32_t target;
    char ready;
    /* Few retries: the end is quick. */
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 2, .rnr_retry = 7, .sq_psn = 1, .max_rd_atomic = 1};
    need(pipe(down) == 0 && pipe(up) == 0);
    fflush(stdout);
    struct child c = {.pid = fork(), .in = up[0], .out = down[1]};
    if (c.pid == 0) {
        maker(down[0], up[1], a.ctx != b.ctx);
        _exit(1);
    }
    close(down[0]);
    close(up[1]);
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_XRC_SEND, NULL, 0)) && read(c.in, &target, 4) == 4);
    need(write(c.out, &a.qp->qp_num, 4) == 4 && read(c.in, &ready, 1) == 1);
    need(vt_to_init(a.qp) == 0 && vt_to_rtr_at(a.qp, target, &b.gid) == 0);
    need(ibv_modify_qp(a.qp, &rts,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0);
    return c;
}

static void end(struct child *c)
{
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
    close(c->in);
    close(c->out);
}

static enum ibv_wc_status send_to(uint32_t srqn)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .qp_type.xrc.remote_srqn = srqn};
    need(vt_end_post(&a, &wr, 0, 8) == 0);
    return vt_next(a.scq).status;
}

static bool messages(unsigned n, struct ibv_srq *srq, uint32_t srqn)
{
    bool right = true;
    for (unsigned i = 0; i < n && right; i++) {
        struct ibv_sge s = vt_at(&b, 0, 64);
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &s, .num_sge = 1}, *bad;
        *(unsigned *)(void *)a.buf = i + n;
        need(ibv_post_srq_recv(srq, &wr, &bad) == 0);
        right = send_to(srqn) == IBV_WC_SUCCESS && vt_next(b.rcq).wr_id == i && *(unsigned *)(void *)b.buf == i + n;
    }
    return right;
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    uint32_t srqn;
    char done;
    vt_needs(ca, VT_XRC);
    vt_needs(cb, VT_XRC);
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    struct ibv_xrcd *domain = open_domain(cb, O_CREAT);
    struct ibv_srq *srq = vt_xrc_srq(b.pd, domain, b.rcq, &srqn);
    struct child killed = start();
    need(messages(BEFORE, srq, srqn));
    end(&killed);
    ok(messages(AFTER, srq, srqn), "the maker of the target is killed: its messages go on");
    need(ibv_destroy_srq(srq) == 0);
    ok(ibv_close_xrcd(domain) == 0, "the domain is closed by its last opener");
    ok(send_to(srqn) == IBV_WC_RETRY_EXC_ERR, "with it the target ends: the initiator's retries run out");

    domain = open_domain(cb, O_CREAT);
    srq = vt_xrc_srq(b.pd, domain, b.rcq, &srqn);
    struct child destroys = start();
    need(messages(BEFORE, srq, srqn));
    need(write(destroys.out, "x", 1) == 1 && read(destroys.in, &done, 1) == 1);
    ok(send_to(srqn) == IBV_WC_RETRY_EXC_ERR,
       "the maker destroys the target: it ends, though its domain is still open");
    end(&destroys);
    need(ibv_destroy_srq(srq) == 0 && ibv_close_xrcd(domain) == 0);
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    int fd = mkstemp(path);
    need(fd >= 0);
    close(fd);
    int rc = vt_both(test);
    unlink(path);
    return rc;
}
