// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/server.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/event_loop.h"
#include "daemon/base/log.h"
#include "daemon/control/dispatch.h"
#include "daemon/loop/device_setup.h"
#include "daemon/monitor/capture.h"
#include "daemon/monitor/metrics.h"
#include "daemon/monitor/sysfs.h"
#include "daemon/sandbox/sandbox.h"
#include "daemon/server/capacity.h"
#include "daemon/server/cm_call.h"
#include "daemon/server/confinement.h"
#include "daemon/server/open_call.h"
#include "daemon/server/query.h"
#include "daemon/session/control_msg.h"
#include "daemon/threads/fd_closer.h"
#include "daemon/threads/file_thread.h"
#include "daemon/threads/socket_reaper.h"

struct connection {
    struct control_turn turn; /* first */
    struct server *server;
    TAILQ_ENTRY(connection) link;
    struct quota_owner owner; /* pays for it */
    int refused; /* -errno: the user may have no more connections. 0: the connection is counted */
    char why[QUOTA_WHY_MAX]; /* of that */
    int sock;
    struct ucred cred;
    struct capture *capture; /* capture of this connection; NULL: none */
    ev_io readable;
    ev_timer silent;
};

static void drop(struct connection *c)
{
    struct server *sv = c->server;

    if (c->capture)
        capture_end(c->capture);
    control_turn_fini(&sv->turns, &c->turn);
    ev_io_stop(sv->loop, &c->readable);
    ev_timer_stop(sv->loop, &c->silent);
    TAILQ_REMOVE(c->refused ? &sv->refused : &sv->connections, c, link);
    if (c->refused)
        sv->num_refused--;
    else
        quota_release(&c->owner, QUOTA_CONNECTIONS);
    if (c->sock >= 0)
        fd_closer_close_socket(c->sock, c->cred.uid);
    free(c);
}

/* --- operations -------------------------------------------------------------------------------- */

/* For operations that concern all users. 0: the client administers the daemon. task: what it wants to do. advice: what
 * another user can do instead. */
static int require_administrator(const struct connection *c, const char *task, const char *advice,
                                 struct control_reply *rp)
{
    const struct user u = user_of(c->cred.uid);

    if (u.administers)
        return 0;
    return control_fail(rp, -EPERM, "only the daemon's user (uid %u) and root may %s; you are uid %u: %s",
                        (unsigned)geteuid(), task, (unsigned)u.uid, advice);
}

static int set_fault(struct server *sv, const struct connection *c, const struct pm_fault_req *r,
                     struct control_reply *rp)
{
    char why[FAULT_WHY_MAX];

    int refused = require_administrator(c, "inject faults, because they hit the packets of all users",
                                        "use sudo, or a daemon of your own, as `pumice run --fault` starts it", rp);
    if (refused)
        return refused;
    if (memchr(r->spec, 0, sizeof(r->spec)) == NULL || memchr(r->script, 0, sizeof(r->script)) == NULL)
        return control_fail(rp, -EINVAL, "the fault specification is not terminated by a NUL");
    const struct device_faults f = {r->spec, r->script, r->seed, r->host, r->hosts, r->start_ns};
    int rc = device_set_inject(&sv->devices, &f, why);
    return rc ? control_fail(rp, rc, "%s", why) : 0;
}

static int capture(struct server *sv, struct connection *c, const struct pm_capture_req *r, struct control_reply *rp)
{
    int refused = require_administrator(c, "capture, because a capture shows the data of all users",
                                        "use sudo, or a daemon of your own, as `pumice run --capture` starts it", rp);
    if (refused)
        return refused;
    if (r->device >= sv->devices.n)
        return control_fail(rp, -ENODEV, "no device %u: the daemon has %u", r->device, sv->devices.n);
    if (c->capture)
        return control_fail(rp, -EBUSY, "this connection already has a capture");
    c->capture = capture_create(sv->devices.device[r->device], r, rp);
    if (!c->capture)
        return rp->status;
    if (!capture_begin(c->capture)) {
        c->capture = NULL;
        return device_is_late(sv->devices.device[r->device], rp);
    }
    ev_timer_stop(sv->loop, &c->silent); /* it will ask for nothing more */
    log_info("pid %d captures at %s", (int)c->cred.pid, c->capture->device->name);
    return 0;
}

static int shut_down(struct server *sv, const struct connection *c, struct control_reply *rp)
{
    int refused = require_administrator(c, "stop the daemon", "use sudo, or ask the administrator", rp);
    if (refused)
        return refused;
    ev_break(sv->loop, EVBREAK_ALL);
    return 0;
}

/* --- the status -------------------------------------------------------------------------------- */

/* A request of a connection for PM_OP_STATUS, PM_OP_TM or PM_OP_LAYOUT. Its socket is not watched until the answer is
 * there. */
struct status_call {
    struct status_request request; /* first: call_of */
    struct connection *connection;
    struct user user;
    uint32_t op;
    union {
        struct pm_tm_req tm;
        struct pm_layout_req layout;
    };
    json_t *daemon; /* PM_OP_STATUS */
    bool made; /* there is a reply */
    struct control_reply reply;
};

static struct status_call *call_of(struct status_request *r)
{
    return (struct status_call *)(void *)r;
}

static void make_status(struct status_request *r)
{
    struct status_call *call = call_of(r);
    const struct query_sources *sources = &call->connection->server->sources;

    if (call->op == PM_OP_TM)
        call->reply.status = query_tags(sources->devices, &call->user, &call->tm, &call->reply);
    else if (call->op == PM_OP_LAYOUT)
        call->reply.status = query_layouts(sources->devices, &call->user, &call->layout, &call->reply);
    else
        call->reply.status = query_status(sources, &call->user, json_incref(call->daemon), &call->reply);
    call->made = true;
}

static void watch_again(struct connection *c)
{
    struct ev_loop *loop = c->server->loop;

    ev_io_start(loop, &c->readable);
    if (!c->capture)
        ev_timer_again(loop, &c->silent);
}

static void take_status(struct status_request *r)
{
    struct status_call *call = call_of(r);
    struct connection *c = call->connection;

    if (call->made && control_send(c->sock, &call->reply))
        watch_again(c);
    else
        drop(c); /* the client has gone, or the daemon ends */
    json_decref(call->daemon);
    free(call);
}

static bool is_status(const struct control_request *rq)
{
    return (rq->op == PM_OP_STATUS && rq->len == 0) || (rq->op == PM_OP_TM && rq->len == sizeof(struct pm_tm_req)) ||
           (rq->op == PM_OP_LAYOUT && rq->len == sizeof(struct pm_layout_req));
}

/* Asks the status thread. False: out of memory, with a reply. */
static bool ask_status(struct connection *c, const struct control_request *rq, struct control_reply *rp)
{
    struct status_call *call = calloc(1, sizeof(*call));
    struct server *sv = c->server;

    if (!call) {
        rp->status = control_fail(rp, -ENOMEM, "the daemon is out of memory");
        return false;
    }
    call->user = user_of(c->cred.uid);
    call->op = rq->op;
    if (rq->op == PM_OP_TM)
        memcpy(&call->tm, rq->payload, sizeof(call->tm));
    else if (rq->op == PM_OP_LAYOUT)
        memcpy(&call->layout, rq->payload, sizeof(call->layout));
    else
        call->daemon = query_daemon(&sv->devices, &sv->quota, &sv->turns, &call->user, &sv->watchdog, sv->listener.path,
                                    sv->started);
    call->request.uid = c->cred.uid;
    call->request.make = make_status;
    call->request.take = take_status;
    call->connection = c;
    ev_io_stop(sv->loop, &c->readable);
    ev_timer_stop(sv->loop, &c->silent); /* it waits, and is not silent */
    status_thread_ask(&sv->status, &call->request);
    return true;
}

/* --- opening a session ------------------------------------------------------------------------- */

/* Returns true if the connection now belongs to a session. */
static bool open_session(struct connection *c, struct control_request *rq, struct control_reply *rp)
{
    struct server *sv = c->server;
    const struct pm_open_req *r = (const struct pm_open_req *)rq->payload;

    if (r->abi_version != PM_ABI_VERSION) {
        rp->status =
            control_fail(rp, -EPROTO, "ABI versions differ: client library %u, daemon %u; use both from one release",
                         r->abi_version, PM_ABI_VERSION);
        return false;
    }
    if (r->device >= sv->devices.n) {
        rp->status = control_fail(rp, -ENODEV, "no device %u: the daemon has %u", r->device, sv->devices.n);
        return false;
    }
    /* The main loop must not use the socket while the device's thread has it. */
    ev_io_stop(sv->loop, &c->readable);
    struct client_fds fds = {.mem = control_take_fd(rq)};
    fds.maps = control_take_fd(rq);
    if (open_call(sv->devices.device[r->device], c->sock, &c->cred, r, fds, rp)) {
        c->sock = -1;
        drop(c);
        return true;
    }
    ev_io_start(sv->loop, &c->readable);
    return false;
}

/* As open_session, with the connection management thread. */
static bool open_cm(struct connection *c, const struct control_request *rq, struct control_reply *rp)
{
    ev_io_stop(c->server->loop, &c->readable);
    if (cm_call_open(&c->server->cm, c->sock, &c->cred, rq->payload, rp)) {
        c->sock = -1;
        drop(c);
        return true;
    }
    ev_io_start(c->server->loop, &c->readable);
    return false;
}

/* --- requests ---------------------------------------------------------------------------------- */

static int dispatch(struct connection *c, const struct control_request *rq, struct control_reply *rp)
{
    struct server *sv = c->server;

    if (rq->op == PM_OP_FAULT && rq->len == sizeof(struct pm_fault_req))
        return set_fault(sv, c, (const struct pm_fault_req *)rq->payload, rp);
    if (rq->op == PM_OP_CHECK && rq->len == sizeof(struct pm_check_req))
        return query_check(&sv->devices, (const struct pm_check_req *)rq->payload, rp);
    if (rq->op == PM_OP_COUNTER && rq->len == sizeof(struct pm_counter_req))
        return query_counter(&sv->devices, (const struct pm_counter_req *)rq->payload, rp);
    if (rq->op == PM_OP_CAPTURE && rq->len == sizeof(struct pm_capture_req))
        return capture(sv, c, (const struct pm_capture_req *)rq->payload, rp);
    if (rq->len)
        return control_fail(rp, -EINVAL,
                            "operation %u with %u bytes: open a device first, or send the operation's length", rq->op,
                            rq->len);
    switch (rq->op) {
    case PM_OP_LIST:
        device_set_list(&sv->devices, control_payload(rp, sizeof(struct pm_list_rep)));
        return 0;
    case PM_OP_TURN:
        *(struct pm_turn_rep *)control_payload(rp, sizeof(struct pm_turn_rep)) =
            (struct pm_turn_rep){sv->devices.turns++};
        return 0;
    case PM_OP_SHUTDOWN:
        return shut_down(sv, c, rp);
    default:
        return control_fail(rp, -EINVAL, "operation %u: open a device first", rq->op);
    }
}

static void serve(struct control_turn *turn)
{
    struct connection *c = (struct connection *)(void *)turn;
    struct server *sv = c->server;
    struct control_request rq;
    struct control_reply rp = {.status = 0, .len = 0, .fds = 0};
    bool gone = false; /* the reply is sent elsewhere */
    int rc = control_recv(c->sock, c->cred.uid, &rq);

    if (rc == 0)
        return;
    if (rc < 0) {
        drop(c);
        return;
    }
    activity_begin(&sv->activity, control_op_name(rq.op), 0, c->cred.pid);
    if (!c->capture)
        ev_timer_again(sv->loop, &c->silent);
    if (c->refused)
        rp.status = control_fail(&rp, c->refused, "%s", c->why);
    else if (is_status(&rq))
        gone = ask_status(c, &rq, &rp);
    else if (rq.op == PM_OP_OPEN && rq.len == sizeof(struct pm_open_req))
        gone = open_session(c, &rq, &rp);
    else if (rq.op == PM_OP_CM_OPEN && rq.len == sizeof(struct pm_cm_open_req))
        gone = open_cm(c, &rq, &rp);
    else
        rp.status = dispatch(c, &rq, &rp);
    activity_done(&sv->activity);
    control_request_fini(&rq);
    if (!gone && (!control_send(c->sock, &rp) || c->refused))
        drop(c);
}

static void on_request(struct ev_loop *loop, ev_io *w, int revents)
{
    struct connection *c = w->data;

    (void)loop;
    if (revents & EV_ERROR)
        drop(c);
    else
        control_turn_ask(&c->server->turns, &c->turn);
}

/* The connection asked for nothing and opened no device in the time that it has for that. */
static void on_silent(struct ev_loop *loop, ev_timer *w, int revents)
{
    struct connection *c = w->data;
    char byte;

    (void)loop;
    (void)revents;
    /* This thread may have been too busy to read a request. */
    if (recv(c->sock, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) > 0)
        return;
    log_warn("closed a connection of uid %u (pid %d), which asked for nothing and opened no device for %u s",
             (unsigned)c->cred.uid, (int)c->cred.pid, c->server->settings->handshake_s);
    drop(c);
}

/* --- accepting --------------------------------------------------------------------------------- */

/* Puts the connection into its list: of those that the quota of the user allows, or of those that are refused. Such a
 * connection gets its answer with its first request, because a client does not read before it has sent. */
static void count(struct connection *c)
{
    struct server *sv = c->server;

    c->owner = (struct quota_owner){&sv->quota, c->cred.uid, 0};
    c->refused = quota_charge(&c->owner, QUOTA_CONNECTIONS, c->why);
    TAILQ_INSERT_TAIL(c->refused ? &sv->refused : &sv->connections, c, link);
    if (c->refused && ++sv->num_refused > CAPACITY_REFUSED)
        drop(TAILQ_FIRST(&sv->refused));
}

static void admit(struct server *sv, int sock)
{
    struct connection *c;
    struct ucred cred = {.uid = (uid_t)-1};
    socklen_t len = sizeof(cred);

    if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 || !listener_admits(&sv->listener, sock, &cred)) {
        log_warn("refused a connection: its user may not use this daemon (--group admits a group)");
        fd_closer_close_socket(sock, cred.uid);
        return;
    }
    c = calloc(1, sizeof(*c));
    if (!c || control_turn_init(&sv->turns, &c->turn, cred.uid, &c->readable, serve) != 0) {
        free(c);
        fd_closer_close_socket(sock, cred.uid);
        return;
    }
    c->server = sv;
    c->sock = sock;
    c->cred = cred;
    ev_io_init(&c->readable, on_request, sock, EV_READ);
    ev_timer_init(&c->silent, on_silent, sv->settings->handshake_s, sv->settings->handshake_s);
    c->readable.data = c->silent.data = c;
    ev_io_start(sv->loop, &c->readable);
    ev_timer_start(sv->loop, &c->silent);
    count(c);
    idle_exit_used(&sv->idle_exit);
}

/* Connections that are accepted in one turn of the loop. There may always be another one. */
#define ACCEPTS 64u

/* Stops accepting for a while. The socket stays readable, so an immediate retry would spin. */
static void pause_accepting(struct server *sv, const char *why)
{
    log_warn("accepting no connections for 0.2 s: %s", why);
    ev_io_stop(sv->loop, &sv->acceptable);
    ev_timer_start(sv->loop, &sv->accept_again);
}

static void on_accept(struct ev_loop *loop, ev_io *w, int revents)
{
    struct server *sv = w->data;

    event_loop_rewatch(loop, w, revents);
    if (quota_excess_files(&sv->quota) > CAPACITY_REFUSED)
        pause_accepting(sv, "too many descriptors of clients can't be closed");
    for (unsigned i = 0; i < ACCEPTS && ev_is_active(w); i++) {
        int sock = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (sock < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
                pause_accepting(sv, strerror(errno));
            return;
        }
        admit(sv, sock);
    }
}

static void on_accept_again(struct ev_loop *loop, ev_timer *w, int revents)
{
    struct server *sv = w->data;

    (void)revents;
    ev_io_start(loop, &sv->acceptable);
    ev_timer_set(w, 0.2, 0);
}

static void on_signal(struct ev_loop *loop, ev_signal *w, int revents)
{
    (void)revents;
    log_info("signal %d: ending", w->signum);
    ev_break(loop, EVBREAK_ALL);
}

/* --- start and end ----------------------------------------------------------------------------- */

static void watch(struct server *sv)
{
    ev_io_init(&sv->acceptable, on_accept, sv->listener.fd, EV_READ);
    ev_timer_init(&sv->accept_again, on_accept_again, 0.2, 0);
    ev_signal_init(&sv->sigterm, on_signal, SIGTERM);
    ev_signal_init(&sv->sigint, on_signal, SIGINT);
    sv->acceptable.data = sv->accept_again.data = sv->sigterm.data = sv->sigint.data = sv;
    loop_activity_start(&sv->loop_activity, sv->loop, &sv->activity);
    ev_io_start(sv->loop, &sv->acceptable);
    ev_signal_start(sv->loop, &sv->sigterm);
    ev_signal_start(sv->loop, &sv->sigint);
    idle_exit_start(&sv->idle_exit, sv->loop, &sv->quota, sv->settings->idle_exit_s);
}

/* From here on, everything that clients ask for is counted. */
static void count_users(struct server *sv)
{
    uint64_t capacity[QUOTA_KINDS];

    capacity_read(capacity);
    quota_init(&sv->quota, &sv->settings->quota, capacity);
    for (unsigned i = 0; i < sv->devices.n; i++)
        sv->devices.device[i]->quota = &sv->quota;
    fd_closer_set_quota(&sv->quota);
}

static int start_watchdog(struct server *sv, char why[ERROR_TEXT_MAX])
{
    watchdog_add(&sv->watchdog, "main", &sv->activity);
    watchdog_add(&sv->watchdog, "cm", &sv->cm.activity);
    for (unsigned i = 0; i < sv->devices.n; i++)
        watchdog_add(&sv->watchdog, sv->devices.device[i]->name, &sv->devices.device[i]->activity);
    return watchdog_start(&sv->watchdog, why);
}

/* Starts all threads, in the order that sandbox.h asks for. */
static int start_threads(struct server *sv, const struct settings *s, char why[ERROR_TEXT_MAX])
{
    int rc = 0;

    confinement_begin(s, sv->listener.path);
    log_start(sandbox_enter_files);
    if (!confinement_covers_devices(s))
        rc = device_set_start(&sv->devices, s, why);
    sandbox_enter_main();
    if (rc == 0 && confinement_covers_devices(s))
        rc = device_set_start(&sv->devices, s, why);
    if (rc)
        return rc == -EINVAL ? EXIT_BAD_CONFIG : EXIT_TROUBLE;
    watch(sv);
    socket_reaper_start();
    if (cm_call_start(&sv->cm, &sv->devices, &sv->quota, s, why) || start_watchdog(sv, why) ||
        status_thread_start(&sv->status, sv->loop, why) || metrics_start(sv->metrics, why))
        return EXIT_TROUBLE;
    return EXIT_DONE;
}

int server_init(struct server *sv, struct settings *s, char why[ERROR_TEXT_MAX])
{
    memset(sv, 0, sizeof(*sv));
    sv->settings = s;
    sv->listener.fd = -1;
    sv->started = clock_ns();
    snprintf(sv->devices.fault, sizeof(sv->devices.fault), "%s", s->fault);
    sv->devices.seed = s->seed;
    TAILQ_INIT(&sv->connections);
    TAILQ_INIT(&sv->refused);
    event_loop_guard();
    json_object_seed(0); /* must precede the threads that use it */
    /* Not epoll: epoll watches a socket until it is closed. So this loop would wake once more for a socket that
     * already belongs to its device, and touch it. */
    sv->loop = ev_default_loop(EVFLAG_NOENV | EVBACKEND_POLL);
    if (!sv->loop) {
        snprintf(why, ERROR_TEXT_MAX, "cannot create an event loop: %s", strerror(errno));
        return EXIT_TROUBLE;
    }
    control_turns_init(&sv->turns, sv->loop, s->control_share);
    int rc = device_set_open(&sv->devices, s, why);
    if (rc)
        return rc == -ENOMEM ? EXIT_TROUBLE : EXIT_ADDRESS;
    if (listener_open(&sv->listener, s, why) != 0)
        return EXIT_SOCKET;
    count_users(sv);
    sysfs_create(sv->listener.path, sv->devices.device, sv->devices.n);
    sv->sources = (struct query_sources){&sv->devices, &sv->cm};
    if (addr_port(&s->metrics)) {
        sv->metrics = metrics_open(&s->metrics, query_objects, &sv->sources, why);
        if (!sv->metrics)
            return EXIT_SOCKET;
    }
    rc = start_threads(sv, s, why);
    if (rc)
        return rc;
    log_info("listening at %s", sv->listener.path);
    return EXIT_DONE;
}

void server_run(struct server *sv)
{
    ev_run(sv->loop, 0);
}

void server_fini(struct server *sv)
{
    if (listener_owns_path(&sv->listener))
        sysfs_remove(sv->listener.path);
    listener_close(&sv->listener);
    activity_rest(&sv->activity); /* its last turn takes as long as the end */
    watchdog_end_within(&sv->watchdog, WATCHDOG_END_S);
    status_thread_stop(&sv->status);
    metrics_close(sv->metrics); /* needs the devices, so it comes before their end */
    /* Needs the devices too: a connection may capture at one. */
    while (!TAILQ_EMPTY(&sv->connections))
        drop(TAILQ_FIRST(&sv->connections));
    while (!TAILQ_EMPTY(&sv->refused))
        drop(TAILQ_FIRST(&sv->refused));
    control_turns_fini(&sv->turns);
    cm_thread_stop(&sv->cm); /* before the devices: their threads send its last messages */
    device_set_stop(&sv->devices);
    watchdog_forget_devices(&sv->watchdog); /* because their activities are freed */
    cm_thread_fini(&sv->cm);
    device_set_close(&sv->devices);
    fd_closer_set_quota(NULL);
    socket_reaper_stop();
    quota_fini(&sv->quota);
    file_thread_stop();
    watchdog_stop(&sv->watchdog);
    if (sv->loop)
        ev_loop_destroy(sv->loop);
}
