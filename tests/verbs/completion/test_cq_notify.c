// SPDX-License-Identifier: BSD-2-Clause
/* Arming a CQ that holds completions. The event comes at once, as from a NIC: its doorbell also tells the NIC what
 * was polled. Programs that poll, arm and then sleep hang without this event. A program that fetches an event, arms
 * and then polls gets no second event for the completions that it polls. */
#include "tests/verbs/vt.h"

#define PERIOD_US 60000u /* of moderation */

static struct vt_pair p;
static struct ibv_comp_channel *ch;
static struct ibv_cq_ex *ex; /* p.rcq, polled the other way */
static const char *how;

static bool is(bool held, const char *what, int line)
{
    char text[160];
    snprintf(text, sizeof(text), "%s: %s", how, what);
    return vt_ok(held, text, line);
}
#define is(held, what) is((held), (what), __LINE__)

static bool readable(int ms)
{
    struct pollfd f = {.fd = ch->fd, .events = POLLIN};
    return poll(&f, 1, ms) == 1;
}

static bool event(void)
{
    struct ibv_cq *cq;
    void *context;
    if (!readable(5000) || ibv_get_cq_event(ch, &cq, &context) || cq != p.rcq)
        return false;
    ibv_ack_cq_events(cq, 1);
    return true;
}

/* n messages that are received, and whose completions wait. */
static void arrive(int n, unsigned flags)
{
    struct ibv_wc wc;
    for (int i = 0; i < n; i++) {
        need(vt_recv(&p, 1, 1, 64, 8) == 0);
        need(vt_send(&p, 0, 2, 0, 8, IBV_SEND_SIGNALED | flags) == 0);
        need(vt_poll(p.scq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    }
    usleep(20000);
}

static int by_poll(int max)
{
    struct ibv_wc wc[8];
    return ibv_poll_cq(p.rcq, max, wc);
}

static int by_start_poll(int max)
{
    struct ibv_poll_cq_attr a = {0};
    int n = 1;
    if (ibv_start_poll(ex, &a))
        return 0;
    while (n < max && ibv_next_poll(ex) == 0)
        n++;
    ibv_end_poll(ex);
    return n;
}

static void wishes(int (*take)(int max))
{
    arrive(1, 0);
    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    is(event(), "armed while a completion waits, not told of before: an event");
    is(take(8) == 1 && take(8) == 0 && !readable(50), "one");

    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    arrive(1, 0);
    need(event() && ibv_req_notify_cq(p.rcq, 0) == 0);
    bool again = readable(50);
    is(take(8) == 1 && take(8) == 0 && !again && !readable(50), "event, arm, poll: no second event");
    arrive(1, 0);
    is(event() && take(8) == 1, "the one that was asked for is about the next completion");

    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    arrive(3, 0);
    need(event() && ibv_req_notify_cq(p.rcq, 0) == 0);
    is(take(1) == 1 && event(), "event, arm, poll one of three: another event");
    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    is(take(1) == 1 && event(), "and one more");
    is(take(8) == 1 && !readable(50), "until none waits");

    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    arrive(1, 0);
    need(take(8) == 1);
    arrive(1, 0);
    need(event() && ibv_req_notify_cq(p.rcq, 0) == 0);
    is(event() && take(8) == 1, "poll, fetch the event about what was polled, arm while another waits: an event");

    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    arrive(2, 0);
    need(event() && take(1) == 1 && ibv_req_notify_cq(p.rcq, 0) == 0);
    is(event(), "event, poll one of two, arm: another event");
    is(take(8) == 1 && !readable(50), "one");
}

static void solicited(void)
{
    how = "solicited only";
    arrive(2, 0);
    need(ibv_req_notify_cq(p.rcq, 1) == 0);
    is(!readable(50), "plain messages wait: no event");
    arrive(1, IBV_SEND_SOLICITED);
    is(event(), "a solicited one comes: an event");
    need(ibv_req_notify_cq(p.rcq, 1) == 0);
    is(by_poll(2) == 2 && event(), "it waits behind those that are polled: an event");
    is(by_poll(8) == 1 && !readable(50), "one");
    arrive(1, IBV_SEND_SOLICITED);
    need(ibv_req_notify_cq(p.rcq, 1) == 0);
    is(event() && by_poll(8) == 1, "armed while one waits: an event");
}

/* Whether the period that began at this time has ended. */
static bool is_over(double begin)
{
    return vt_now() - begin > PERIOD_US / 1e6;
}

/* Completions that wait in the CQ count like new ones. A machine that is so busy that the period is over when the test looks proves
 * nothing, and the test goes on. */
static void moderated(void)
{
    struct ibv_modify_cq_attr a = {.attr_mask = IBV_CQ_ATTR_MODERATE,
                                   .moderate = {.cq_count = 4, .cq_period = PERIOD_US}};
    how = "moderated";
    need(ibv_modify_cq(p.rcq, &a) == 0);
    double begin = vt_now();
    arrive(4, 0);
    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    bool early = readable(30);
    is((early || is_over(begin)) && event() && by_poll(8) == 4, "as many as an event is for wait: at once");
    begin = vt_now();
    arrive(1, 0);
    need(ibv_req_notify_cq(p.rcq, 0) == 0);
    early = readable(20);
    is((!early || is_over(begin)) && event() && by_poll(8) == 1, "one waits: after the period");
    a.moderate.cq_count = a.moderate.cq_period = 0;
    need(ibv_modify_cq(p.rcq, &a) == 0);
}

static void resized(void)
{
    how = "resized";
    arrive(2, 0);
    need(ibv_resize_cq(p.rcq, 200) == 0 && ibv_req_notify_cq(p.rcq, 0) == 0);
    is(event() && by_poll(8) == 2 && !readable(50), "completions that moved with the queue make an event");
}

int main(void)
{
    VT_OWN("an event for completions that were in the CQ before it was armed");
    struct ibv_context *ctx = vt_open();
    need((ch = ibv_create_comp_channel(ctx)));
    struct ibv_cq_init_attr_ex attr = {.cqe = 64, .channel = ch, .wc_flags = IBV_WC_STANDARD_FLAGS};
    need((p.scq = ibv_create_cq(ctx, 64, NULL, NULL, 0)) && (ex = ibv_create_cq_ex(ctx, &attr)));
    p.rcq = ibv_cq_ex_to_cq(ex);
    vt_pair_make(&p, ctx, NULL);
    vt_connect(&p);
    how = "ibv_poll_cq";
    wishes(by_poll);
    how = "ibv_start_poll";
    wishes(by_start_poll);
    solicited();
    moderated();
    resized();
    need(ibv_destroy_qp(p.qp[0]) == 0 && ibv_destroy_qp(p.qp[1]) == 0);
    ok(ibv_destroy_cq(p.rcq) == 0 && ibv_destroy_cq(p.scq) == 0 && ibv_destroy_comp_channel(ch) == 0, "all goes");
    return vt_failed;
}
