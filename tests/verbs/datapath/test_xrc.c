// SPDX-License-Identifier: BSD-2-Clause
/* XRC traffic. Each message goes to the SRQ that its request names, in whatever process that SRQ is. XRC domains and
 * protection domains separate them. Errors reach all processes that have the target QP open. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/verbs/ends.h"

static struct vt_end a, b; /* a sends; b has the target and SRQs */
static struct ibv_xrcd *domain;
static struct ibv_qp *tgt;

static int srq_recv(struct vt_end *e, struct ibv_srq *srq, uint64_t id, uint32_t at, uint32_t len)
{
    struct ibv_sge s = vt_at(e, at, len);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &s, .num_sge = 1}, *bad;
    return ibv_post_srq_recv(srq, &wr, &bad);
}

static struct ibv_xrcd *anonymous(struct ibv_context *ctx)
{
    struct ibv_xrcd_init_attr x = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    return ibv_open_xrcd(ctx, &x);
}

static struct ibv_qp *make_target(struct ibv_context *ctx, struct ibv_xrcd *x)
{
    struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = x};
    return ibv_create_qp_ex(ctx, &attr);
}

/* A fresh connection: errors have ended the one before. */
static void connect_again(void)
{
    if (a.qp)
        need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(tgt) == 0);
    need((a.qp = vt_end_qp(&a, IBV_QPT_XRC_SEND, NULL, 0)) && (tgt = make_target(b.ctx, domain)));
    vt_link(a.qp, &a.gid, tgt, &b.gid);
}

static int post(enum ibv_wr_opcode op, uint32_t srqn, uint32_t at, uint32_t len, uint32_t remote, uint32_t rkey)
{
    struct ibv_send_wr wr = {.wr_id = 3,
                             .opcode = op,
                             .send_flags = IBV_SEND_SIGNALED,
                             .imm_data = htonl(42),
                             .qp_type.xrc.remote_srqn = srqn,
                             .wr.rdma = {.remote_addr = (uintptr_t)b.buf + remote, .rkey = rkey}};
    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)b.buf + remote;
        wr.wr.atomic.compare_add = 5;
        wr.wr.atomic.rkey = rkey;
    }
    return vt_end_post(&a, &wr, at, len);
}

static void two_queues(void)
{
    uint32_t n1, n2;
    struct ibv_cq *cq2 = ibv_create_cq(b.ctx, 32, NULL, NULL, 0);
    struct ibv_srq *s1 = vt_xrc_srq(b.pd, domain, b.rcq, &n1), *s2 = vt_xrc_srq(b.pd, domain, cq2, &n2);
    connect_again();
    bool right = true;
    for (uint32_t i = 0; i < 60; i++) {
        uint32_t len = i % 3 == 0 ? 5000 + i : 1 + i;
        struct ibv_srq *s = i % 2 ? s1 : s2;
        for (uint32_t k = 0; k < len; k++)
            a.buf[k] = (char)(k * 3 + i);
        memset(b.buf, 0, 8192);
        need(srq_recv(&b, s, i, 0, 8192) == 0);
        need(post(i % 5 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, i % 2 ? n1 : n2, 0, len, 0, 0) == 0);
        struct ibv_wc w = vt_next(a.scq), r = vt_next(i % 2 ? b.rcq : cq2);
        right &= w.status == IBV_WC_SUCCESS && r.status == IBV_WC_SUCCESS && r.wr_id == i && r.byte_len == len &&
                 r.qp_num == tgt->qp_num && !memcmp(a.buf, b.buf, len) &&
                 (i % 5 || ((r.wc_flags & IBV_WC_WITH_IMM) && r.imm_data == htonl(42)));
    }
    ok(right && vt_quiet(b.rcq) && vt_quiet(cq2), "one connection, two SRQs: each message in the one that it names");
    strcpy(a.buf, "written");
    need(srq_recv(&b, s1, 1, 4096, 64) == 0 && post(IBV_WR_RDMA_WRITE_WITH_IMM, n1, 0, 8, 512, b.mr->rkey) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
           !strcmp(b.buf + 512, "written"),
       "a WRITE with immediate data consumes one of the SRQ's requests");
    *(uint64_t *)(void *)(b.buf + 1024) = 37;
    need(post(IBV_WR_ATOMIC_FETCH_AND_ADD, n2, 2048, 8, 1024, b.mr->rkey) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && *(uint64_t *)(void *)(a.buf + 2048) == 37 &&
           *(uint64_t *)(void *)(b.buf + 1024) == 42,
       "an atomic");
    need(post(IBV_WR_RDMA_READ, n2, 3072, 8, 512, b.mr->rkey) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && !strcmp(a.buf + 3072, "written"), "a READ");

    struct ibv_srq_attr limit = {.srq_limit = 2};
    for (uint32_t i = 0; i < 3; i++)
        need(srq_recv(&b, s1, i, 0, 64) == 0);
    need(ibv_modify_srq(s1, &limit, IBV_SRQ_LIMIT) == 0 && post(IBV_WR_SEND, n1, 0, 8, 0, 0) == 0 &&
         post(IBV_WR_SEND, n1, 0, 8, 0, 0) == 0);
    ok(vt_event(b.ctx, IBV_EVENT_SRQ_LIMIT_REACHED, s1), "the limit event of an XRC SRQ");
    struct ibv_wc wc[2];
    need(vt_poll(a.scq, 2, wc) == 2);
    ok(ibv_destroy_srq(s1) == 0 && vt_quiet(b.rcq), "an SRQ that goes takes its completions along");
    need(ibv_destroy_srq(s2) == 0 && ibv_destroy_cq(cq2) == 0);
}

/* A message that names a wrong SRQ is refused once, and changes nothing. */
static void wrong_queue(void)
{
    uint32_t good, foreign;
    struct ibv_xrcd *other = anonymous(b.ctx);
    struct ibv_srq *mine = vt_xrc_srq(b.pd, domain, b.rcq, &good);
    struct ibv_srq *theirs = vt_xrc_srq(b.pd, other, b.rcq, &foreign);
    need(srq_recv(&b, mine, 1, 0, 64) == 0 && srq_recv(&b, theirs, 2, 0, 64) == 0);
    const uint32_t bad[] = {foreign, 0xfffffe, 0};
    const char *const what[] = {"an SRQ of another domain", "a number that no SRQ has", "number 0"};
    for (int i = 0; i < 3; i++) {
        char text[100];
        connect_again();
        need(post(IBV_WR_SEND, bad[i], 0, 8, 0, 0) == 0);
        snprintf(text, sizeof(text), "%s: remote access error, and an event at the target", what[i]);
        struct ibv_wc wc = vt_next(a.scq);
        ok(wc.status == IBV_WC_REM_ACCESS_ERR && vt_event(b.ctx, IBV_EVENT_QP_ACCESS_ERR, tgt), text);
        struct ibv_qp_attr attr;
        struct ibv_qp_init_attr init;
        need(ibv_query_qp(tgt, &attr, IBV_QP_STATE, &init) == 0);
        snprintf(text, sizeof(text), "%s: the target is in ERR", what[i]);
        ok(attr.qp_state == IBV_QPS_ERR, text);
    }
    ok(vt_quiet(b.rcq), "no request was consumed");
    connect_again();
    need(post(IBV_WR_SEND, good, 0, 8, 0, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).wr_id == 1, "the right one still works");
    need(ibv_destroy_srq(mine) == 0 && ibv_destroy_srq(theirs) == 0 && ibv_close_xrcd(other) == 0);
}

/* An SRQ whose CQ has overrun takes no more messages, and their senders get an error. Other SRQs are not affected. */
static void overrun(void)
{
    uint32_t n1, n2;
    struct ibv_cq *small = ibv_create_cq(b.ctx, 1, NULL, NULL, 0);
    need(small);
    struct ibv_srq *s1 = vt_xrc_srq(b.pd, domain, small, &n1), *s2 = vt_xrc_srq(b.pd, domain, b.rcq, &n2);
    int fits = small->cqe, most = fits + 1;
    connect_again();
    for (int i = 0; i < most + 1; i++)
        need(srq_recv(&b, s1, (uint64_t)i, 0, 64) == 0);
    bool sent = true;
    for (int i = 0; i < most; i++) {
        need(post(IBV_WR_SEND, n1, 0, 8, 0, 0) == 0);
        sent &= vt_next(a.scq).status == IBV_WC_SUCCESS;
    }
    ok(sent && vt_event(b.ctx, IBV_EVENT_CQ_ERR, small) && vt_event(b.ctx, IBV_EVENT_SRQ_ERR, s1),
       "the CQ of an XRC SRQ overruns: CQ_ERR, and SRQ_ERR");
    need(post(IBV_WR_SEND, n1, 0, 8, 0, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_REM_OP_ERR && vt_event(b.ctx, IBV_EVENT_QP_FATAL, tgt),
       "the next message for it: remote operational error");
    connect_again();
    need(srq_recv(&b, s2, 7, 0, 64) == 0 && post(IBV_WR_SEND, n2, 0, 8, 0, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).wr_id == 7, "another SRQ of the domain works");
    need(ibv_destroy_srq(s1) == 0 && ibv_destroy_srq(s2) == 0 && ibv_destroy_cq(small) == 0);
}

/* The PD of the SRQ that a packet names decides about keys. */
static void protection(void)
{
    uint32_t n1, n2;
    struct ibv_pd *pd2 = ibv_alloc_pd(b.ctx);
    struct ibv_srq *s1 = vt_xrc_srq(b.pd, domain, b.rcq, &n1), *s2 = vt_xrc_srq(pd2, domain, b.rcq, &n2);
    connect_again();
    strcpy(a.buf, "through");
    need(post(IBV_WR_RDMA_WRITE, n1, 0, 8, 700, b.mr->rkey) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && !strcmp(b.buf + 700, "through"),
       "a key of the named SRQ's PD is good");
    need(post(IBV_WR_RDMA_WRITE, n2, 0, 8, 800, b.mr->rkey) == 0);
    ok(vt_next(a.scq).status == IBV_WC_REM_ACCESS_ERR && b.buf[800] == 0, "through the SRQ of another PD it is not");
    need(ibv_destroy_srq(s1) == 0 && ibv_destroy_srq(s2) == 0 && ibv_dealloc_pd(pd2) == 0);
}

/* Two handles in one process: each gets the event. */
static void openers(void)
{
    uint32_t num;
    struct ibv_srq *srq = vt_xrc_srq(b.pd, domain, b.rcq, &num);
    connect_again();
    int mark;
    struct ibv_qp_open_attr o = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_CONTEXT |
                                              IBV_QP_OPEN_ATTR_TYPE,
                                 .qp_num = tgt->qp_num,
                                 .xrcd = domain,
                                 .qp_context = &mark,
                                 .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_qp *again = ibv_open_qp(b.ctx, &o);
    ok(again && again != tgt && again->qp_context == &mark && again->state == IBV_QPS_RTS, "a second handle");
    need(post(IBV_WR_RDMA_WRITE, num, 0, 8, 0, 12345) == 0 && vt_next(a.scq).status == IBV_WC_REM_ACCESS_ERR);
    struct ibv_async_event e[2];
    need(ibv_get_async_event(b.ctx, &e[0]) == 0);
    struct pollfd f = {.fd = b.ctx->async_fd, .events = POLLIN};
    bool both = poll(&f, 1, 2000) == 1 && ibv_get_async_event(b.ctx, &e[1]) == 0;
    ok(both && e[0].event_type == IBV_EVENT_QP_ACCESS_ERR && e[1].event_type == IBV_EVENT_QP_ACCESS_ERR &&
           e[0].element.qp != e[1].element.qp,
       "each handle gets its own event");
    ibv_ack_async_event(&e[0]);
    if (both)
        ibv_ack_async_event(&e[1]);
    ok(ibv_destroy_qp(again) == 0, "one handle goes");
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    ok(ibv_query_qp(tgt, &attr, IBV_QP_STATE, &init) == 0, "the other still has the QP");
    need(ibv_destroy_srq(srq) == 0);
}

/* Another process: it opens the domain by its file and receives through the target that we made; after we let go of
 * the target, it goes on. */
struct message {
    uint32_t srqn, ok;
};
static void child(int sock, const char *path, bool peer)
{
    struct vt_end e;
    uint32_t qpn, num;
    int fd = open(path, O_RDONLY);
    vt_end_open(&e, peer ? vt_open_peer() : vt_open());
    struct ibv_xrcd_init_attr x = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd};
    struct ibv_xrcd *d = ibv_open_xrcd(e.ctx, &x);
    need(d && read(sock, &qpn, sizeof(qpn)) == sizeof(qpn));
    struct ibv_qp_open_attr o = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_CONTEXT |
                                              IBV_QP_OPEN_ATTR_TYPE,
                                 .qp_num = qpn,
                                 .xrcd = d,
                                 .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_qp *qp = ibv_open_qp(e.ctx, &o);
    struct ibv_srq *srq = vt_xrc_srq(e.pd, d, e.rcq, &num);
    need(qp && srq_recv(&e, srq, 1, 0, 64) == 0 && srq_recv(&e, srq, 2, 64, 64) == 0);
    struct message m = {num, 0};
    need(write(sock, &m, sizeof(m)) == sizeof(m));
    m.ok = 1;
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = vt_next(e.rcq);
        m.ok &= wc.status == IBV_WC_SUCCESS && wc.qp_num == qpn && wc.wr_id == (uint64_t)i + 1 &&
                !strcmp(e.buf + 64 * i, i ? "second" : "first");
        need(write(sock, &m, sizeof(m)) == sizeof(m));
    }
    _exit(0);
}

static void other_process(struct ibv_context *cb)
{
    char path[] = "/tmp/vt-xrc-XXXXXX";
    int fd = mkstemp(path), sock[2];
    struct ibv_xrcd_init_attr x = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = O_CREAT};
    struct ibv_xrcd *shared = ibv_open_xrcd(cb, &x), *saved = domain;
    need(fd >= 0 && shared && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock) == 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child(sock[1], path, cb != a.ctx);
    close(sock[1]);
    domain = shared;
    connect_again();
    struct message m;
    need(write(sock[0], &tgt->qp_num, 4) == 4 && read(sock[0], &m, sizeof(m)) == sizeof(m));
    strcpy(a.buf, "first");
    strcpy(a.buf + 64, "second");
    need(post(IBV_WR_SEND, m.srqn, 0, 8, 0, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && read(sock[0], &m, sizeof(m)) == sizeof(m) && m.ok,
       "our target delivers to another process' SRQ");
    need(ibv_destroy_qp(tgt) == 0);
    need(post(IBV_WR_SEND, m.srqn, 64, 8, 0, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && read(sock[0], &m, sizeof(m)) == sizeof(m) && m.ok,
       "also after we let go of it");
    waitpid(pid, NULL, 0);
    need(ibv_destroy_qp(a.qp) == 0);
    a.qp = NULL;
    domain = saved;
    /* The other process' references go when the daemon sees its end. */
    int rc;
    for (double end = vt_now() + vt_wait_seconds(); (rc = ibv_close_xrcd(shared)) == EBUSY && vt_now() < end;)
        usleep(10000);
    ok(rc == 0, "the domain closes");
    close(fd);
    unlink(path);
}

static void extended(void)
{
    uint32_t num;
    struct ibv_srq *srq = vt_xrc_srq(b.pd, domain, b.rcq, &num);
    struct ibv_qp *qp = vt_end_qp(&a, IBV_QPT_XRC_SEND, NULL, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ);
    struct ibv_qp *t = make_target(b.ctx, domain);
    need(qp && t && srq_recv(&b, srq, 8, 0, 64) == 0);
    vt_link(qp, &a.gid, t, &b.gid);
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(qp);
    strcpy(b.buf + 256, "read me");
    ibv_wr_start(q);
    q->wr_flags = 0;
    ibv_wr_rdma_read(q, b.mr->rkey, (uintptr_t)b.buf + 256);
    ibv_wr_set_xrc_srqn(q, num);
    ibv_wr_set_sge(q, a.mr->lkey, (uintptr_t)a.buf + 256, 8);
    q->wr_id = 6, q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(q);
    ibv_wr_set_xrc_srqn(q, num);
    ibv_wr_set_inline_data(q, "extended", 9);
    ok(ibv_wr_complete(q) == 0 && vt_next(a.scq).wr_id == 6 && vt_next(b.rcq).wr_id == 8 &&
           !strcmp(b.buf, "extended") && !strcmp(a.buf + 256, "read me"),
       "a READ and a SEND by ibv_wr_*");
    need(ibv_destroy_qp(qp) == 0 && ibv_destroy_qp(t) == 0 && ibv_destroy_srq(srq) == 0);
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_needs(ca, VT_XRC);
    vt_needs(cb, VT_XRC);
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    need((domain = anonymous(cb)));
    tgt = NULL;
    two_queues();
    wrong_queue();
    overrun();
    protection();
    openers();
    extended();
    need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(tgt) == 0);
    a.qp = NULL;
    other_process(cb);
    ok(ibv_close_xrcd(domain) == 0 && vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    return vt_both(test);
}
