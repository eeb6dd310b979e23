// SPDX-License-Identifier: BSD-2-Clause
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/soak/hostile/attacks.h"
#include "tests/soak/hostile/effort.h"
#include "tests/verbs/tag_matching/tags.h"

/* --- many QPs ---------------------------------------------------------------------------------- */

enum { PAIRS = 128, DEPTH = 16, FLOOD_BUF = 1 << 20 };

struct flood {
    struct vt_end end[2];
    struct ibv_cq *cq[2];
    struct ibv_qp *qp[PAIRS][2];
    unsigned pairs;
    char *buf;
    struct ibv_mr *mr[2];
};

/* The device of this number; if there is none, the last one. */
static struct ibv_context *open_number(int number)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_context *c = list && n ? ibv_open_device(list[number < n ? number : n - 1]) : NULL;
    if (list)
        ibv_free_device_list(list);
    return c;
}

static bool flood_open(struct flood *f, int from, int to)
{
    *f = (struct flood){.pairs = 0};
    f->buf = mmap(NULL, FLOOD_BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++) {
        struct ibv_context *c = open_number(i ? to : from);
        struct vt_end *e = &f->end[i];
        if (!c)
            return false;
        e->ctx = c;
        e->gid = vt_gid(c);
        if (!(e->pd = ibv_alloc_pd(c)) || !(e->scq = e->rcq = ibv_create_cq(c, PAIRS * DEPTH, NULL, NULL, 0)) ||
            !(f->mr[i] = ibv_reg_mr(e->pd, f->buf, FLOOD_BUF, VT_ALL_ACCESS)))
            return false;
    }
    for (; f->pairs < PAIRS; f->pairs++) {
        for (int i = 0; i < 2; i++) {
            struct ibv_qp_init_attr a = {.send_cq = f->end[i].scq,
                                         .recv_cq = f->end[i].rcq,
                                         .cap = {DEPTH, DEPTH, 1, 1, 64},
                                         .qp_type = IBV_QPT_RC};
            if (!(f->qp[f->pairs][i] = ibv_create_qp(f->end[i].pd, &a)))
                return f->pairs > 0;
        }
        vt_link(f->qp[f->pairs][0], &f->end[0].gid, f->qp[f->pairs][1], &f->end[1].gid);
    }
    return true;
}

static void flood_post(struct flood *f, unsigned pair, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)f->buf, len, f->mr[0]->lkey};
    struct ibv_send_wr wr = {.wr_id = pair,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = len <= 64 || rnd(4) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED | (len <= 64 ? IBV_SEND_INLINE : 0u)};
    struct ibv_send_wr *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)f->buf + FLOOD_BUF / 2;
    wr.wr.rdma.rkey = f->mr[1]->rkey;
    ibv_post_send(f->qp[pair][0], &wr, &bad);
}

/* Keeps all queues full until the effort ends. */
static void flood(int from, int to, uint32_t len)
{
    struct flood f;
    struct ibv_wc wc[64];
    if (!flood_open(&f, from, to))
        return;
    for (unsigned i = 0; i < f.pairs * DEPTH; i++)
        flood_post(&f, i % f.pairs, len);
    while (effort_goes_on()) {
        int n = ibv_poll_cq(f.end[0].scq, 64, wc);
        for (int i = 0; i < n; i++) {
            if (wc[i].status == IBV_WC_SUCCESS)
                flood_post(&f, (unsigned)wc[i].wr_id, len);
        }
    }
}

void attack_bulk(void)
{
    flood(0, 0, 1u << 16);
}

void attack_across(void)
{
    flood(0, 1, 1u << 16);
}

void attack_small(void)
{
    flood(0, (int)rnd(2), 8);
}

/* --- matching lists ---------------------------------------------------------------------------- */

static void tag_step(struct tm_pair *p, unsigned step)
{
    struct ibv_sge sge = tm_at(&p->s, 0, 64);
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    struct tm_add add = {.id = step,
                         .tag = rnd(64),
                         .mask = rnd(4) ? EXACT : rnd(64),
                         .len = 64,
                         .flags = rnd(4) ? 0 : IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
                         .count = (uint32_t)rnd(1000)};
    uint32_t handle;
    if (rnd(2) && tm_try_add(&p->r, &add, &handle) == 0 && rnd(3) == 0)
        tm_op(&p->r, step, IBV_WR_TAG_DEL, rnd(2) ? IBV_OPS_SIGNALED : 0, handle, 0);
    if (rnd(8) == 0) {
        struct ibv_sge s = tm_at(&p->r, 4096, 4096);
        struct ibv_recv_wr recv_wr = {.sg_list = &s, .num_sge = 1}, *bad_recv;
        ibv_post_srq_recv(p->r.srq, &recv_wr, &bad_recv);
    }
    tm_header(&p->s, (uint8_t)(rnd(8) ? 1 + rnd(3) : rnd(256)), rnd(64), step); /* mostly eager or rendezvous */
    tm_rvh(&p->s, 8192, (uint32_t)rnd(1 << 20), rnd(8) ? p->s.mr->rkey : (uint32_t)rnd(UINT32_MAX));
    wr.send_flags = rnd(8) ? 0 : IBV_SEND_SIGNALED;
    ibv_post_send(p->s.qp[rnd(TM_QPS)], &wr, &bad);
}

void attack_tags(void)
{
    struct tm_pair p;
    struct tm_wc wc;
    while (effort_goes_on()) {
        struct ibv_context *a = open_number(0), *b = open_number((int)rnd(2));
        if (!a || !b)
            return;
        tm_open(&p, a, b);
        for (unsigned step = 0; step < 20000 && effort_goes_on(); step++) {
            tag_step(&p, step);
            while (tm_poll(p.r.cq, &wc) || tm_poll(p.s.cq, &wc))
                continue;
        }
        tm_side_close(&p.s);
        tm_side_close(&p.r);
        ibv_close_device(a);
        ibv_close_device(b);
    }
}

/* --- memory ------------------------------------------------------------------------------------ */

enum { REGION = 1 << 20 };

static void *map_region(int file)
{
    bool backed = file >= 0 && rnd(2) && ftruncate(file, REGION) == 0;
    void *p = mmap(NULL, REGION, PROT_READ | PROT_WRITE, backed ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS,
                   backed ? file : -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Takes pages away from under a region. */
static void take_pages(void *p, int file)
{
    switch (rnd(8)) {
    case 0:
        munmap((char *)p + REGION / 2, REGION / 2);
        break;
    case 1:
        mprotect(p, REGION / 2, PROT_NONE);
        break;
    case 2:
        (void)!ftruncate(file, (off_t)rnd(REGION));
        break;
    default:
        madvise(p, REGION, MADV_DONTNEED);
    }
}

static void memory_round(struct vt_end *e, int file)
{
    struct vt_end to = *e;
    struct ibv_wc wc;
    void *p = map_region(file);
    struct ibv_mr *mr = p ? ibv_reg_mr(e->pd, p, REGION, VT_ALL_ACCESS) : NULL;
    e->qp = vt_end_qp(e, IBV_QPT_RC, NULL, 0);
    to.qp = vt_end_qp(&to, IBV_QPT_RC, NULL, 0);
    if (mr && e->qp && to.qp) {
        vt_link(e->qp, &e->gid, to.qp, &to.gid);
        for (unsigned i = 0; i < 64; i++) {
            struct ibv_send_wr wr = {.opcode = rnd(2) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
                                     .send_flags = IBV_SEND_SIGNALED};
            wr.wr.rdma.remote_addr = (uintptr_t)p + rnd(REGION - 65536);
            wr.wr.rdma.rkey = mr->rkey;
            vt_end_post(e, &wr, 0, 65536);
            if (rnd(16) == 0)
                take_pages(p, file);
            ibv_poll_cq(e->scq, 1, &wc);
        }
    }
    for (unsigned i = 0; p && i < 100; i++) {
        struct ibv_mr *more = ibv_reg_mr(e->pd, p, 1 + rnd(REGION), VT_ALL_ACCESS);
        if (more)
            ibv_dereg_mr(more);
    }
    if (e->qp)
        ibv_destroy_qp(e->qp);
    if (to.qp)
        ibv_destroy_qp(to.qp);
    if (mr)
        ibv_dereg_mr(mr);
    if (p)
        munmap(p, REGION);
}

void attack_memory(void)
{
    char path[] = P_tmpdir "/hostile-XXXXXX";
    struct vt_end e;
    struct ibv_context *c = open_number(0);
    int file = mkstemp(path);
    if (!c)
        return;
    unlink(path);
    vt_end_open(&e, c);
    while (effort_goes_on())
        memory_round(&e, file);
}

/* --- deaths ------------------------------------------------------------------------------------ */

static void live_and_die(void)
{
    static void (*const lives[])(void) = {attack_bulk, attack_across, attack_small, attack_tags, attack_memory};
    usleep(1);
    lives[rnd(sizeof(lives) / sizeof(lives[0]))]();
    _exit(0);
}

void attack_deaths(void)
{
    while (effort_goes_on()) {
        uint64_t seed = rnd(UINT32_MAX), ms = 5 + rnd(rnd(4) ? 50 : 500);
        pid_t pid = fork();
        if (pid == 0) {
            effort_start(seed, 10);
            live_and_die();
        }
        if (pid < 0)
            continue;
        usleep((useconds_t)ms * 1000);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}
