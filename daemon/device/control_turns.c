// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/device/control_turns.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/json.h"
#include "daemon/base/log.h"

TAILQ_HEAD(control_turn_list, control_turn);

struct control_user {
    uid_t uid;
    unsigned connections;
    struct control_turn_list waiting; /* in the order in which they came */
    unsigned num_waiting;
    uint64_t requests, waited, longest_wait, busy_ns, rests;
    bool is_resting; /* its requests wait in control_turns.resting, not in .waiting */
    int64_t left_ns; /* time that its requests may still take */
    uint64_t refilled; /* when left_ns was right; clock_ns */
    TAILQ_ENTRY(control_user) link, waiting_link;
};

/* A user with so many waiting connections is worth a line in the log. */
#define CROWD 64u
#define LOG_SECONDS 60u /* at least, between two such lines */

#define REFILL_S 0.01 /* seconds between two looks at the users that rest */

/* The slice of this iteration of the loop. */
static bool slice_is_used_up(struct control_turns *t)
{
    unsigned iteration = ev_iteration(t->loop);

    if (iteration != t->iteration) {
        t->iteration = iteration;
        t->slice = slice_begin();
        return false;
    }
    return slice_is_over(&t->slice);
}

/* --- shares of the time ------------------------------------------------------------------------ */

static bool has_no_share(const struct control_turns *t, const struct control_user *u)
{
    return t->share >= 100 || u->uid == 0 || u->uid == t->self;
}

/* The most time that a user may have left: its share of a second. */
static int64_t most_time(const struct control_turns *t)
{
    return (int64_t)(NS_PER_S / 100 * t->share);
}

/* May the user's requests be served? Adds the time that has become the user's since the last call. */
static bool has_time(const struct control_turns *t, struct control_user *u)
{
    uint64_t now = clock_ns(), passed = now - u->refilled;

    u->refilled = now;
    u->left_ns += (int64_t)((passed < NS_PER_S ? passed : NS_PER_S) * t->share / 100);
    if (u->left_ns > most_time(t))
        u->left_ns = most_time(t);
    return u->left_ns > 0 || has_no_share(t, u);
}

/* True if it is time for another line of the log. */
static bool may_log(uint64_t *next)
{
    uint64_t now = clock_ns();

    if (now < *next)
        return false;
    *next = now + LOG_SECONDS * NS_PER_S;
    return true;
}

static void add_resting(struct control_turns *t, struct control_user *u)
{
    TAILQ_INSERT_TAIL(&t->resting, u, waiting_link);
    u->is_resting = true;
    u->rests++;
    if (!ev_is_active(&t->refill))
        ev_timer_again(t->loop, &t->refill);
    if (may_log(&t->next_rest_line))
        log_warn("the control requests of uid %u have taken their share of the time, %u %% (see control-share in "
                 "pumiced(8)). Now they wait",
                 (unsigned)u->uid, t->share);
}

static void add_waiting(struct control_turns *t, struct control_user *u)
{
    if (TAILQ_EMPTY(&t->waiting))
        ev_idle_start(t->loop, &t->next);
    TAILQ_INSERT_TAIL(&t->waiting, u, waiting_link);
}

/* Takes a user out of the list in which its requests wait. */
static void take_out(struct control_turns *t, struct control_user *u)
{
    TAILQ_REMOVE(u->is_resting ? &t->resting : &t->waiting, u, waiting_link);
    u->is_resting = false;
    if (TAILQ_EMPTY(&t->waiting))
        ev_idle_stop(t->loop, &t->next);
}

static void free_user(struct control_turns *t, struct control_user *u)
{
    TAILQ_REMOVE(&t->users, u, link);
    free(u);
}

/* Frees a user without connections. A user that has used time is kept until it has all its time again, so new
 * connections give it none. */
static void forget(struct control_turns *t, struct control_user *u)
{
    has_time(t, u);
    if (u->left_ns == most_time(t) || has_no_share(t, u))
        free_user(t, u);
}

static void on_refill(struct ev_loop *loop, ev_timer *w, int revents)
{
    struct control_turns *t = w->data;

    (void)revents;
    for (struct control_user *u = TAILQ_FIRST(&t->resting), *next; u; u = next) {
        next = TAILQ_NEXT(u, waiting_link);
        if (!has_time(t, u))
            continue;
        take_out(t, u);
        add_waiting(t, u);
    }
    if (TAILQ_EMPTY(&t->resting))
        ev_timer_stop(loop, w);
}

/* --- waiting ----------------------------------------------------------------------------------- */

static void serve_one(struct control_turns *t, struct control_turn *turn)
{
    struct control_user *u = turn->user;
    uint64_t begin = clock_ns(), took;

    u->requests++;
    t->served++;
    t->current = u;
    turn->serve(turn);
    t->current = NULL;
    took = clock_ns() - begin;
    u->busy_ns += took;
    u->left_ns -= (int64_t)took;
    if (!u->connections)
        forget(t, u);
}

/* Takes a turn out of the list of its user. */
static void stop_waiting(struct control_turns *t, struct control_turn *turn)
{
    struct control_user *u = turn->user;

    TAILQ_REMOVE(&u->waiting, turn, link);
    u->num_waiting--;
    turn->waits = false;
    if (TAILQ_EMPTY(&u->waiting))
        take_out(t, u);
}

static void serve_next(struct control_turns *t)
{
    struct control_user *u = TAILQ_FIRST(&t->waiting);
    struct control_turn *turn = TAILQ_FIRST(&u->waiting);
    uint64_t wait = t->served - u->requests - turn->others;

    if (!has_time(t, u)) {
        take_out(t, u);
        add_resting(t, u);
        return;
    }
    if (wait > u->longest_wait)
        u->longest_wait = wait;
    u->waited++;
    /* It is the turn of the other users now. */
    TAILQ_REMOVE(&t->waiting, u, waiting_link);
    TAILQ_INSERT_TAIL(&t->waiting, u, waiting_link);
    stop_waiting(t, turn);
    ev_io_start(t->loop, turn->readable);
    serve_one(t, turn);
}

static void on_next(struct ev_loop *loop, ev_idle *w, int revents)
{
    struct control_turns *t = w->data;

    (void)loop;
    (void)revents;
    while (!TAILQ_EMPTY(&t->waiting) && !slice_is_used_up(t))
        serve_next(t);
}

/* Many connections that wait are a program out of control, or an attack. */
static void log_crowd(struct control_turns *t, const struct control_user *u)
{
    if (u->num_waiting >= CROWD && may_log(&t->next_crowd_line))
        log_warn("uid %u sends more control requests than the daemon serves: %u of its connections wait for their turn",
                 (unsigned)u->uid, u->num_waiting);
}

void control_turn_ask(struct control_turns *t, struct control_turn *turn)
{
    struct control_user *u = turn->user;

    if (turn->waits)
        return;
    bool rests = u->is_resting || !has_time(t, u);
    if (!rests && TAILQ_EMPTY(&t->waiting) && !slice_is_used_up(t)) {
        serve_one(t, turn);
        return;
    }
    ev_io_stop(t->loop, turn->readable);
    if (TAILQ_EMPTY(&u->waiting) && rests)
        add_resting(t, u);
    else if (TAILQ_EMPTY(&u->waiting))
        add_waiting(t, u);
    TAILQ_INSERT_TAIL(&u->waiting, turn, link);
    u->num_waiting++;
    turn->waits = true;
    turn->others = t->served - u->requests;
    log_crowd(t, u);
}

/* --- users ------------------------------------------------------------------------------------- */

void control_turns_init(struct control_turns *t, struct ev_loop *loop, unsigned share)
{
    *t = (struct control_turns){.loop = loop, .share = share, .self = geteuid()};
    TAILQ_INIT(&t->users);
    TAILQ_INIT(&t->waiting);
    TAILQ_INIT(&t->resting);
    ev_init(&t->refill, on_refill);
    t->refill.repeat = REFILL_S;
    t->refill.data = t;
    /* libev calls an idle watcher only while no event of its priority or a higher one waits. With the highest priority,
     * busy connections cannot hold it off. */
    ev_idle_init(&t->next, on_next);
    ev_set_priority(&t->next, EV_MAXPRI);
    t->next.data = t;
}

void control_turns_fini(struct control_turns *t)
{
    if (!t->loop)
        return;
    ev_timer_stop(t->loop, &t->refill);
    while (!TAILQ_EMPTY(&t->users)) /* those that are kept without connections */
        free_user(t, TAILQ_FIRST(&t->users));
}

static struct control_user *find_or_add(struct control_turns *t, uid_t uid)
{
    struct control_user *u, *next;

    for (u = TAILQ_FIRST(&t->users); u; u = next) {
        next = TAILQ_NEXT(u, link);
        if (u->uid == uid)
            return u;
        if (!u->connections)
            forget(t, u);
    }
    u = calloc(1, sizeof(*u));
    if (!u)
        return NULL;
    u->uid = uid;
    u->left_ns = (int64_t)NS_PER_S; /* has_time reduces it to the share */
    u->refilled = clock_ns();
    TAILQ_INIT(&u->waiting);
    TAILQ_INSERT_TAIL(&t->users, u, link);
    return u;
}

int control_turn_init(struct control_turns *t, struct control_turn *turn, uid_t uid, ev_io *readable,
                      void (*serve)(struct control_turn *turn))
{
    struct control_user *u = find_or_add(t, uid);

    if (!u)
        return -ENOMEM;
    u->connections++;
    *turn = (struct control_turn){.user = u, .readable = readable, .serve = serve};
    return 0;
}

void control_turn_fini(struct control_turns *t, struct control_turn *turn)
{
    struct control_user *u = turn->user;

    if (!u)
        return;
    if (turn->waits)
        stop_waiting(t, turn);
    turn->user = NULL;
    if (--u->connections == 0 && u != t->current)
        forget(t, u);
}

json_t *control_turns_json(const struct control_turns *t, const struct user *u)
{
    const struct control_user *c;
    json_t *list = json_array();

    TAILQ_FOREACH (c, &t->users, link) {
        if (c->connections && user_sees(u, c->uid))
            json_array_append_new(list,
                                  json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "uid", json_number(c->uid), "requests",
                                            json_number(c->requests), "waited", json_number(c->waited), "longest_wait",
                                            json_number(c->longest_wait), "busy_ms",
                                            json_number(c->busy_ns / NS_PER_MS), "rests", json_number(c->rests)));
    }
    return list;
}
