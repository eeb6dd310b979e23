// SPDX-License-Identifier: BSD-2-Clause
/* The daemon is killed while a program uses it. Outstanding requests are flushed in order, the device reports its
 * death once, nothing hangs, and everything can be destroyed. Needs a daemon of its own: VT_DAEMON_PID. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include "tests/verbs/vt.h"

static struct vt_pair p;

static void *wait_async(void *arg)
{
    return (void *)(uintptr_t)(ibv_get_async_event(p.ctx, arg) == 0);
}

static void *wait_completion(void *arg)
{
    struct ibv_cq *cq = NULL;
    void *context;
    bool got = ibv_get_cq_event(arg, &cq, &context) == 0 && cq == p.rcq;
    if (got)
        ibv_ack_cq_events(cq, 1);
    return (void *)(uintptr_t)got;
}

/* A channel whose CQ was never armed. */
static void *wait_in_vain(void *arg)
{
    struct ibv_cq *cq;
    void *context;
    return (void *)(uintptr_t)(ibv_get_cq_event(arg, &cq, &context) == -1 && errno == EIO);
}

static bool flushed(struct ibv_cq *cq, int num, uint64_t first)
{
    struct ibv_wc wc[32];
    bool right = vt_poll(cq, num, wc) == num;
    for (int i = 0; right && i < num; i++)
        right = wc[i].status == IBV_WC_WR_FLUSH_ERR && wc[i].wr_id == first + (uint64_t)i;
    return right && ibv_poll_cq(cq, 1, wc) == 0;
}

int main(void)
{
    VT_OWN("the death of the daemon");
    const char *pid = getenv("VT_DAEMON_PID");
    if (!pid) {
        printf("skip - VT_DAEMON_PID is not set\n");
        return 77;
    }
    struct ibv_context *ctx = vt_open();
    struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx), *idle = ibv_create_comp_channel(ctx);
    pthread_t async, comp, vain;
    struct ibv_async_event ev = {0};
    void *got;
    need(ch && idle && (p.rcq = ibv_create_cq(ctx, 64, NULL, ch, 0)));
    vt_pair_make(&p, ctx, NULL);
    vt_connect(&p);
    /* QP 1 has no receive request: the sends of QP 0 stay. QP 0 has four. */
    for (uint64_t i = 0; i < 5; i++)
        need(vt_send(&p, 0, 10 + i, 0, 8, i % 2 ? IBV_SEND_SIGNALED : 0) == 0);
    for (uint64_t i = 0; i < 4; i++)
        need(vt_recv(&p, 0, 20 + i, 64, 8) == 0);
    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    need(pthread_create(&async, NULL, wait_async, &ev) == 0 && pthread_create(&comp, NULL, wait_completion, ch) == 0 &&
         pthread_create(&vain, NULL, wait_in_vain, idle) == 0);
    usleep(100000);

    struct ibv_context *unread = vt_open();
    struct pollfd fatal = {.fd = unread->async_fd, .events = POLLIN};
    need(poll(&fatal, 1, 0) == 0);
    double killed = vt_now();
    need(kill((pid_t)atoi(pid), SIGKILL) == 0);
    ok(flushed(p.scq, 5, 10), "sends are flushed in order, unsignaled ones too");
    ok(flushed(p.rcq, 4, 20), "receives are flushed in order");
    ok(vt_now() - killed < 1.0, "within a second");
    ok(pthread_join(async, &got) == 0 && got && ev.event_type == IBV_EVENT_DEVICE_FATAL,
       "a blocked ibv_get_async_event: DEVICE_FATAL");
    ibv_ack_async_event(&ev);
    ok(poll(&fatal, 1, 10000) == 1 && fatal.revents == POLLIN, "poll of another context: an event can be read");
    ok(ibv_get_async_event(unread, &ev) == 0 && ev.event_type == IBV_EVENT_DEVICE_FATAL && poll(&fatal, 1, 0) == 0,
       "it is DEVICE_FATAL, and the last one");
    ibv_ack_async_event(&ev);
    need(ibv_close_device(unread) == 0);
    ok(pthread_join(comp, &got) == 0 && got, "a blocked ibv_get_cq_event on an armed CQ: its event");
    ok(pthread_join(vain, &got) == 0 && got, "on a channel where nothing is armed: EIO");
    need(fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK) == 0);
    struct pollfd f = {.fd = ctx->async_fd, .events = POLLIN};
    ok(poll(&f, 1, 50) == 0 && ibv_get_async_event(ctx, &ev) == -1 && errno == EAGAIN,
       "the event comes once, then silence");

    ok(vt_send(&p, 0, 30, 0, 8, 0) == 0 && flushed(p.scq, 1, 30), "a further send is accepted and flushed");
    ok(vt_recv(&p, 0, 31, 0, 8) == 0 && flushed(p.rcq, 1, 31), "so is a receive");
    int fits = 0;
    while (vt_send(&p, 0, 40 + (uint64_t)fits, 0, 8, 0) == 0)
        fits++;
    ok(fits >= 16 && flushed(p.scq, fits, 40), "the queue still fills and empties");
    struct ibv_port_attr port;
    ok(ibv_query_port(ctx, 1, &port) == EIO && !ibv_alloc_pd(ctx) && errno == EIO &&
           vt_to_state(p.qp[0], IBV_QPS_ERR) == EIO,
       "control calls: EIO");
    need(vt_send(&p, 0, 50, 0, 8, 0) == 0);
    ok(vt_pair_end(&p) && ibv_destroy_comp_channel(ch) == 0 && ibv_destroy_comp_channel(idle) == 0 &&
           ibv_close_device(ctx) == 0,
       "everything is destroyed");
    int num;
    struct ibv_device **list = ibv_get_device_list(&num);
    ok(list && num == 0 && !list[0], "no devices any more");
    ibv_free_device_list(list);
    return vt_failed;
}
