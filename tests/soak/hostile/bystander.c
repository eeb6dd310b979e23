// SPDX-License-Identifier: BSD-2-Clause
#include "tests/soak/hostile/bystander.h"

#include <pthread.h>
#include <stdatomic.h>

#include "tests/soak/hostile/raw.h"
#include "tests/verbs/ends.h"

enum { BLOCK = 65536, SLOTS = 16, PAGE = 4096, ASKED_MAX = 1 << 16, ASK_US = 10000 };

struct ring {
    struct vt_end from, to;
    char *source, *target; /* SLOTS blocks each */
    struct ibv_mr *source_mr, *target_mr;
    uint64_t posted, done;
};

static int complain(const char *what, uint64_t number, int value)
{
    printf("error: %s, WRITE %llu, %d\n", what, (unsigned long long)number, value);
    return 1;
}

/* --- data -------------------------------------------------------------------------------------- */

static char *slot_of(char *blocks, uint64_t n)
{
    return blocks + n % SLOTS * BLOCK;
}

/* Each page of a block has the number of the WRITE at its start and its end. */
static void stamp(char *block, uint64_t n)
{
    for (unsigned at = 0; at < BLOCK; at += PAGE) {
        memcpy(block + at, &n, sizeof(n));
        memcpy(block + at + PAGE - sizeof(n), &n, sizeof(n));
    }
}

static bool is_stamped(const char *block, uint64_t n)
{
    for (unsigned at = 0; at < BLOCK; at += PAGE) {
        if (memcmp(block + at, &n, sizeof(n)) != 0 || memcmp(block + at + PAGE - sizeof(n), &n, sizeof(n)) != 0)
            return false;
    }
    return true;
}

/* --- traffic ----------------------------------------------------------------------------------- */

static void connect_ends(struct ring *r, const char *from, const char *to)
{
    struct vt_end *end[2] = {&r->from, &r->to};
    const char *name[2] = {from, to};
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = 1, .max_rd_atomic = 4};
    struct ibv_qp_init_attr init = {.cap = {SLOTS, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    for (int i = 0; i < 2; i++) {
        struct ibv_context *c = vt_open_named(name[i]);
        need(c);
        vt_end_open(end[i], c);
        init.send_cq = end[i]->scq;
        init.recv_cq = end[i]->rcq;
        need((end[i]->qp = ibv_create_qp(end[i]->pd, &init)) && vt_to_init(end[i]->qp) == 0);
    }
    need((r->source = aligned_alloc(PAGE, SLOTS * BLOCK)) && (r->target = aligned_alloc(PAGE, SLOTS * BLOCK)));
    memset(r->source, 1, SLOTS * BLOCK);
    memset(r->target, 2, SLOTS * BLOCK);
    need((r->source_mr = ibv_reg_mr(r->from.pd, r->source, SLOTS * BLOCK, VT_ALL_ACCESS)));
    need((r->target_mr = ibv_reg_mr(r->to.pd, r->target, SLOTS * BLOCK, VT_ALL_ACCESS)));
    for (int i = 0; i < 2; i++)
        need(vt_to_rtr_at(end[i]->qp, end[!i]->qp->qp_num, &end[!i]->gid) == 0);
    for (int i = 0; i < 2; i++)
        need(ibv_modify_qp(end[i]->qp, &a,
                           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static int post(struct ring *r)
{
    char *block = slot_of(r->source, r->posted);
    struct ibv_sge sge = {(uintptr_t)block, BLOCK, r->source_mr->lkey};
    struct ibv_send_wr wr = {.wr_id = r->posted,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    stamp(block, r->posted);
    wr.wr.rdma.remote_addr = (uintptr_t)slot_of(r->target, r->posted);
    wr.wr.rdma.rkey = r->target_mr->rkey;
    int rc = ibv_post_send(r->from.qp, &wr, &bad);
    if (rc)
        return complain("posting failed", r->posted, rc);
    r->posted++;
    return 0;
}

/* Transfers until `end`, then waits for what is under way. */
static int transfer(struct ring *r, double end)
{
    double latest = vt_now();
    while (vt_now() < end || r->done < r->posted) {
        struct ibv_wc wc;
        while (r->posted - r->done < SLOTS && vt_now() < end) {
            if (post(r))
                return 1;
        }
        int n = ibv_poll_cq(r->from.scq, 1, &wc);
        if (n < 0 || (n == 0 && vt_now() > latest + 60))
            return complain(n < 0 ? "polling failed" : "no completion for 60 s", r->done, n);
        if (n == 0)
            continue;
        latest = vt_now();
        if (wc.status != IBV_WC_SUCCESS || wc.wr_id != r->done)
            return complain("completion with status", r->done, (int)wc.status);
        if (!is_stamped(slot_of(r->target, r->done), r->done))
            return complain("wrong data", r->done, 0);
        r->done++;
    }
    return 0;
}

/* --- status ------------------------------------------------------------------------------------ */

static struct {
    atomic_bool stop;
    unsigned n;
    int error;
    float ms[ASKED_MAX];
} asked;

static void *ask(void *arg)
{
    (void)arg;
    do {
        double begin = vt_now();
        int sock = raw_connect();
        int rc = sock >= 0 ? raw_call(sock, PM_OP_STATUS, NULL, 0, NULL) : -errno;
        if (sock >= 0)
            close(sock);
        if (rc)
            asked.error = rc;
        if (asked.n < ASKED_MAX)
            asked.ms[asked.n++] = (float)((vt_now() - begin) * 1000);
        usleep(ASK_US);
    } while (!atomic_load(&asked.stop));
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* --- a measurement ----------------------------------------------------------------------------- */

static int measure(struct ring *r, double seconds)
{
    pthread_t thread;
    double begin = vt_now();
    uint64_t before = r->done;
    asked.n = 0;
    asked.error = 0;
    atomic_store(&asked.stop, false);
    need(pthread_create(&thread, NULL, ask, NULL) == 0);
    int rc = transfer(r, begin + seconds);
    double took = vt_now() - begin;
    atomic_store(&asked.stop, true);
    pthread_join(thread, NULL);
    if (rc)
        return rc;
    if (asked.error || !asked.n)
        return complain("STATUS failed", r->done, asked.error);
    qsort(asked.ms, asked.n, sizeof(asked.ms[0]), by_size);
    printf("%.4f %llu %u %.1f %.1f\n", (double)(r->done - before) * BLOCK / took / 1e9,
           (unsigned long long)(r->done - before), asked.n, (double)asked.ms[asked.n * 99 / 100],
           (double)asked.ms[asked.n - 1]);
    return 0;
}

int bystander(const char *from, const char *to)
{
    static struct ring r;
    char line[64];
    setvbuf(stdout, NULL, _IOLBF, 0);
    connect_ends(&r, from, to);
    printf("ready\n");
    while (fgets(line, sizeof(line), stdin)) {
        if (measure(&r, atof(line)))
            return 1;
    }
    return 0;
}
