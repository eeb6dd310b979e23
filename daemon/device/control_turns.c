// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/device/control_turns.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/json.h"
#include "daemon/base/log.h"

TAILQ_HEAD(control_turn_list, control_turn);

struct control_user {
    uid_t uid;
    unsigned connections;
    struct control_turn_list waiting; /* in the order in which they came */
    unsigned num_waiting;
    uint64_t requests, waited, longest_wait;
    TAILQ_ENTRY(control_user) link, waiting_link;
};

/* A user with so many waiting connections is worth a line in the log. */
#define CROWD 64u
#define LOG_SECONDS 60u /* at least, between two such lines */

static void serve_one(struct control_turns *t, struct control_turn *turn)
{
    turn->user->requests++;
    t->served++;
    turn->serve(turn);
}

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

/* --- waiting ----------------------------------------------------------------------------------- */

/* Takes a turn out of the list of its user. */
static void stop_waiting(struct control_turns *t, struct control_turn *turn)
{
    struct control_user *u = turn->user;

    TAILQ_REMOVE(&u->waiting, turn, link);
    u->num_waiting--;
    turn->waits = false;
    if (TAILQ_EMPTY(&u->waiting))
        TAILQ_REMOVE(&t->waiting, u, waiting_link);
    if (TAILQ_EMPTY(&t->waiting))
        ev_idle_stop(t->loop, &t->next);
}

static void serve_next(struct control_turns *t)
{
    struct control_user *u = TAILQ_FIRST(&t->waiting);
    struct control_turn *turn = TAILQ_FIRST(&u->waiting);
    uint64_t wait = t->served - u->requests - turn->others;

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
    uint64_t now = u->num_waiting < CROWD ? 0 : clock_ns();

    if (now < t->next_line || now == 0)
        return;
    t->next_line = now + LOG_SECONDS * NS_PER_S;
    log_warn("uid %u sends more control requests than the daemon serves: %u of its connections wait for their turn",
             (unsigned)u->uid, u->num_waiting);
}

void control_turn_ask(struct control_turns *t, struct control_turn *turn)
{
    struct control_user *u = turn->user;

    if (turn->waits)
        return;
    if (TAILQ_EMPTY(&t->waiting) && !slice_is_used_up(t)) {
        serve_one(t, turn);
        return;
    }
    ev_io_stop(t->loop, turn->readable);
    if (TAILQ_EMPTY(&t->waiting))
        ev_idle_start(t->loop, &t->next);
    if (TAILQ_EMPTY(&u->waiting))
        TAILQ_INSERT_TAIL(&t->waiting, u, waiting_link);
    TAILQ_INSERT_TAIL(&u->waiting, turn, link);
    u->num_waiting++;
    turn->waits = true;
    turn->others = t->served - u->requests;
    log_crowd(t, u);
}

/* --- users ------------------------------------------------------------------------------------- */

void control_turns_init(struct control_turns *t, struct ev_loop *loop)
{
    *t = (struct control_turns){.loop = loop};
    TAILQ_INIT(&t->users);
    TAILQ_INIT(&t->waiting);
    /* libev calls an idle watcher only while no event of its priority or a higher one waits. With the highest priority,
     * busy connections cannot hold it off. */
    ev_idle_init(&t->next, on_next);
    ev_set_priority(&t->next, EV_MAXPRI);
    t->next.data = t;
}

static struct control_user *find_or_add(struct control_turns *t, uid_t uid)
{
    struct control_user *u;

    TAILQ_FOREACH (u, &t->users, link) {
        if (u->uid == uid)
            return u;
    }
    u = calloc(1, sizeof(*u));
    if (!u)
        return NULL;
    u->uid = uid;
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
    if (--u->connections)
        return;
    TAILQ_REMOVE(&t->users, u, link);
    free(u);
}

json_t *control_turns_json(const struct control_turns *t, const struct user *u)
{
    const struct control_user *c;
    json_t *list = json_array();

    TAILQ_FOREACH (c, &t->users, link) {
        if (user_sees(u, c->uid))
            json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o}", "uid", json_number(c->uid), "requests",
                                                  json_number(c->requests), "waited", json_number(c->waited),
                                                  "longest_wait", json_number(c->longest_wait)));
    }
    return list;
}
