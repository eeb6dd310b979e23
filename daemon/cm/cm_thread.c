// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_DAEMON
#include "daemon/cm/cm_thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/cm/host/ucma_event.h"
#include "daemon/core/cm/cm.h"
#include "daemon/threads/fd_closer.h"
#include "daemon/threads/takeover.h"

/* MADs of one device that are taken in a row. The clients have their turn between. */
#define MADS_PER_TURN 64u

/* --- the loop ---------------------------------------------------------------------------------- */

/* True if MADs may be left. */
static bool receive_from(struct cm_host *h, unsigned device)
{
    const struct mad_device *m = &h->devices.info[device];
    struct cm_datagram d;

    for (unsigned i = 0; i < MADS_PER_TURN; i++) {
        if (!mad_box_next_received(h->devices.box[device], &d))
            return false;
        struct cm_route route = {
            .device = device,
            .sgid_index = d.sgid_index,
            .path_mtu = m->active_mtu,
            .node_guid = m->guid,
            .traffic_class = d.traffic_class,
            .hop_limit = d.hop_limit,
        };
        d.device = device;
        cm_rx(h->cm, &d, &route, clock_ns());
    }
    return true;
}

static void on_arrived(void *arg)
{
    struct cm_thread *t = arg;
    bool more = false;

    cm_devices_refresh(&t->host.devices);
    for (unsigned i = 0; i < t->host.devices.n; i++)
        more |= receive_from(&t->host, i);
    if (more)
        loop_wake_send(&t->arrived);
}

static void on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    struct cm_thread *t = w->data;

    (void)loop;
    (void)revents;
    cm_expire(t->host.cm, clock_ns());
}

static void send_all(struct cm_host *h)
{
    struct cm_datagram d;

    while (cm_pop_datagram(h->cm, &d))
        mad_box_send(h->devices.box[d.device], &d);
}

static void set_timer(struct cm_thread *t)
{
    uint64_t due = cm_deadline(t->host.cm), now = clock_ns();

    ev_timer_stop(t->host.loop, &t->timer);
    if (due == NEVER)
        return;
    ev_now_update(t->host.loop);
    /* libev may be early by a rounding error. A timer that is due at once would then spin. */
    ev_timer_set(&t->timer, due > now ? (double)(due - now) / (double)NS_PER_S + 0.0005 : 0., 0.);
    ev_timer_start(t->host.loop, &t->timer);
}

/* Before the loop waits: everything that the turn has made goes out. A cm_id_destroy of the first call may make
 * datagrams. */
static void finish_turn(struct cm_thread *t)
{
    ucma_events_deliver(&t->host, clock_ns());
    send_all(&t->host);
    set_timer(t);
}

static void on_turn_end(struct ev_loop *loop, ev_prepare *w, int revents)
{
    (void)loop;
    (void)revents;
    finish_turn(w->data);
}

static int watch(struct cm_thread *t)
{
    ev_timer_init(&t->timer, on_timer, 0., 0.);
    ev_prepare_init(&t->turn_ends, on_turn_end);
    ev_set_priority(&t->turn_ends, EV_MINPRI + 1); /* after all others but that of loop_activity */
    t->timer.data = t->turn_ends.data = t;
    ev_prepare_start(t->host.loop, &t->turn_ends);
    loop_activity_start(&t->loop_activity, t->host.loop, &t->activity);
    wait_limit_start(&t->wait_limit, t->host.loop);
    return loop_wake_start(&t->arrived, t->host.loop, on_arrived, t);
}

void cm_thread_turn(struct cm_thread *t)
{
    ev_run(t->host.loop, EVRUN_NOWAIT);
    finish_turn(t);
}

/* --- init and fini ----------------------------------------------------------------------------- */

static int make_instance(struct cm_thread *t, char why[ERROR_TEXT_MAX])
{
    struct cm_config cfg;

    cm_config_defaults(&cfg);
    cfg.max_ids = CM_IDS_MAX + CM_ENDING_MAX;
    if (getrandom(&cfg.secret, sizeof(cfg.secret), 0) != (ssize_t)sizeof(cfg.secret)) {
        int rc = -errno;
        snprintf(why, ERROR_TEXT_MAX, "the kernel gives no random numbers: %s", strerror(-rc));
        return rc;
    }
    t->memory_size = cm_size(&cfg);
    t->memory = mmap(NULL, t->memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (t->memory == MAP_FAILED) {
        t->memory = NULL;
        snprintf(why, ERROR_TEXT_MAX, "out of memory for connection management");
        return -ENOMEM;
    }
    t->host.cm = cm_init(t->memory, &cfg);
    return 0;
}

int cm_thread_init(struct cm_thread *t, const struct cm_thread_config *cfg, char why[ERROR_TEXT_MAX])
{
    struct cm_host *h = &t->host;

    memset(t, 0, sizeof(*t));
    h->quota = cfg->quota;
    h->pipe_limit_ms = cfg->memory_timeout_ms;
    h->devices.n = cfg->num_boxes;
    memcpy(h->devices.box, cfg->box, sizeof(h->devices.box));
    h->loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    if (!h->loop) {
        snprintf(why, ERROR_TEXT_MAX, "cannot create an event loop: %s", strerror(errno));
        return -ENOMEM;
    }
    ucma_channels_init(h);
    cm_clients_init(&t->clients, h, &t->activity, cfg->control_share);
    int rc = watch(t);
    if (rc == 0)
        rc = mailbox_init(&t->mailbox, h->loop);
    if (rc == 0)
        rc = slice_box_init(&t->slices, h->loop);
    if (rc) {
        snprintf(why, ERROR_TEXT_MAX, "cannot make an eventfd for connection management: %s", strerror(-rc));
        return rc;
    }
    for (unsigned i = 0; i < h->devices.n; i++)
        mad_box_attach(h->devices.box[i], &t->arrived);
    cm_devices_refresh(&h->devices);
    return make_instance(t, why);
}

void cm_thread_fini(struct cm_thread *t)
{
    struct cm_host *h = &t->host;

    if (!h->loop)
        return;
    for (unsigned i = 0; i < h->devices.n; i++)
        mad_box_attach(h->devices.box[i], NULL);
    cm_clients_fini(&t->clients);
    ucma_channels_end(h);
    slice_box_fini(&t->slices);
    mailbox_fini(&t->mailbox);
    ev_timer_stop(h->loop, &t->timer);
    loop_wake_stop(&t->arrived);
    wait_limit_stop(&t->wait_limit, h->loop);
    ev_prepare_stop(h->loop, &t->turn_ends);
    loop_activity_stop(&t->loop_activity, h->loop);
    ev_loop_destroy(h->loop);
    h->loop = NULL;
    if (t->memory)
        munmap(t->memory, t->memory_size);
}

/* --- the thread -------------------------------------------------------------------------------- */

static void run(void *arg)
{
    struct cm_thread *t = arg;
    struct cm_host *h = &t->host;

    h->thread = takeover_supported() ? t->thread : NULL;
    activity_turn(&t->activity, clock_ns());
    while (!t->stop)
        ev_run(h->loop, EVRUN_ONCE);
    cm_clients_fini(&t->clients);
    ucma_channels_end(h);
    send_all(h);
    activity_rest(&t->activity);
}

static void enter(void *arg)
{
    (void)arg;
    prctl(PR_SET_NAME, "cm");
}

/* A lost call only names memory that nobody looks at (cm_pipe.c). */
static bool prepare(void *arg)
{
    (void)arg;
    return true;
}

static void replaced(void *arg)
{
    (void)arg;
}

int cm_thread_start(struct cm_thread *t, char why[ERROR_TEXT_MAX])
{
    static const struct takeover_ops ops = {.run = run, .enter = enter, .prepare = prepare, .replaced = replaced};
    sigset_t all, old;

    sigfillset(&all); /* the main thread handles the signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = takeover_start(&t->thread, &ops, t, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        snprintf(why, ERROR_TEXT_MAX, "cannot start a thread: %s", strerror(-rc));
    t->running = rc == 0;
    return rc;
}

struct stop_call {
    struct mailbox_call call; /* first */
    struct cm_thread *thread;
};

static void set_stop(struct mailbox_call *call)
{
    ((struct stop_call *)(void *)call)->thread->stop = true;
}

static void keep(struct mailbox_call *call)
{
    (void)call;
}

void cm_thread_stop(struct cm_thread *t)
{
    if (!t->running)
        return;
    struct stop_call stop = {{.run = set_stop, .drop = keep}, t};
    mailbox_post(&t->mailbox, &stop.call);
    takeover_join(t->thread);
    t->thread = t->host.thread = NULL;
    t->running = false;
}

/* --- calls of other threads -------------------------------------------------------------------- */

struct take_call {
    struct mailbox_call call; /* first */
    struct cm_thread *thread;
    int sock; /* -1: the client has it */
    struct ucred cred;
};

static void take(struct mailbox_call *call)
{
    struct take_call *c = (struct take_call *)(void *)call;

    cm_client_open(&c->thread->clients, c->sock, &c->cred);
    c->sock = -1;
}

static void drop_take(struct mailbox_call *call)
{
    struct take_call *c = (struct take_call *)(void *)call;

    if (c->sock >= 0)
        fd_closer_close_socket(c->sock, c->cred.uid);
    free(c);
}

int cm_thread_take(struct cm_thread *t, int sock, const struct ucred *cred)
{
    struct take_call *c = calloc(1, sizeof(*c));

    if (!c)
        return -ENOMEM;
    *c = (struct take_call){{.run = take, .drop = drop_take}, t, sock, *cred};
    mailbox_post(&t->mailbox, &c->call);
    return 0;
}

bool cm_thread_slice(struct cm_thread *t, struct slice_job *job, uint64_t wait_ns)
{
    if (t->running)
        return slice_box_run(&t->slices, job, wait_ns);
    job->run(job);
    return true;
}
