// SPDX-License-Identifier: BSD-2-Clause
/* Counts the queue pairs that all-to-all communication needs.
 *
 *     pumice run --hosts 3 -- build/examples/xrc_scale --hosts 3 --jobs 4
 *
 * N hosts run J jobs each, and every job talks to every job on the other hosts. With reliable connections, each pair
 * of jobs needs a queue pair at both ends: N (N-1) J J in all. With XRC, a job has one sending queue pair for each
 * other host, whatever the number of its jobs: the message itself names the shared receive queue of the job that
 * gets it. At the other end is one receiving queue pair for each sending one. The jobs of that host share it through
 * a domain. This makes 2 N (N-1) J queue pairs in all.
 *
 * The program runs both ways, sends messages from every job to every other one, checks them, and prints the numbers.
 * It starts the jobs itself. Each job is a process, and PUMICE_HOST puts it on its host. The jobs find each other
 * through files in a temporary directory. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_HOSTS = 8, MAX_JOBS = 16, MAX_ALL = MAX_HOSTS * MAX_JOBS, MESSAGES = 20, SIZE = 256, DEPTH = 512, PSN = 77 };

static unsigned hosts = 3, jobs = 4;
static bool xrc;
static char dir[64];

/* Each job publishes this for the others. The number of a job is host * jobs + job. */
struct conn_info {
    union ibv_gid gid;
    uint32_t srqn; /* XRC: the shared receive queue for messages to this job */
    uint32_t sender[MAX_ALL]; /* RC: the queue pair to that job. XRC: [host] is the one to that host */
    /* XRC: the receiving queue pair that this job made for that job; 0: another job made it. */
    uint32_t receiver[MAX_ALL];
    uint32_t made; /* queue pairs that this job made */
};

static struct job {
    unsigned me, host;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_xrcd *xrcd;
    struct ibv_srq *srq;
    struct ibv_qp *sender[MAX_ALL], *receiver[MAX_ALL];
    struct ibv_mr *mr;
    uint8_t *mem; /* DEPTH slots to receive, and one slot to send for each message under way */
    struct conn_info info, infos[MAX_ALL];
    uint8_t gid_index;
} job;

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "xrc_scale: host %u, job %u: %s: %s\n", job.host, job.me % jobs, what, strerror(errno));
    exit(1);
}

static unsigned all(void)
{
    return hosts * jobs;
}

/* The job of a host that makes the receiving queue pair for a job of another host. The jobs take turns. */
static bool is_mine(unsigned sender)
{
    return sender % jobs == job.me % jobs;
}

/* --- finding each other --------------------------------------------------- */

static void path_of(char *path, size_t size, const char *what, unsigned number)
{
    snprintf(path, size, "%s/%s.%s.%u", dir, xrc ? "xrc" : "rc", what, number);
}

static void publish(const char *what, const void *data, size_t size)
{
    char path[128], temporary[160];

    path_of(path, sizeof(path), what, job.me);
    snprintf(temporary, sizeof(temporary), "%s.part", path);
    FILE *f = fopen(temporary, "wb");
    need(f && (size == 0 || fwrite(data, size, 1, f) == 1) && fclose(f) == 0 && rename(temporary, path) == 0, path);
}

static void look_up(const char *what, unsigned number, void *data, size_t size)
{
    char path[128];
    FILE *f;

    path_of(path, sizeof(path), what, number);
    while ((f = fopen(path, "rb")) == NULL)
        usleep(1000);
    need(size == 0 || fread(data, size, 1, f) == 1, path);
    fclose(f);
}

/* Waits until all jobs are here. */
static void barrier(const char *name)
{
    publish(name, NULL, 0);
    for (unsigned i = 0; i < all(); i++)
        look_up(name, i, NULL, 0);
}

/* --- objects -------------------------------------------------------------- */

static void to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};

    need(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "to INIT");
    job.info.made++;
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
    struct ibv_qp_init_attr_ex init = {.qp_type = type, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = job.pd};

    if (type == IBV_QPT_XRC_RECV) {
        init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
        init.xrcd = job.xrcd;
    } else {
        init.send_cq = job.send_cq;
        init.recv_cq = type == IBV_QPT_RC ? job.recv_cq : NULL;
        init.srq = type == IBV_QPT_RC ? job.srq : NULL;
        init.cap.max_send_wr = MESSAGES;
        init.cap.max_send_sge = 1;
    }
    struct ibv_qp *qp = ibv_create_qp_ex(job.ctx, &init);
    need(qp != NULL, "create queue pair");
    to_init(qp);
    return qp;
}

/* The domain of a host is named by a file that all its jobs open. */
static void open_domain(void)
{
    char path[128];
    path_of(path, sizeof(path), "domain", job.host);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    struct ibv_xrcd_init_attr init = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = O_CREAT};

    need(fd >= 0 && (job.xrcd = ibv_open_xrcd(job.ctx, &init)) != NULL, "open XRC domain");
    close(fd);
}

/* The index of the first GID of RoCE v2. On a NIC, index 0 is mostly one of RoCE v1. */
static uint8_t find_gid(struct ibv_context *ctx, union ibv_gid *gid)
{
    struct ibv_gid_entry entry;

    for (uint8_t i = 0; ibv_query_gid_ex(ctx, 1, i, &entry, 0) == 0; i++) {
        if (entry.gid_type != IBV_GID_TYPE_ROCE_V2)
            continue;
        *gid = entry.gid;
        return i;
    }
    need(false, "no GID of RoCE v2");
    return 0;
}

static void make_objects(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_srq_init_attr_ex init = {
        .attr = {.max_wr = DEPTH, .max_sge = 1},
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
        .srq_type = IBV_SRQT_BASIC,
    };

    need(list && list[0] && (job.ctx = ibv_open_device(list[0])) != NULL, "no device (run it by pumice run --hosts N)");
    ibv_free_device_list(list);
    job.mem = aligned_alloc(4096, ((DEPTH + MESSAGES) * SIZE + 4095) & ~4095ul);
    need(job.mem && (job.pd = ibv_alloc_pd(job.ctx)) != NULL, "protection domain");
    need((job.mr = ibv_reg_mr(job.pd, job.mem, (DEPTH + MESSAGES) * SIZE, IBV_ACCESS_LOCAL_WRITE)) != NULL, "memory");
    need((job.send_cq = ibv_create_cq(job.ctx, MESSAGES, NULL, NULL, 0)) != NULL, "completion queue");
    need((job.recv_cq = ibv_create_cq(job.ctx, DEPTH, NULL, NULL, 0)) != NULL, "completion queue");
    job.gid_index = find_gid(job.ctx, &job.info.gid);
    if (xrc) {
        open_domain();
        init.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
        init.srq_type = IBV_SRQT_XRC;
        init.xrcd = job.xrcd;
        init.cq = job.recv_cq;
    }
    init.pd = job.pd;
    need((job.srq = ibv_create_srq_ex(job.ctx, &init)) != NULL, "shared receive queue");
    if (xrc)
        need(ibv_get_srq_num(job.srq, &job.info.srqn) == 0, "number of the shared receive queue");
}

static void make_qps(void)
{
    for (unsigned i = 0; i < all(); i++) {
        if (i / jobs == job.host)
            continue;
        if (!xrc) {
            job.sender[i] = make_qp(IBV_QPT_RC);
            job.info.sender[i] = job.sender[i]->qp_num;
        } else if (is_mine(i)) {
            job.receiver[i] = make_qp(IBV_QPT_XRC_RECV);
            job.info.receiver[i] = job.receiver[i]->qp_num;
        }
    }
    for (unsigned h = 0; xrc && h < hosts; h++) {
        if (h == job.host)
            continue;
        job.sender[h] = make_qp(IBV_QPT_XRC_SEND);
        job.info.sender[h] = job.sender[h]->qp_num;
    }
}

/* In the reverse order: an object that another one uses can't be destroyed. The jobs of a host share its domain, and each closes
 * its own handle. */
static void destroy_objects(void)
{
    for (unsigned i = 0; i < all(); i++) {
        need(!job.sender[i] || ibv_destroy_qp(job.sender[i]) == 0, "destroy queue pair");
        need(!job.receiver[i] || ibv_destroy_qp(job.receiver[i]) == 0, "destroy receiving queue pair");
    }
    need(ibv_destroy_srq(job.srq) == 0 && ibv_destroy_cq(job.send_cq) == 0 && ibv_destroy_cq(job.recv_cq) == 0,
         "destroy queues");
    need(!job.xrcd || ibv_close_xrcd(job.xrcd) == 0, "close XRC domain");
    need(ibv_dereg_mr(job.mr) == 0 && ibv_dealloc_pd(job.pd) == 0 && ibv_close_device(job.ctx) == 0,
         "close the device");
    free(job.mem);
}

/* --- connecting ----------------------------------------------------------- */

static void connect_qp(struct ibv_qp *qp, const union ibv_gid *gid, uint32_t peer)
{
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = peer,
                              .rq_psn = PSN,
                              .min_rnr_timer = 1,
                              .ah_attr = {.is_global = 1,
                                          .port_num = 1,
                                          .grh = {.dgid = *gid, .sgid_index = job.gid_index, .hop_limit = 64}}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = PSN};
    bool sends = qp->qp_type != IBV_QPT_XRC_RECV, receives = qp->qp_type != IBV_QPT_XRC_SEND;

    need(ibv_modify_qp(qp, &rtr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           (receives ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)) == 0,
         "to RTR");
    need(ibv_modify_qp(qp, &rts,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN |
                           (sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)) == 0,
         "to RTS");
}

/* The job of host h that made the receiving queue pair for this job. */
static const struct conn_info *made_by(unsigned h)
{
    unsigned i = h * jobs;
    while (job.infos[i].receiver[job.me] == 0)
        need(++i < (h + 1) * jobs, "nobody made a receiving queue pair for me");
    return &job.infos[i];
}

static void connect_all(void)
{
    publish("info", &job.info, sizeof(job.info));
    for (unsigned i = 0; i < all(); i++)
        look_up("info", i, &job.infos[i], sizeof(job.infos[i]));
    for (unsigned i = 0; i < all(); i++) {
        if (job.receiver[i])
            connect_qp(job.receiver[i], &job.infos[i].gid, job.infos[i].sender[job.host]);
        if (job.sender[i] && !xrc)
            connect_qp(job.sender[i], &job.infos[i].gid, job.infos[i].sender[job.me]);
    }
    for (unsigned h = 0; xrc && h < hosts; h++)
        if (job.sender[h])
            connect_qp(job.sender[h], &made_by(h)->gid, made_by(h)->receiver[job.me]);
}

/* --- traffic -------------------------------------------------------------- */

static void fill(uint8_t *p, unsigned from, unsigned to, unsigned number)
{
    memset(p, (int)(from * 31 + to * 7 + number), SIZE);
    p[0] = (uint8_t)from;
    p[1] = (uint8_t)to;
    p[2] = (uint8_t)number;
}

static void post_recv(uint64_t slot)
{
    struct ibv_sge sge = {(uintptr_t)job.mem + slot * SIZE, SIZE, job.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = slot, .sg_list = &sge, .num_sge = 1}, *bad;

    need(ibv_post_srq_recv(job.srq, &wr, &bad) == 0, "post receive");
}

static unsigned receive(void)
{
    static unsigned next[MAX_ALL]; /* number of the next message of each job: messages of a job keep their order */
    uint8_t expected[SIZE];
    struct ibv_wc wc;
    unsigned got = 0;

    while (ibv_poll_cq(job.recv_cq, 1, &wc) == 1) {
        const uint8_t *p = job.mem + wc.wr_id * SIZE;
        need(wc.status == IBV_WC_SUCCESS && wc.byte_len == SIZE && p[0] < all(), ibv_wc_status_str(wc.status));
        fill(expected, p[0], job.me, next[p[0]]++);
        need(memcmp(p, expected, SIZE) == 0, "a message is wrong");
        post_recv(wc.wr_id);
        got++;
    }
    return got;
}

static void send_one(unsigned to, unsigned number)
{
    uint8_t *p = job.mem + (DEPTH + number) * SIZE;
    struct ibv_sge sge = {(uintptr_t)p, SIZE, job.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    fill(p, job.me, to, number);
    wr.qp_type.xrc.remote_srqn = job.infos[to].srqn;
    need(ibv_post_send(job.sender[xrc ? to / jobs : to], &wr, &bad) == 0, "post send");
}

static void talk(void)
{
    unsigned want = (hosts - 1) * jobs * MESSAGES, got = 0;
    struct ibv_wc wc;

    for (unsigned to = 0; to < all(); to++) {
        if (to / jobs == job.host)
            continue;
        for (unsigned n = 0; n < MESSAGES; n++)
            send_one(to, n);
        for (unsigned done = 0; done < MESSAGES; got += receive()) {
            int n = ibv_poll_cq(job.send_cq, 1, &wc);
            need(n == 0 || wc.status == IBV_WC_SUCCESS, "a message was not sent");
            done += (unsigned)n;
        }
    }
    while (got < want)
        got += receive();
}

static int run_job(unsigned number)
{
    char host[16];

    job.me = number;
    job.host = number / jobs;
    snprintf(host, sizeof(host), "%u", job.host);
    setenv("PUMICE_HOST", host, 1);
    make_objects();
    make_qps();
    for (uint64_t i = 0; i < DEPTH; i++)
        post_recv(i);
    connect_all();
    barrier("connected");
    talk();
    barrier("done");
    destroy_objects();
    return 0;
}

/* --- both ways ------------------------------------------------------------ */

static unsigned run_all(bool with_xrc)
{
    unsigned made = 0;
    struct conn_info info;
    int status;

    xrc = with_xrc;
    fflush(stdout); /* otherwise each job would print it again */
    pid_t self = getpid();
    for (unsigned i = 0; i < all(); i++) {
        pid_t pid = fork();
        need(pid >= 0, "fork");
        if (pid == 0) {
            /* If one job fails, this program ends. Then the others would wait for that job forever. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            exit(getppid() == self ? run_job(i) : 1);
        }
    }
    for (unsigned i = 0; i < all(); i++) {
        need(wait(&status) > 0 && status == 0, "a job failed");
    }
    for (unsigned i = 0; i < all(); i++) {
        look_up("info", i, &info, sizeof(info));
        made += info.made;
    }
    return made;
}

static unsigned number(const char *text, unsigned max, const char *what)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (*end || n < 1 || n > max) {
        fprintf(stderr, "xrc_scale: %s is 1 to %u, not %s\n", what, max, text);
        exit(2);
    }
    return (unsigned)n;
}

static void remove_directory(void)
{
    char command[96];
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    if (system(command) != 0)
        fprintf(stderr, "xrc_scale: %s is left\n", dir);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"hosts", 1, NULL, 'h'}, {"jobs", 1, NULL, 'j'}, {0}};
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'h')
            hosts = number(optarg, MAX_HOSTS, "--hosts");
        else if (c == 'j')
            jobs = number(optarg, MAX_JOBS, "--jobs");
        else
            return 2;
    }
    snprintf(dir, sizeof(dir), "%s", "/tmp/xrc_scale.XXXXXX");
    need(mkdtemp(dir) != NULL, "temporary directory");
    printf("%u hosts, %u jobs on each; every job sends %d messages to every job elsewhere\n", hosts, jobs, MESSAGES);
    unsigned rc = run_all(false), with_xrc = run_all(true);
    printf("RC:  %4u queue pairs, N (N-1) J J\nXRC: %4u queue pairs, 2 N (N-1) J\n", rc, with_xrc);
    remove_directory();
    return rc == hosts * (hosts - 1) * jobs * jobs && with_xrc == 2 * hosts * (hosts - 1) * jobs ? 0 : 1;
}
