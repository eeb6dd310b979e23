// SPDX-License-Identifier: BSD-2-Clause
/* Threads that are cancelled while they post, poll or ask the device. They finish their call, and no lock, doorbell
 * or reply is lost. Only the reads that wait for events are cancellation points. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/verbs/vt.h"

#define ENDED ((void *)1)

static struct ibv_context *ctx;
static struct vt_pair p, other;
static struct ibv_comp_channel *ch;
static struct ibv_srq *srq;
static _Atomic bool right;

static bool send_one(void)
{
    return vt_send(&p, 0, 1, 0, 8, IBV_SEND_SIGNALED) == 0;
}
static bool receive_shared(void)
{
    return vt_srq_recv(&p, srq, 1, 64, 8) == 0;
}
static bool poll_empty(void)
{
    struct ibv_wc wc;
    for (int i = 0; i < 10000; i++)
        if (ibv_poll_cq(other.rcq, 1, &wc) != 0)
            return false;
    return true;
}
static bool query(void)
{
    struct ibv_port_attr a;
    return ibv_query_port(ctx, 1, &a) == 0;
}
static bool refused(void)
{
    return ibv_resize_cq(other.rcq, INT32_MAX) == EINVAL && !ibv_reg_mr(p.pd, NULL, 0, 1 << 19) && errno == EINVAL;
}
static bool modify(void)
{
    struct ibv_srq_attr a = {.max_wr = 40};
    return ibv_resize_cq(other.rcq, 100) == 0 && ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR) == 0;
}
static bool make_all(void)
{
    struct vt_pair q = {0};
    struct ibv_comp_channel *c = ibv_create_comp_channel(ctx);
    if (!c || !(q.scq = ibv_create_cq(ctx, 4, NULL, c, 0)))
        return false;
    vt_pair_make(&q, ctx, NULL);
    vt_connect(&q);
    return vt_pair_end(&q) && ibv_destroy_comp_channel(c) == 0;
}
static bool open_again(void)
{
    struct ibv_context *again = vt_open();
    return ibv_close_device(again) == 0;
}
static bool wait_completion(void)
{
    struct ibv_cq *cq;
    void *context;
    ibv_get_cq_event(ch, &cq, &context);
    return true;
}
static bool wait_async(void)
{
    struct ibv_async_event e;
    ibv_get_async_event(ctx, &e);
    return true;
}

static void *to_its_end(void *call)
{
    pthread_cancel(pthread_self());
    right = (*(bool (**)(void))call)();
    return ENDED;
}

static void *run(bool (*call)(void))
{
    pthread_t t;
    void *end;
    right = false;
    need(pthread_create(&t, NULL, to_its_end, &call) == 0 && pthread_join(t, &end) == 0);
    return end;
}

static void survives(bool (*call)(void), const char *what)
{
    usleep(100000); /* the daemon sleeps, and an empty poll is due to look whether it lives */
    void *end = run(call);
    ok(end == ENDED && right, what);
}

/* A lock that a cancelled thread still held would block this. */
static void still_works(void)
{
    struct ibv_port_attr port;
    struct ibv_wc wc[2];
    struct vt_pair *pairs[] = {&p, &other};
    for (int i = 0; i < 2; i++) {
        struct vt_pair *q = pairs[i];
        need(vt_recv(q, 1, 2, 64, 8) == 0 && vt_send(q, 0, 3, 0, 8, IBV_SEND_SIGNALED) == 0);
        ok(vt_poll(q->scq, 1, wc) == 1 && wc[0].wr_id == 3 && vt_poll(q->rcq, 1, wc) == 1 && wc[0].wr_id == 2,
           "then a message goes from end to end");
    }
    ok(ibv_query_port(ctx, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE, "and a reply is that of its request");
}

/* AddressSanitizer does not know that the stack frames of a cancelled thread are no longer in use. */
static void events(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ok(run(wait_completion) == PTHREAD_CANCELED, "waiting for a completion event is a cancellation point");
    ok(run(wait_async) == PTHREAD_CANCELED, "and so is waiting for an asynchronous one");
    still_works();
#else
    (void)wait_completion, (void)wait_async;
#endif
}

int main(void)
{
    VT_OWN("cancelled threads in calls of the client library");
    struct ibv_srq_init_attr a = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_wc wc;
    ctx = vt_open();
    need((ch = ibv_create_comp_channel(ctx)) && (p.rcq = ibv_create_cq(ctx, 64, NULL, ch, 0)));
    vt_pair_make(&p, ctx, NULL);
    vt_connect(&p);
    vt_pair_make(&other, ctx, NULL);
    vt_connect(&other);
    need((srq = ibv_create_srq(p.pd, &a)) && vt_recv(&p, 1, 1, 64, 8) == 0);
    alarm(30);
    survives(send_one, "cancelled, and posts: the daemon is woken");
    ok(vt_poll(p.scq, 1, &wc) == 1 && wc.wr_id == 1 && vt_poll(p.rcq, 1, &wc) == 1, "and sends the message");
    survives(receive_shared, "posts to an SRQ");
    survives(poll_empty, "polls an empty CQ");
    survives(query, "asks the port");
    survives(refused, "is refused");
    survives(modify, "resizes queues");
    survives(make_all, "makes, connects and ends objects");
    survives(open_again, "opens and closes a device");
    still_works();
    events();
    ok(ibv_destroy_srq(srq) == 0 && vt_pair_end(&p) && vt_pair_end(&other) && ibv_destroy_comp_channel(ch) == 0 &&
           ibv_close_device(ctx) == 0,
       "everything is destroyed");
    return vt_failed;
}
