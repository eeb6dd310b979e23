// SPDX-License-Identifier: BSD-2-Clause
/* Completion counters, as programs call them that were built with a later rdma-core. */
#include <sys/wait.h>

#include "tests/verbs/ends.h"
#include "tests/verbs/later.h"

enum { REQUESTS, BYTES };

static struct vt_end a, b;

static struct ibv_comp_cntr *create(struct ibv_context *ctx, uint32_t type)
{
    struct vb_comp_cntr_attr_v65 attr = {.type = type};
    return ibv_create_comp_cntr(ctx, (struct ibv_comp_cntr_init_attr *)(void *)&attr);
}

static int attach(struct ibv_qp *qp, struct ibv_comp_cntr *c, uint32_t ops)
{
    struct vb_attach_comp_cntr_v65 attr = {.ops = ops};
    return ibv_qp_attach_comp_cntr(qp, c, (struct ibv_qp_attach_comp_cntr_attr *)(void *)&attr);
}

static uint64_t done(struct ibv_comp_cntr *c)
{
    uint64_t v = 0;
    need(ibv_read_comp_cntr(c, &v) == 0);
    return v;
}
static uint64_t failed(struct ibv_comp_cntr *c)
{
    uint64_t v = 0;
    need(ibv_read_err_comp_cntr(c, &v) == 0);
    return v;
}

/* Reads until the counter has the value, or half a minute has passed. */
static bool reaches(uint64_t (*read_one)(struct ibv_comp_cntr *), struct ibv_comp_cntr *c, uint64_t value)
{
    double end = vt_now() + 30;
    while (read_one(c) < value && vt_now() < end)
        ;
    return read_one(c) == value;
}

/* --- the object -------------------------------------------------------------------------------- */

static void caps(struct ibv_context *ctx)
{
    struct {
        struct vb_comp_cntr_caps_v65 known;
        uint64_t later;
    } c = {.later = 1};
    struct ibv_comp_cntr_caps *out = (struct ibv_comp_cntr_caps *)(void *)&c;
    ok(_ibv_query_comp_cntr_caps(ctx, out, sizeof(c)) == 0 && c.known.max_value == UINT64_MAX &&
           c.known.ops == VB_COMP_CNTR_ALL && c.known.max_counters > 0 && c.later == 0,
       "the capabilities, with zeros for fields of later versions");
    ok(_ibv_query_comp_cntr_caps(ctx, out, 8) == EINVAL, "a struct that is too short: EINVAL");
    struct ibv_comp_cntr *all[4096];
    uint32_t n = 0;
    while (n < 4096 && (all[n] = create(ctx, REQUESTS)))
        n++;
    ok(n == c.known.max_counters && errno == ENOMEM, "as many as the capabilities say, then ENOMEM");
    while (n > 0)
        need(ibv_destroy_comp_cntr(all[--n]) == 0);
}

static void values(struct ibv_context *ctx)
{
    struct vb_comp_cntr_attr_v65 bad[] = {{.comp_mask = 1}, {.type = 2}, {.flags = 1}};
    bool refused = true;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        refused &= !ibv_create_comp_cntr(ctx, (struct ibv_comp_cntr_init_attr *)(void *)&bad[i]) && errno == EOPNOTSUPP;
    ok(refused, "attributes that are not known: EOPNOTSUPP");
    struct ibv_comp_cntr *c = create(ctx, REQUESTS);
    need(c);
    ok(done(c) == 0 && failed(c) == 0, "a new counter is 0");
    ok(ibv_set_comp_cntr(c, 7) == 0 && ibv_inc_comp_cntr(c, 3) == 0 && done(c) == 10 && failed(c) == 0, "set and inc");
    ok(ibv_set_err_comp_cntr(c, 5) == 0 && ibv_inc_err_comp_cntr(c, 4) == 0 && failed(c) == 9 && done(c) == 10,
       "set_err and inc_err");
    ok(ibv_set_comp_cntr(c, UINT64_MAX) == 0 && done(c) == UINT64_MAX && ibv_inc_comp_cntr(c, 1) == 0 && done(c) == 0,
       "after max_value comes 0");
    ok(ibv_destroy_comp_cntr(c) == 0, "destroyed");
}

static void attaching(struct ibv_context *ctx)
{
    struct ibv_comp_cntr *c = create(ctx, REQUESTS), *other = create(ctx, REQUESTS);
    struct vb_attach_comp_cntr_v65 later = {.comp_mask = 1, .ops = VB_COMP_CNTR_SEND};
    need(c && other && (a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    ok(attach(a.qp, c, 0) == EINVAL, "to no requests: EINVAL");
    ok(attach(a.qp, c, 64) == EOPNOTSUPP, "to unknown requests: EOPNOTSUPP");
    ok(ibv_qp_attach_comp_cntr(a.qp, c, (struct ibv_qp_attach_comp_cntr_attr *)(void *)&later) == EOPNOTSUPP,
       "with an unknown comp_mask: EOPNOTSUPP");
    ok(attach(a.qp, c, VB_COMP_CNTR_SEND | VB_COMP_CNTR_READ) == 0, "in RESET");
    ok(attach(a.qp, other, VB_COMP_CNTR_READ | VB_COMP_CNTR_WRITE) == EBUSY, "a READ is counted already: EBUSY");
    need(vt_to_init(a.qp) == 0);
    ok(attach(a.qp, other, VB_COMP_CNTR_WRITE) == 0, "in INIT");
    need(vt_to_init(b.qp) == 0 && vt_to_rtr_at(a.qp, b.qp->qp_num, &b.gid) == 0);
    ok(attach(a.qp, other, VB_COMP_CNTR_RECV) == EINVAL, "in RTR: EINVAL");
    ok(ibv_destroy_comp_cntr(c) == EBUSY, "it can't be destroyed while it is attached: EBUSY");
    need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    ok(ibv_destroy_comp_cntr(c) == 0 && ibv_destroy_comp_cntr(other) == 0, "but after the QP");
    a.qp = b.qp = NULL;
}

/* --- traffic ----------------------------------------------------------------------------------- */

static void post(enum ibv_wr_opcode opcode, uint32_t rkey, uint32_t len)
{
    struct ibv_send_wr wr = {.opcode = opcode};
    wr.wr.rdma.rkey = rkey;
    wr.wr.rdma.remote_addr = (uintptr_t)b.buf;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.remote_addr = (uintptr_t)b.buf;
    }
    need(vt_end_post(&a, &wr, 0, len) == 0);
}

struct counters {
    struct ibv_comp_cntr *sends, *recvs, *reads, *writes, *remote;
};

static void make_counters(struct counters *c)
{
    need((c->sends = create(a.ctx, REQUESTS)) && (c->reads = create(a.ctx, REQUESTS)) &&
         (c->writes = create(a.ctx, BYTES)) && (c->recvs = create(b.ctx, REQUESTS)) &&
         (c->remote = create(b.ctx, BYTES)));
    need(attach(a.qp, c->sends, VB_COMP_CNTR_SEND) == 0 && attach(a.qp, c->reads, VB_COMP_CNTR_READ) == 0 &&
         attach(a.qp, c->writes, VB_COMP_CNTR_WRITE) == 0 && attach(b.qp, c->recvs, VB_COMP_CNTR_RECV) == 0 &&
         attach(b.qp, c->remote, VB_COMP_CNTR_REMOTE_WRITE | VB_COMP_CNTR_REMOTE_READ) == 0);
}

static bool end_counters(const struct counters *c)
{
    return !ibv_destroy_comp_cntr(c->sends) && !ibv_destroy_comp_cntr(c->recvs) && !ibv_destroy_comp_cntr(c->reads) &&
           !ibv_destroy_comp_cntr(c->writes) && !ibv_destroy_comp_cntr(c->remote);
}

/* The requests are not signaled, and nobody polls. */
static void traffic(void)
{
    struct counters c;
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    make_counters(&c);
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    for (int i = 0; i < 3; i++)
        need(vt_end_recv(&b, 1, 4096, 64) == 0);
    memset(b.buf, 0, 10000);
    memset(a.buf, 0x5a, 10000);
    post(IBV_WR_SEND, 0, 10);
    post(IBV_WR_SEND, 0, 20);
    post(IBV_WR_RDMA_WRITE, b.mr->rkey, 10000);
    bool arrived = reaches(done, c.remote, 10000);
    ok(arrived && b.buf[0] == 0x5a && b.buf[9999] == 0x5a, "the peer counts the bytes of a WRITE that it can read");
    post(IBV_WR_RDMA_WRITE_WITH_IMM, b.mr->rkey, 500);
    post(IBV_WR_RDMA_READ, b.mr->rkey, 2000);
    post(IBV_WR_ATOMIC_FETCH_AND_ADD, b.mr->rkey, 8);
    post(IBV_WR_RDMA_READ, b.mr->rkey, 100);
    ok(reaches(done, c.reads, 2), "two READs");
    ok(done(c.sends) == 2 && done(c.writes) == 10500, "and before them two SENDs and 10,500 bytes of WRITEs");
    ok(done(c.recvs) == 3 && done(c.remote) == 12600, "the peer has counted its receives, WRITEs and READs");
    ok(vt_quiet(a.scq) && failed(c.sends) + failed(c.reads) + failed(c.recvs) + failed(c.remote) == 0,
       "without a completion or an error");
    post(IBV_WR_RDMA_WRITE, b.mr->rkey ^ 1, 10);
    post(IBV_WR_SEND, 0, 10);
    ok(reaches(failed, c.sends, 1) && failed(c.writes) == 1 && done(c.writes) == 10500,
       "a WRITE that fails, and a SEND that is flushed, are errors");
    ok(failed(c.remote) == 1, "the peer counts the WRITE that it refuses");
    need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    a.qp = b.qp = NULL;
    ok(done(c.recvs) == 3, "a counter outlives its QPs");
    ok(end_counters(&c), "and is destroyed after them");
}

static void datagrams(void)
{
    struct ibv_comp_cntr *sends = create(a.ctx, REQUESTS), *bytes = create(b.ctx, BYTES);
    need(sends && bytes && (a.qp = vt_end_qp(&a, IBV_QPT_UD, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_UD, NULL, 0)));
    need(attach(a.qp, sends, VB_COMP_CNTR_SEND) == 0 && attach(b.qp, bytes, VB_COMP_CNTR_RECV) == 0);
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.dgid = b.gid, .hop_limit = 64}};
    struct ibv_ah *ah = ibv_create_ah(a.pd, &to);
    need(ah && vt_end_recv(&b, 1, 0, 2048) == 0);
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
                             .wr.ud = {.ah = ah, .remote_qpn = b.qp->qp_num, .remote_qkey = VT_QKEY}};
    need(vt_end_post(&a, &wr, 0, 300) == 0);
    ok(reaches(done, sends, 1) && reaches(done, bytes, 300),
       "a datagram of 300 bytes, which the GRH does not count to");
    need(ibv_destroy_ah(ah) == 0 && ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    need(ibv_destroy_comp_cntr(sends) == 0 && ibv_destroy_comp_cntr(bytes) == 0);
    a.qp = b.qp = NULL;
}

/* --- forks ------------------------------------------------------------------------------------- */

static void child(struct ibv_context *ctx)
{
    struct ibv_comp_cntr *c = create(ctx, REQUESTS);
    need(c && ibv_set_comp_cntr(c, 3) == 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        uint64_t v;
        _exit(ibv_read_comp_cntr(c, &v) == EIO && ibv_set_comp_cntr(c, 4) == EIO && ibv_destroy_comp_cntr(c) == 0 ? 0
                                                                                                                  : 1);
    }
    int status;
    ok(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0,
       "the child of a fork can't read or change it: EIO");
    ok(done(c) == 3 && ibv_destroy_comp_cntr(c) == 0, "and it is still the parent's");
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    struct vb_comp_cntr_caps_v65 any;
    if (_ibv_query_comp_cntr_caps(ca, (struct ibv_comp_cntr_caps *)(void *)&any, sizeof(any)))
        vt_skip("the device has no completion counters");
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    caps(ca);
    values(ca);
    attaching(ca);
    traffic();
    datagrams();
    child(ca);
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    need_function(ibv_create_comp_cntr);
    return vt_both(test);
}
