// SPDX-License-Identifier: BSD-2-Clause
/* Small messages: they carry the bytes of the time of their post, they keep the order of fences, and their keys are
 * checked as for any message. */
#include "tests/verbs/ends.h"
#include "tests/verbs/stop.h"

#define AT_B 4096u /* offset in the buffer of b */
#define MOST 256u /* bytes that are copied when they are posted */

static struct vt_end a, b;

static void connect_again(uint64_t ops)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, ops)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
}

static bool holds(const char *at, char c, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        if (at[i] != c)
            return false;
    return true;
}

/* --- the time of the copy --------------------------------------------------------------------- */

/* Posts a message, and changes its bytes before the daemon can see it. Does it arrive as it was posted? */
static bool is_copied(pid_t daemon, enum ibv_wr_opcode opcode, uint32_t len, bool new_api)
{
    struct ibv_send_wr wr = {.opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = (uintptr_t)b.buf + AT_B;
    wr.wr.rdma.rkey = b.mr->rkey;
    memset(a.buf, 'o', len);
    memset(b.buf + AT_B, 0, len);
    need(vt_end_recv(&b, 1, AT_B, len) == 0);
    vt_stop_daemon(daemon);
    if (new_api) {
        struct ibv_qp_ex *q = ibv_qp_to_qp_ex(a.qp);
        ibv_wr_start(q);
        q->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send(q);
        ibv_wr_set_sge(q, a.mr->lkey, (uintptr_t)a.buf, len);
        need(ibv_wr_complete(q) == 0);
    } else {
        struct ibv_sge s[2] = {vt_at(&a, 0, len / 2), vt_at(&a, len / 2, len - len / 2)};
        struct ibv_send_wr *bad;
        wr.sg_list = s;
        wr.num_sge = 2;
        need(ibv_post_send(a.qp, &wr, &bad) == 0);
    }
    memset(a.buf, 'n', len);
    need(kill(daemon, SIGCONT) == 0);
    need(vt_next(a.scq).status == IBV_WC_SUCCESS);
    need(opcode == IBV_WR_RDMA_WRITE || vt_next(b.rcq).status == IBV_WC_SUCCESS);
    return holds(b.buf + AT_B, 'o', len);
}

static void copied_when_posted(void)
{
    pid_t daemon = atoi(getenv("VT_DAEMON_PID"));
    connect_again(IBV_QP_EX_WITH_SEND);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    need(ibv_query_qp(a.qp, &attr, IBV_QP_CAP, &init) == 0);
    uint32_t len = init.cap.max_inline_data < MOST ? init.cap.max_inline_data : MOST;
    ok(is_copied(daemon, IBV_WR_SEND, 8, false) && is_copied(daemon, IBV_WR_SEND, len, false), "SENDs");
    ok(is_copied(daemon, IBV_WR_SEND_WITH_IMM, 33, false), "a SEND with immediate data");
    ok(is_copied(daemon, IBV_WR_SEND, 8, true), "a SEND of ibv_wr_send");
    ok(!is_copied(daemon, IBV_WR_SEND, MOST + 1, false), "a longer SEND is not copied");
    ok(is_copied(daemon, IBV_WR_RDMA_WRITE, len, false), "a WRITE");
}

/* --- fences ----------------------------------------------------------------------------------- */

/* A READ, and a SEND of what it has read. */
static void fenced(void)
{
    connect_again(0);
    for (int round = 0; round < 100; round++) {
        struct ibv_send_wr read = {.opcode = IBV_WR_RDMA_READ}, send = {.opcode = IBV_WR_SEND};
        read.wr.rdma.remote_addr = (uintptr_t)b.buf;
        read.wr.rdma.rkey = b.mr->rkey;
        send.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
        b.buf[0] = (char)round;
        a.buf[0] = -1;
        need(vt_end_recv(&b, 1, AT_B, 1) == 0);
        need(vt_end_post(&a, &read, 0, 1) == 0 && vt_end_post(&a, &send, 0, 1) == 0);
        need(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).status == IBV_WC_SUCCESS);
        if (b.buf[AT_B] != (char)round) {
            ok(false, "a fenced SEND carries what the READ before it has read");
            return;
        }
    }
    ok(true, "a fenced SEND carries what the READ before it has read");
}

/* --- keys ------------------------------------------------------------------------------------- */

/* The status of a SEND of eight bytes. */
static int status_of(uint64_t addr, uint32_t lkey)
{
    struct ibv_sge s = {.addr = addr, .length = 8, .lkey = lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &s, .num_sge = 1}, *bad;
    connect_again(0);
    need(vt_end_recv(&b, 1, AT_B, 8) == 0);
    need(ibv_post_send(a.qp, &wr, &bad) == 0);
    return vt_next(a.scq).status;
}

static void keys(void)
{
    uint64_t at = (uintptr_t)a.buf;
    ok(status_of(at + VT_BUF - 8, a.mr->lkey) == IBV_WC_SUCCESS, "the last bytes of a region");
    ok(status_of(at + VT_BUF - 7, a.mr->lkey) == IBV_WC_LOC_PROT_ERR, "a byte behind the region");
    ok(status_of(at - 1, a.mr->lkey) == IBV_WC_LOC_PROT_ERR, "a byte before the region");
    ok(status_of(8, a.mr->lkey) == IBV_WC_LOC_PROT_ERR, "an address where nothing is");

    struct ibv_pd *other = ibv_alloc_pd(a.ctx);
    struct ibv_mr *mr = other ? ibv_reg_mr(other, a.buf, 64, 0) : NULL;
    need(mr);
    ok(status_of(at, mr->lkey) == IBV_WC_LOC_PROT_ERR, "a region of another protection domain");
    need(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(other) == 0);

    need((mr = ibv_reg_mr(a.pd, a.buf, 64, 0)));
    uint32_t lkey = mr->lkey;
    need(ibv_dereg_mr(mr) == 0);
    ok(status_of(at, lkey) == IBV_WC_LOC_PROT_ERR, "a region that was deregistered");

    need((mr = ibv_reg_mr(a.pd, a.buf + 64, 64, IBV_ACCESS_ZERO_BASED)));
    memset(a.buf + 64, 'z', 64);
    ok(status_of(8, mr->lkey) == IBV_WC_SUCCESS && vt_next(b.rcq).status == IBV_WC_SUCCESS &&
           holds(b.buf + AT_B, 'z', 8),
       "a region whose addresses begin with 0");
    need(ibv_dereg_mr(mr) == 0);
}

static void both(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    if (ca == cb && vt_is_pumice() && getenv("VT_DAEMON_PID"))
        copied_when_posted();
    fenced();
    keys();
    ok(vt_end_close(&a) && vt_end_close(&b), "everything is destroyed");
}

int main(void)
{
    return vt_both(both);
}
