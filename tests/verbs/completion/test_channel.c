// SPDX-License-Identifier: BSD-2-Clause
/* Completion channels: an event comes when it must, no event is lost, and a CQ waits for the acknowledgement of its
 * events. */
#include <fcntl.h>
#include <pthread.h>

#include "tests/verbs/vt.h"

static struct vt_pair p;
static struct ibv_comp_channel *ch;

static bool readable(int ms)
{
    struct pollfd f = {.fd = ch->fd, .events = POLLIN};
    return poll(&f, 1, ms) == 1;
}

static struct ibv_cq *event(void)
{
    struct ibv_cq *cq;
    void *context;
    if (!readable(5000) || ibv_get_cq_event(ch, &cq, &context))
        return NULL;
    return context == &p ? cq : NULL;
}

/* A pair whose CQs have the channel. */
static void begin(void)
{
    need((ch = ibv_create_comp_channel(vt_ctx)));
    need((p.scq = ibv_create_cq(vt_ctx, 64, &p, ch, 0)) && (p.rcq = ibv_create_cq(vt_ctx, 64, &p, ch, 0)));
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
}
static void end(void)
{
    ok(vt_pair_end(&p) && ibv_destroy_comp_channel(ch) == 0, "queue pairs, CQs and the channel go");
}

static void exchange(unsigned flags)
{
    struct ibv_wc wc;
    need(vt_recv(&p, 1, 1, 64, 8) == 0);
    need(vt_send(&p, 0, 2, 0, 8, IBV_SEND_SIGNALED | flags) == 0);
    need(vt_poll(p.scq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    need(vt_poll(p.rcq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

static void arming(void)
{
    begin();
    exchange(0);
    ok(!readable(50), "no event without asking");
    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    ok(!readable(50), "no event without a completion");
    exchange(0);
    ok(event() == p.rcq, "an event for the next completion");
    exchange(0);
    ok(!readable(50), "and for that one only");
    need(ibv_req_notify_cq(p.rcq, 1) == 0);
    exchange(0);
    ok(!readable(50), "asked for solicited: none for a plain message");
    exchange(IBV_SEND_SOLICITED);
    ok(event() == p.rcq, "one for a solicited message");
    need(ibv_req_notify_cq(p.rcq, 0) == 0 && ibv_req_notify_cq(p.rcq, 1) == 0);
    exchange(0);
    ok(event() == p.rcq, "asking for solicited doesn't take back asking for any");
    need(ibv_req_notify_cq(p.rcq, 0) == 0 && ibv_req_notify_cq(p.scq, 0) == 0);
    exchange(0);
    struct ibv_cq *a = event(), *b = event();
    ok((a == p.rcq && b == p.scq) || (a == p.scq && b == p.rcq), "two CQs on one channel");
    ibv_ack_cq_events(p.rcq, 4);
    ibv_ack_cq_events(p.scq, 1);
    end();
}

static void nonblocking(void)
{
    begin();
    struct ibv_cq *cq;
    void *context;
    int flags = fcntl(ch->fd, F_GETFL);
    need(fcntl(ch->fd, F_SETFL, flags | O_NONBLOCK) == 0);
    errno = 0;
    ok(ibv_get_cq_event(ch, &cq, &context) == -1 && errno == EAGAIN, "O_NONBLOCK: EAGAIN");
    need(fcntl(ch->fd, F_SETFL, flags) == 0);
    end();
}

/* The usual loop of an event-driven program, over many messages: arm, poll until empty, wait. */
static void *sender(void *arg)
{
    (void)arg;
    struct ibv_wc wc;
    for (int i = 0; i < 2000; i++) {
        while (vt_send(&p, 0, (uint64_t)i, 0, 8, IBV_SEND_SIGNALED) == ENOMEM)
            ibv_poll_cq(p.scq, 1, &wc);
        if (i % 7 == 0)
            usleep(100);
    }
    return NULL;
}

static void no_event_lost(void)
{
    pthread_t t;
    int got = 0, waits = 0;
    begin();
    for (int i = 0; i < 16; i++)
        need(vt_recv(&p, 1, 0, 64, 8) == 0);
    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    need(pthread_create(&t, NULL, sender, NULL) == 0);
    while (got < 2000) {
        if (!event())
            break;
        waits++;
        ibv_ack_cq_events(p.rcq, 1);
        need(ibv_req_notify_cq(p.rcq, 0) == 0);
        struct ibv_wc wc[16];
        int n;
        while ((n = ibv_poll_cq(p.rcq, 16, wc)) > 0) {
            for (int i = 0; i < n; i++)
                need(wc[i].status == IBV_WC_SUCCESS && vt_recv(&p, 1, 0, 64, 8) == 0);
            got += n;
        }
    }
    ok(got == 2000, "2000 messages by events, none lost");
    pthread_join(t, NULL);
    printf("# %d waits\n", waits);
    struct ibv_cq *cq;
    while (readable(20) && (cq = event()))
        ibv_ack_cq_events(cq, 1);
    end();
}

/* Completions that come in numbers make one event, and a lone one makes it after the period. */
static void moderation(void)
{
    struct ibv_modify_cq_attr a = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {.cq_count = 8, .cq_period = 60000}};
    struct ibv_wc wc[16];
    vt_needs(vt_ctx, VT_MODERATION);
    begin();
    struct ibv_device_attr_ex d = vt_attr(vt_ctx);
    ok_pumice(d.cq_mod_caps.max_cq_count >= 8 && d.cq_mod_caps.max_cq_period >= 60000,
              "the device can moderate events");
    if (d.cq_mod_caps.max_cq_count < 8 || d.cq_mod_caps.max_cq_period < 60000)
        vt_skip("events can't be moderated by 8 completions and 60 ms (cq_mod_caps)");
    for (int i = 0; i < 16; i++)
        need(vt_recv(&p, 1, 0, 64, 8) == 0);
    ok(ibv_modify_cq(p.rcq, &a) == 0, "8 completions, or 60 ms");
    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    double begin = vt_now();
    need(vt_send(&p, 0, 0, 0, 8, 0) == 0 && vt_poll(p.rcq, 1, wc) == 1);
    bool early = readable(20);
    ok(!early && event() == p.rcq && vt_now() - begin >= 0.05, "one completion: its event comes after the period");
    ibv_ack_cq_events(p.rcq, 1);
    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    begin = vt_now();
    for (int i = 0; i < 8; i++)
        need(vt_send(&p, 0, 0, 0, 8, 0) == 0);
    ok(event() == p.rcq && vt_now() - begin < 0.05 && vt_poll(p.rcq, 8, wc) == 8, "eight: at once");
    ibv_ack_cq_events(p.rcq, 1);
    a.moderate.cq_count = a.moderate.cq_period = 0;
    ok(ibv_modify_cq(p.rcq, &a) == 0, "no moderation");
    a.attr_mask = 1 << 5;
    ok(vt_fails(ibv_modify_cq(p.rcq, &a), EOPNOTSUPP), "unknown attributes: EOPNOTSUPP");
    end();
}

/* Destroying a CQ drops its unread events. So a program that finds the descriptor readable also finds an event. Events
 * of other CQs stay. */
static void unread(void)
{
    struct vt_pair q[2] = {{0}, {0}};
    struct ibv_cq *cq = NULL;
    struct ibv_wc wc;
    void *context;
    begin();
    for (int i = 0; i < 2; i++) {
        need((q[i].rcq = ibv_create_cq(vt_ctx, 16, &q[i], ch, 0)));
        vt_pair_make(&q[i], vt_ctx, NULL);
        vt_connect(&q[i]);
        need(vt_recv(&q[i], 1, 0, 0, 8) == 0 && ibv_req_notify_cq(q[i].rcq, 0) == 0);
        need(vt_to_state(q[i].qp[1], IBV_QPS_ERR) == 0 && vt_poll(q[i].rcq, 1, &wc) == 1 && readable(5000));
    }
    ok(vt_pair_end(&q[0]), "a CQ goes, and nobody has read its event");
    ok(readable(5000) && ibv_get_cq_event(ch, &cq, &context) == 0 && cq == q[1].rcq && context == &q[1],
       "another's is there");
    ibv_ack_cq_events(q[1].rcq, 1);
    ok(!readable(50), "and nothing else");
    need(ibv_req_notify_cq(q[1].rcq, 0) == 0 && vt_recv(&q[1], 1, 0, 0, 8) == 0);
    ok(vt_poll(q[1].rcq, 1, &wc) == 1 && readable(5000) && vt_pair_end(&q[1]), "that CQ goes likewise");
    ok(!readable(50), "nothing is left to read");
    end();
}

static _Atomic bool destroyed;
static void *destroy(void *arg)
{
    (void)arg;
    need(ibv_destroy_cq(p.rcq) == 0);
    destroyed = true;
    return NULL;
}

static void acks(void)
{
    pthread_t t;
    struct ibv_wc wc;
    begin();
    need(vt_recv(&p, 1, 1, 64, 8) == 0);
    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    need(vt_to_state(p.qp[1], IBV_QPS_ERR) == 0 && vt_poll(p.rcq, 1, &wc) == 1);
    ok(event() == p.rcq, "a flushed request makes an event too");
    ok(vt_fails(ibv_destroy_comp_channel(ch), EBUSY), "a channel with CQs is busy");
    need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0);
    need(pthread_create(&t, NULL, destroy, NULL) == 0);
    usleep(100000);
    ok(!destroyed, "destroying a CQ waits for the acknowledgement");
    ibv_ack_cq_events(p.rcq, 1);
    pthread_join(t, NULL);
    ok(destroyed, "and goes on after it");
    ok(ibv_destroy_cq(p.scq) == 0 && ibv_destroy_comp_channel(ch) == 0, "the channel goes");
    ok(ibv_dereg_mr(p.mr) == 0 && ibv_dealloc_pd(p.pd) == 0, "and the rest");
}

/* Its handle is a number that this context has given to a channel of its own. */
static void foreign(void)
{
    struct ibv_context *another = vt_open();
    struct ibv_comp_channel *theirs = ibv_create_comp_channel(another);
    need(theirs);
    struct ibv_cq_init_attr_ex a = {.cqe = 4, .channel = theirs};
    errno = 0;
    ok(vt_none(ibv_create_cq(vt_ctx, 4, NULL, theirs, 0), EINVAL), "a channel of another context: EINVAL");
    errno = 0;
    ok(vt_none(ibv_create_cq_ex(vt_ctx, &a), EINVAL), "for an extended CQ, too");
    ok(ibv_destroy_comp_channel(theirs) == 0 && ibv_close_device(another) == 0, "and nothing uses it");
}

int main(void)
{
    vt_part("a channel of another context", foreign);
    vt_part("arming", arming);
    vt_part("a descriptor that does not block", nonblocking);
    vt_part("no event is lost", no_event_lost);
    vt_part("moderation", moderation);
    vt_part("events that nobody reads", unread);
    vt_part("acknowledged events", acks);
    return vt_failed;
}
