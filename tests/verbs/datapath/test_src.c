// SPDX-License-Identifier: BSD-2-Clause
/* The pseudo-code of the proposal of Scalable Reliable Connections, with the names of pumice/src.h: NODES nodes with
 * JOBS jobs each, all-to-all, with O(N^2 * J) QPs. Each job is a context. Each node is a host, or the same device
 * twice if there is one host only. */
#include "pumice/src.h"

#include <fcntl.h>

#include "tests/verbs/ends.h"

#define NODES 2
#define JOBS 3

struct job {
    struct vt_end end; /* end.rcq: "each job creates a CQ for receive WCs" */
    struct ibv_src_domain *domain;
    struct ibv_srq *srq;
    struct ibv_qp *qp1[NODES]; /* to some job on that node; NULL: no connection yet */
    struct ibv_qp *qp2[NODES * JOBS]; /* made for a job that sends to this node */
    unsigned received;
    bool from[NODES * JOBS];
};
static struct job jobs[NODES][JOBS];
static unsigned qps;

static void startup(int node, struct ibv_context *(*open_device)(void), const char *file)
{
    for (int j = 0; j < JOBS; j++) {
        struct job *job = &jobs[node][j];
        struct ibv_context *ctx = open_device();
        int fd = open(file, O_RDONLY | O_CREAT, 0600);
        struct ibv_srq_init_attr attr = {.attr = {.max_wr = NODES * JOBS, .max_sge = 1}};
        need(ctx && fd >= 0);
        *job = (struct job){.received = 0};
        vt_end_open(&job->end, ctx);
        need((job->domain = ibv_open_src_domain(ctx, fd, O_CREAT)));
        close(fd);
        need((job->srq = ibv_create_src_srq(job->end.pd, job->domain, job->end.rcq, &attr)));
        for (uint32_t i = 0; i < NODES * JOBS; i++) {
            struct ibv_sge s = vt_at(&job->end, i * 64, 64);
            struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &s, .num_sge = 1}, *bad;
            need(ibv_post_srq_recv(job->srq, &wr, &bad) == 0);
        }
    }
}

/* "When job j1 needs to transmit to job j2 on remote node n for the first time" */
static void transmit(struct job *j1, unsigned sender, struct job *j2, int n)
{
    if (!j1->qp1[n]) {
        struct ibv_qp_init_attr send = {.qp_type = IBV_QPT_SRC,
                                        .send_cq = j1->end.scq,
                                        .cap = {.max_send_wr = 16, .max_send_sge = 1, .max_inline_data = 64}};
        struct ibv_qp_init_attr receive = {.qp_type = IBV_QPT_SRC};
        struct ibv_qp *qp1 = ibv_create_src_qp(j1->end.pd, j1->domain, &send);
        struct ibv_qp *qp2 = ibv_create_src_qp(j2->end.pd, j2->domain, &receive);
        need(qp1 && qp2);
        vt_link(qp1, &j1->end.gid, qp2, &j2->end.gid);
        j1->qp1[n] = qp1;
        j2->qp2[sender] = qp2;
        qps += 2;
    }
    struct ibv_sge s = {.addr = (uintptr_t)&sender, .length = sizeof(sender)};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
                             .sg_list = &s,
                             .num_sge = 1},
                       *bad;
    wr.src_remote_srq_num = ibv_src_srq_num(j2->srq);
    need(ibv_post_send(j1->qp1[n], &wr, &bad) == 0);
    need(vt_next(j1->end.scq).status == IBV_WC_SUCCESS);
}

static void receive(struct job *job)
{
    struct ibv_wc wc[NODES * JOBS];
    need(vt_poll(job->end.rcq, NODES * JOBS, wc) == NODES * JOBS);
    for (int i = 0; i < NODES * JOBS; i++) {
        unsigned sender;
        memcpy(&sender, job->end.buf + wc[i].wr_id * 64, sizeof(sender));
        if (wc[i].status == IBV_WC_SUCCESS && wc[i].byte_len == sizeof(sender) && sender < NODES * JOBS &&
            !job->from[sender]) {
            job->from[sender] = true;
            job->received++;
        }
    }
}

static void cleanup(void)
{
    bool all = true;
    for (int i = 0; i < NODES * JOBS; i++)
        for (int k = 0; k < NODES; k++) /* "disconnects qp1 from qp2, and asks j2 to destroy qp2" */
            if (jobs[i / JOBS][i % JOBS].qp1[k])
                all &= ibv_destroy_qp(jobs[i / JOBS][i % JOBS].qp1[k]) == 0;
    for (int i = 0; i < NODES * JOBS; i++) {
        struct job *job = &jobs[i / JOBS][i % JOBS];
        if (i == 0)
            ok(ibv_close_src_domain(job->domain) == EBUSY, "a domain in use is busy");
        for (int k = 0; k < NODES * JOBS; k++)
            if (job->qp2[k])
                all &= ibv_destroy_qp(job->qp2[k]) == 0;
        struct ibv_context *ctx = job->end.ctx;
        all &= ibv_destroy_srq(job->srq) == 0 && ibv_close_src_domain(job->domain) == 0;
        all &= vt_end_close(&job->end) && ibv_close_device(ctx) == 0;
    }
    ok(all, "everything ends");
}

static void run(struct ibv_context *(*second)(void))
{
    char dir[] = "/tmp/vt-src-XXXXXX", file[NODES][64];
    need(mkdtemp(dir));
    for (int n = 0; n < NODES; n++) {
        snprintf(file[n], sizeof(file[n]), "%s/node%d", dir, n);
        startup(n, n ? second : vt_open, file[n]);
    }
    qps = 0;
    for (unsigned s = 0; s < NODES * JOBS; s++)
        for (unsigned r = 0; r < NODES * JOBS; r++)
            transmit(&jobs[s / JOBS][s % JOBS], s, &jobs[r / JOBS][r % JOBS], (int)(r / JOBS));
    bool all = true;
    for (int i = 0; i < NODES * JOBS; i++) {
        receive(&jobs[i / JOBS][i % JOBS]);
        all &= jobs[i / JOBS][i % JOBS].received == NODES * JOBS;
    }
    ok(all, "every job got one message of every job");
    ok(qps == 2 * NODES * NODES * JOBS, "with N * N * J pairs of queue pairs");
    cleanup();
    for (int n = 0; n < NODES; n++)
        unlink(file[n]);
    rmdir(dir);
}

int main(void)
{
    struct ibv_context *ctx = vt_open();
    struct ibv_device_attr attr;
    need(ibv_query_device(ctx, &attr) == 0);
    vt_needs(ctx, VT_XRC);
    ok(attr.device_cap_flags & IBV_DEVICE_SRC, "the device has SRC");
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_qp_init_attr rc = {.qp_type = IBV_QPT_RC};
    struct ibv_srq_init_attr plain = {.attr = {.max_wr = 1, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &plain);
    ok(!ibv_create_src_qp(pd, NULL, &rc) && errno == EINVAL, "ibv_create_src_qp of another type: EINVAL");
    ok(srq && ibv_src_srq_num(srq) == 0, "an SRQ without domain has no number");
    ok(!ibv_open_src_domain(ctx, -1, 0) && errno == EINVAL, "no file and no O_CREAT: EINVAL");
    ibv_destroy_srq(srq);
    ibv_dealloc_pd(pd);
    ibv_close_device(ctx);
    printf("# both nodes on one device\n");
    run(vt_open);
    if (getenv(vt_chosen() ? "PUMICE_TEST_PEER" : "VT_PEER_SOCKET")) {
        printf("# two hosts\n");
        run(vt_open_peer);
    }
    return vt_failed;
}
