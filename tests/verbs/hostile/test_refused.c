// SPDX-License-Identifier: BSD-2-Clause
/* What the daemon refuses, as often as a hostile member can try it: operations of the administrator, queue pairs that aim
 * at the queue pair of another user, and packets from a socket of its own. All go on while a bystander is served. */
#include <arpa/inet.h>
#include <sys/prctl.h>

#include "pumice/abi_capture.h"
#include "tests/verbs/ends.h"
#include "tests/verbs/hostile/hostile.h"

static struct vt_pair victim;
static char address[INET_ADDRSTRLEN]; /* of the device */

/* Runs in another process until the attack ends. */
static void go_on(void (*run)(const struct hostile *h), const struct hostile *h)
{
    pid_t parent = getpid(), pid = fork();

    need(pid >= 0);
    if (pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        run(h);
    _exit(1);
}

/* --- operations of the administrator ----------------------------------------------------------- */

static int request(int sock, uint32_t op, const void *rq, size_t len)
{
    return hostile_send(sock, op, rq, len, NULL, 0) ? hostile_reply(sock, NULL, 0) : 2;
}

static void ask_for_faults(const struct hostile *h)
{
    struct pm_fault_req fault = {.spec = "loss=100%"};
    int sock = hostile_connect(h);

    while (request(sock, PM_OP_FAULT, &fault, sizeof(fault)) == -EPERM)
        continue;
}

static void administration(const struct hostile *h)
{
    struct pm_capture_req capture = {.flags = PM_CAPTURE_OUT, .ring_bytes = PM_CAPTURE_RING_MIN};
    struct pm_fault_req fault = {.spec = "loss=100%"};
    int sock = hostile_connect(h);

    if (geteuid() == HOSTILE_UID) {
        ok(request(sock, PM_OP_FAULT, &fault, sizeof(fault)) == -EPERM, "FAULT of another user is refused");
        ok(request(sock, PM_OP_CAPTURE, &capture, sizeof(capture)) == -EPERM, "CAPTURE is refused");
        ok(request(sock, PM_OP_SHUTDOWN, NULL, 0) == -EPERM, "SHUTDOWN is refused");
        for (int i = 0; i < 4; i++)
            go_on(ask_for_faults, h);
    }
    close(sock);
}

/* --- queue pairs of others --------------------------------------------------------------------- */

enum { AIMED = 32, LEN = 4096 };

static struct ibv_qp *aim(struct vt_end *e)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_RTS, .timeout = 8, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = 1, .max_rd_atomic = 1};
    struct ibv_qp *qp = vt_end_qp(e, IBV_QPT_RC, NULL, 0);

    need(qp && vt_to_init(qp) == 0 && vt_to_rtr_at(qp, victim.qp[0]->qp_num, &e->gid) == 0);
    need(ibv_modify_qp(qp, &a,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0);
    return qp;
}

/* Each queue pair repeats its WRITE as long as it may, fails, and is replaced. */
static void write_to_the_victim(const struct hostile *h)
{
    struct ibv_qp *qp[AIMED] = {NULL};
    struct ibv_wc wc;
    struct vt_end e;

    (void)h;
    need(prctl(PR_SET_DUMPABLE, 1) == 0); /* as a program that was started by this user */
    vt_end_open(&e, vt_open());
    for (unsigned i = 0;; i = (i + 1) % AIMED) {
        struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
        if (qp[i])
            ibv_destroy_qp(qp[i]);
        e.qp = qp[i] = aim(&e);
        wr.wr.rdma.remote_addr = (uintptr_t)victim.buf;
        wr.wr.rdma.rkey = victim.mr->rkey;
        need(vt_end_post(&e, &wr, 0, LEN) == 0);
        while (ibv_poll_cq(e.scq, 1, &wc) > 0)
            need(wc.status != IBV_WC_SUCCESS);
    }
}

static void aimed(const struct hostile *h)
{
    go_on(write_to_the_victim, h);
    go_on(write_to_the_victim, h);
}

/* --- packets ----------------------------------------------------------------------------------- */

/* The script is of the tests between daemons. It has no end of its own here. */
static void forge(const struct hostile *h)
{
    char qpn[16];

    (void)h;
    snprintf(qpn, sizeof(qpn), "%u", victim.qp[0]->qp_num);
    unsetenv("LD_PRELOAD");
    execlp("python3", "python3", "tests/e2e/lib/forge.py", address, address, qpn, "1", "1000000000", (char *)NULL);
}

static long from_another_port(const struct hostile *h)
{
    return hostile_status_number(h, "\"rx_bad_port\"");
}

/* It goes on when packets of the scripts have arrived. */
static void forged(const struct hostile *h)
{
    go_on(forge, h);
    go_on(forge, h);
    for (double end = vt_now() + 30; from_another_port(h) <= 0 && vt_now() < end;)
        usleep(50000);
}

/* --- the victim -------------------------------------------------------------------------------- */

static bool works(void)
{
    struct ibv_sge sge = {.addr = (uintptr_t)victim.buf, .length = LEN, .lkey = victim.mr->lkey};
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1};
    struct ibv_send_wr *bad;
    struct ibv_wc wc;

    wr.wr.rdma.remote_addr = (uintptr_t)victim.buf + LEN;
    wr.wr.rdma.rkey = victim.mr->rkey;
    return ibv_post_send(victim.qp[0], &wr, &bad) == 0 && vt_poll(victim.scq, 1, &wc) == 1 &&
           wc.status == IBV_WC_SUCCESS;
}

static void attack(const struct hostile *h, void (*how)(const struct hostile *h), const char *what)
{
    char text[128];

    hostile_attack(h, how, what);
    snprintf(text, sizeof(text), "%s: the victim's WRITE completes", what);
    ok(works(), text);
}

int main(void)
{
    struct hostile h;

    VT_OWN("what the daemon refuses");
    hostile_start(&h, -1, NULL, NULL);
    setenv("PUMICE_SOCKET", h.socket, 1);
    struct ibv_context *ctx = vt_open();
    union ibv_gid gid = vt_gid(ctx);
    need(inet_ntop(AF_INET, gid.raw + 12, address, sizeof(address)));
    vt_pair_make(&victim, ctx, NULL);
    vt_connect(&victim);
    ok(works(), "the victim works");
    memset(victim.buf, 'v', 2 * LEN);
    attack(&h, administration, "operations of the administrator");
    attack(&h, aimed, "queue pairs that aim at another user's");
    attack(&h, forged, "packets from another socket");
    bool same = true;
    for (unsigned i = 0; i < 2 * LEN; i++)
        same &= victim.buf[i] == 'v';
    ok(same, "the victim's memory is as before");
    long refused = hostile_status_number(&h, "\"rx_bad_source_qp\""), bad_port = from_another_port(&h);
    printf("# %ld packets of other queue pairs, %ld from another port\n", refused, bad_port);
    ok(refused > 0, "packets of other queue pairs were refused");
    ok(bad_port > 0, "packets from another port were refused");
    ibv_close_device(ctx);
    ok(hostile_stop(&h), "the daemon ends");
    return vt_failed;
}
