// SPDX-License-Identifier: BSD-2-Clause
/* The order of control requests in one event loop. Users take turns, however many connections each of them has, and the
 * requests of all users together take one slice (slice.h) of each iteration of the loop. So a user who sends requests as
 * fast as it can holds up neither the packets of others nor their requests.
 *
 * Nothing is refused. A request that has to wait stays in its socket: the loop does not watch the socket meanwhile.
 *
 * The requests of one user may take only a share of the time, also while nobody else wants the loop. A user that has
 * used its share rests: its requests wait until enough time has passed. Root and the daemon's own user never rest.
 *
 * While nobody waits, a request is served at once. All calls are made in the thread of the loop. */
#ifndef PUMICE_DAEMON_DEVICE_CONTROL_TURNS_H
#define PUMICE_DAEMON_DEVICE_CONTROL_TURNS_H

#include <ev.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/base/slice.h"
#include "daemon/base/user.h"

struct control_user;
TAILQ_HEAD(control_users, control_user);

struct control_turns {
    struct ev_loop *loop;
    struct control_users users; /* all that have connections, or have used much of their time */
    struct control_users waiting; /* those that have requests which wait, in the order of their turns */
    uint64_t served; /* requests of all users */
    unsigned iteration; /* of the loop, to which the slice belongs */
    struct slice slice;
    /* The times of the next lines in the log, about users that wait and that rest; clock_ns. */
    uint64_t next_crowd_line, next_rest_line;
    ev_idle next; /* active while a request waits: the loop does not sleep then */
    unsigned share; /* per cent of the time for each user; 100: no limit */
    uid_t self; /* the daemon's user */
    struct control_users resting; /* those that have requests which wait, and no time left */
    struct control_user *current; /* whose request is served; NULL: none */
    ev_timer refill; /* active while a user rests */
};

/* One connection, usually a member of a larger struct. */
struct control_turn {
    struct control_user *user; /* NULL: control_turn_fini was called */
    ev_io *readable; /* the watcher of its socket */
    /* Reads and executes one request. It may end the connection, and with it this turn. */
    void (*serve)(struct control_turn *turn);
    bool waits;
    uint64_t others; /* requests of other users that were served before it began to wait */
    TAILQ_ENTRY(control_turn) link;
};

/* share: per cent of the time that the requests of one user may take, 1 … 100. A user may take the share of a whole
 * second at once. */
void control_turns_init(struct control_turns *t, struct ev_loop *loop, unsigned share);
/* All connections must have been removed. */
void control_turns_fini(struct control_turns *t);

/* Adds a connection of the user. 0 or -ENOMEM. */
int control_turn_init(struct control_turns *t, struct control_turn *turn, uid_t uid, ev_io *readable,
                      void (*serve)(struct control_turn *turn));
/* Removes it. May be called again, or for a turn that is all zeros. */
void control_turn_fini(struct control_turns *t, struct control_turn *turn);

/* To be called when the socket is readable: serves a request now, or later. */
void control_turn_ask(struct control_turns *t, struct control_turn *turn);

/* For each user that u may see: "requests" that were served, those of them that "waited", "longest_wait": the largest
 * number of requests of other users that were served while one of this user waited; "busy_ms": the time that its
 * requests took; "rests": how often it had to rest. */
json_t *control_turns_json(const struct control_turns *t, const struct user *u);

#endif
