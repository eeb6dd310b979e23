// SPDX-License-Identifier: BSD-2-Clause
/* Programs are killed while they have objects of every kind and traffic under way. After each death the daemon has no
 * object left and as many descriptors as before, and the peer's request fails: for want of an answer, or by a NAK if a packet
 * met the memory of the dying program before the daemon knew of its death. VT_KILLS: how many
 * (20). Needs daemons of its own: VT_DAEMON_PID. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

#include "tests/verbs/ends.h"

struct card {
    uint32_t qpn, rkey;
    uint64_t addr;
    union ibv_gid gid;
};

static struct vt_end peer; /* the survivor, on the other host */

/* --- the program that is killed */

static struct ibv_srq *make_srq(struct vt_end *e, enum ibv_srq_type type, struct ibv_xrcd *xrcd)
{
    struct ibv_cq_init_attr_ex ca = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO};
    struct ibv_srq_init_attr_ex a = {.attr = {.max_wr = 16, .max_sge = 1},
                                     .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
                                     .srq_type = type,
                                     .pd = e->pd,
                                     .cq = e->rcq,
                                     .xrcd = xrcd,
                                     .tm_cap = {16, 16}};
    if (type != IBV_SRQT_BASIC)
        a.comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
    if (type == IBV_SRQT_XRC)
        a.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
    if (type == IBV_SRQT_TM) {
        struct ibv_cq_ex *cq = ibv_create_cq_ex(e->ctx, &ca);
        need(cq);
        a.cq = ibv_cq_ex_to_cq(cq);
        a.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
    }
    return ibv_create_srq_ex(e->ctx, &a);
}

/* One object of each kind beside the connection. */
static void make_objects(struct vt_end *e)
{
    struct ibv_xrcd_init_attr xa = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(e->ctx, &xa);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(e->ctx);
    need(xrcd && channel && ibv_create_cq(e->ctx, 16, NULL, channel, 0) && ibv_alloc_mw(e->pd, IBV_MW_TYPE_2));
    struct ibv_srq *basic = make_srq(e, IBV_SRQT_BASIC, NULL);
    need(basic);
    need(make_srq(e, IBV_SRQT_XRC, xrcd));
    need(make_srq(e, IBV_SRQT_TM, NULL));
    struct ibv_qp_init_attr_ex target = {.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    need(ibv_create_qp_ex(e->ctx, &target) && vt_end_qp(e, IBV_QPT_RC, basic, 0) &&
         vt_end_qp(e, IBV_QPT_XRC_SEND, NULL, 0));
    struct ibv_qp *ud = vt_end_qp(e, IBV_QPT_UD, NULL, 0);
    const union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3}};
    need(ud && vt_to_init(ud) == 0 && ibv_attach_mcast(ud, &group, 0) == 0);
}

/* Writes and reads the peer's memory without end. */
static void victim(int in, int out)
{
    struct vt_end e;
    struct card own, other;
    vt_end_open(&e, vt_open());
    make_objects(&e);
    need((e.qp = vt_end_qp(&e, IBV_QPT_RC, NULL, 0)) && vt_to_init(e.qp) == 0);
    own = (struct card){e.qp->qp_num, e.mr->rkey, (uintptr_t)e.buf, e.gid};
    need(write(out, &own, sizeof(own)) == sizeof(own) && read(in, &other, sizeof(other)) == sizeof(other));
    need(vt_to_rtr_at(e.qp, other.qpn, &other.gid) == 0 && vt_to_rts(e.qp) == 0 && write(out, "r", 1) == 1);
    for (unsigned i = 0;; i++) {
        struct ibv_send_wr wr = {.opcode = i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {.remote_addr = other.addr, .rkey = other.rkey}};
        need(vt_end_post(&e, &wr, 0, 30000) == 0 && vt_next(e.scq).status == IBV_WC_SUCCESS);
    }
}

/* --- what is left */

static unsigned descriptors(const char *pid)
{
    char path[64];
    unsigned n = 0;
    snprintf(path, sizeof(path), "/proc/%s/fd", pid);
    DIR *d = opendir(path);
    need(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Does the daemon of the killed programs have no object? */
static bool is_empty(void)
{
    static const char *const lists[] = {"sessions", "pds",        "qps", "srqs", "xrcds",
                                        "cqs",      "comp_cntrs", "mrs", "mws",  "groups"};
    static char text[1 << 20];
    char command[4096], empty[32];
    snprintf(command, sizeof(command), "env -u LD_PRELOAD %s/bin/pumice status --json --socket %s", getenv("VT_BUILD"),
             getenv("PUMICE_SOCKET"));
    FILE *f = popen(command, "r");
    need(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = 0;
    if (pclose(f) != 0)
        return false;
    bool none = true;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        snprintf(empty, sizeof(empty), "\"%s\": []", lists[i]);
        none &= strstr(text, empty) != NULL;
    }
    return none;
}

static bool becomes_empty(void)
{
    for (double end = vt_now() + vt_wait_seconds(); vt_now() < end;)
        if (is_empty())
            return true;
    return false;
}

/* A thread of its own closes descriptors. So this waits until their number has been the same for half a second. */
static void await_descriptors(const char *pid)
{
    double since = vt_now();
    for (unsigned number = descriptors(pid); vt_now() - since < 0.5; usleep(10000)) {
        unsigned now = descriptors(pid);
        since = now == number ? since : vt_now();
        number = now;
    }
}

/* --- the survivor */

static void connect_peer(const struct card *other)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 2, .rnr_retry = 7, .sq_psn = 1, .max_rd_atomic = 4};
    need(vt_to_rtr_at(peer.qp, other->qpn, &other->gid) == 0);
    need(ibv_modify_qp(peer.qp, &a,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* Reads the victim's memory until that fails. Returns the status. */
static int read_until_it_fails(const struct card *other)
{
    for (;;) {
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {.remote_addr = other->addr, .rkey = other->rkey}};
        need(vt_end_post(&peer, &wr, 32768, 20000) == 0);
        int status = (int)vt_next(peer.scq).status;
        if (status != IBV_WC_SUCCESS)
            return status;
    }
}

/* Kills one program. Returns the status of the peer's request. */
static int kill_one(unsigned n)
{
    int down[2], up[2];
    struct card own, other;
    char ready;
    need(pipe(down) == 0 && pipe(up) == 0);
    fflush(stdout);
    pid_t pid = fork();
    need(pid >= 0);
    if (pid == 0)
        victim(down[0], up[1]);
    close(down[0]), close(up[1]);
    need((peer.qp = vt_end_qp(&peer, IBV_QPT_RC, NULL, 0)) && vt_to_init(peer.qp) == 0);
    own = (struct card){peer.qp->qp_num, peer.mr->rkey, (uintptr_t)peer.buf, peer.gid};
    need(read(up[0], &other, sizeof(other)) == sizeof(other));
    connect_peer(&other);
    need(write(down[1], &own, sizeof(own)) == sizeof(own) && read(up[0], &ready, 1) == 1);
    pid_t killer = fork(); /* this process has traffic meanwhile */
    need(killer >= 0);
    if (killer == 0) {
        usleep(n * 7919 % 5000);
        kill(pid, SIGKILL);
        _exit(0);
    }
    int status = read_until_it_fails(&other);
    need(waitpid(pid, NULL, 0) == pid && waitpid(killer, NULL, 0) == killer);
    need(ibv_destroy_qp(peer.qp) == 0);
    close(down[1]), close(up[0]);
    return status;
}

int main(void)
{
    VT_OWN("the death of programs");
    const char *pid = getenv("VT_DAEMON_PID"), *kills = getenv("VT_KILLS");
    if (!pid || !getenv("VT_BUILD")) {
        printf("skip - VT_DAEMON_PID or VT_BUILD is not set\n");
        return 77;
    }
    struct ibv_context *ctx = vt_open_peer();
    need(ctx);
    vt_end_open(&peer, ctx);
    unsigned wanted = kills ? (unsigned)atoi(kills) : 20, n = 0, first = 0;
    unsigned silent = 0, naks = 0;
    bool empty = true, same = true;
    for (; n < wanted && silent + naks == n && empty && same; n++) {
        int status = kill_one(n);
        silent += status == IBV_WC_RETRY_EXC_ERR;
        /* Keys go before memory does. How far the end of the process has come decides about the NAK. */
        naks += status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_OP_ERR;
        empty = becomes_empty();
        if (n == 0)
            await_descriptors(pid);
        for (double end = vt_now() + vt_wait_seconds(); n && vt_now() < end && descriptors(pid) != first;)
            usleep(1000);
        first = n ? first : descriptors(pid);
        same = descriptors(pid) == first;
    }
    printf("# %u programs killed: no answer %u times, a NAK %u times\n", n, silent, naks);
    ok(silent + naks == n, "the peer's request fails");
    ok(empty, "no object is left");
    ok(same, "no descriptor is left");
    peer.qp = NULL;
    ok(n == wanted && vt_end_close(&peer) && ibv_close_device(ctx) == 0, "all is closed");
    return vt_failed;
}
