// SPDX-License-Identifier: BSD-2-Clause
/* The library's copy of a QP's state, by which it refuses requests. Threads modify and query a QP at the same time;
 * the copy then equals the last state that the device has set. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/verbs/vt.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
int main(void)
{
    printf("skip - a sanitizer has its own pthread_mutex_unlock\n");
    return 77;
}
#else

/* A thread that wants it stops where it lets the session go, its reply in hand. */
static _Thread_local bool stops;
static _Atomic bool inside, go_on;

/* Does the verbs library call? A preloaded library such as the checker has locks of its own. */
static bool is_of_library(const void *caller)
{
    Dl_info i;
    return dladdr(caller, &i) && i.dli_fname && strstr(i.dli_fname, "libibverbs");
}

int pthread_mutex_unlock(pthread_mutex_t *lock)
{
    static int (*_Atomic next)(pthread_mutex_t *);
    if (!next)
        next = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    int rc = next(lock);
    if (stops && is_of_library(__builtin_return_address(0))) {
        stops = false;
        inside = true;
        while (!go_on)
            usleep(1000);
    }
    return rc;
}

static struct vt_pair p;
static struct ibv_qp_attr rtr; /* of QP 0, and its mask */
static int rtr_mask;

static int ask(int mask)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    return ibv_query_qp(p.qp[0], &a, mask, &init);
}

static void *asks(void *arg)
{
    (void)arg;
    stops = true;
    return (void *)(uintptr_t)(ask(IBV_QP_STATE) == 0);
}

static void *modifies(void *arg)
{
    (void)arg;
    stops = true;
    return (void *)(uintptr_t)(ibv_modify_qp(p.qp[0], &rtr, rtr_mask) == 0);
}

static void begin(pthread_t *t, void *(*thread)(void *))
{
    inside = go_on = false;
    need(pthread_create(t, NULL, thread, NULL) == 0);
    while (!inside)
        usleep(1000);
}

static void end(pthread_t t)
{
    void *right;
    go_on = true;
    need(pthread_join(t, &right) == 0 && right);
}

static int write_to(uint32_t rkey)
{
    struct ibv_sge s = vt_sge(&p, 0, 8);
    struct ibv_send_wr wr = {.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    wr.wr.rdma.remote_addr = (uintptr_t)p.buf + 64;
    wr.wr.rdma.rkey = rkey;
    return ibv_post_send(p.qp[0], &wr, &bad);
}

static bool posts(void)
{
    struct ibv_wc wc;
    return write_to(p.mr->rkey) == 0 && vt_poll(p.scq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS;
}

/* The other end is ready; this one is in INIT. */
static void anew(void)
{
    for (int i = 0; i < 2; i++)
        need(vt_to_state(p.qp[i], IBV_QPS_RESET) == 0 && vt_to_init(p.qp[i]) == 0);
    need(vt_to_rtr(p.qp[1], p.qp[0]->qp_num) == 0);
}

static void order(void)
{
    pthread_t t;
    anew();
    begin(&t, asks);
    need(vt_to_rtr(p.qp[0], p.qp[1]->qp_num) == 0 && vt_to_rts(p.qp[0]) == 0);
    end(t);
    ok(posts(), "an answer from before does not put the state back");
    anew();
    begin(&t, modifies);
    need(vt_to_rts(p.qp[0]) == 0);
    end(t);
    ok(posts(), "nor does the modification before the last");
}

/* The device takes a queue pair to ERR by itself. */
static void asked(void)
{
    struct ibv_wc wc;
    need(write_to(p.mr->rkey ^ 1) == 0 && vt_poll(p.scq, 1, &wc) == 1 && wc.status == IBV_WC_REM_ACCESS_ERR);
    ok(ask(IBV_QP_CAP) == 0 && p.qp[0]->state == IBV_QPS_RTS, "who asks for something else leaves the state");
    ok(ask(IBV_QP_STATE) == 0 && p.qp[0]->state == IBV_QPS_ERR, "who asks for the state notes it");
}

int main(void)
{
    VT_OWN("the copy of the state that the client library keeps");
    struct ibv_context *ctx = vt_open();
    vt_pair_make(&p, ctx, NULL);
    rtr_mask = vt_rtr_attr(p.qp[0], p.qp[1]->qp_num, NULL, &rtr);
    order();
    asked();
    ok(vt_pair_end(&p) && ibv_close_device(ctx) == 0, "everything is destroyed");
    return vt_failed;
}
#endif
