// SPDX-License-Identifier: BSD-2-Clause
/* Users take turns with their control requests (daemon/device/control_turns.h). The connections are pipes that are always
 * readable, and each request takes the whole slice, so each iteration of the loop serves one. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/device/control_turns.h"

#define CROWD 50u /* connections of the busy user */
#define BUSY 1001u
#define QUIET 1002u

struct connection {
    struct control_turn turn; /* first */
    ev_io readable;
    uid_t uid;
    bool ends; /* it ends with its next request */
};

static struct ev_loop *loop;
static struct control_turns turns;
static struct connection crowd[CROWD], one, another;
static unsigned served[3]; /* of BUSY, of QUIET, of others */
static bool whole_slice;
static int ends[2];

static void serve(struct control_turn *turn)
{
    struct connection *c = (struct connection *)(void *)turn;
    struct slice s = slice_begin();

    served[c->uid == BUSY ? 0 : c->uid == QUIET ? 1 : 2]++;
    while (whole_slice && !slice_is_over(&s))
        continue;
    if (!c->ends)
        return;
    control_turn_fini(&turns, turn);
    ev_io_stop(loop, &c->readable);
}

static void on_readable(struct ev_loop *l, ev_io *w, int revents)
{
    (void)l;
    (void)revents;
    control_turn_ask(&turns, &((struct connection *)w->data)->turn);
}

static void open_one(struct connection *c, uid_t uid)
{
    c->uid = uid;
    cr_assert_eq(control_turn_init(&turns, &c->turn, uid, &c->readable, serve), 0);
    ev_io_init(&c->readable, on_readable, ends[0], EV_READ);
    c->readable.data = c;
    ev_io_start(loop, &c->readable);
}

static void close_one(struct connection *c)
{
    control_turn_fini(&turns, &c->turn);
    control_turn_fini(&turns, &c->turn);
    ev_io_stop(loop, &c->readable);
}

static void begin(void)
{
    log_set_level(LOG_LEVEL_ERROR);
    loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_POLL);
    cr_assert(loop && pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
    control_turns_init(&turns, loop, 100);
    whole_slice = true;
}

static void end(void)
{
    control_turns_fini(&turns);
    cr_assert(TAILQ_EMPTY(&turns.users) && TAILQ_EMPTY(&turns.waiting), "a user is left");
    cr_assert(!ev_is_active(&turns.next), "the loop would not sleep");
    close(ends[0]);
    close(ends[1]);
    ev_loop_destroy(loop);
}

TestSuite(control_turns, .init = begin, .fini = end, .timeout = 30);

static void run(unsigned iterations)
{
    while (iterations--)
        ev_run(loop, EVRUN_NOWAIT);
}

/* A count in the row of the user. */
static json_int_t count(uid_t uid, const char *name)
{
    const struct user all = {.known = true, .administers = true};
    json_t *list = control_turns_json(&turns, &all), *row;
    json_int_t n = -1;
    size_t i;

    json_array_foreach (list, i, row) {
        if (json_integer_value(json_object_get(row, "uid")) == (json_int_t)uid)
            n = json_integer_value(json_object_get(row, name));
    }
    json_decref(list);
    return n;
}

Test(control_turns, a_user_with_many_connections_does_not_hold_up_another)
{
    for (unsigned i = 0; i < CROWD; i++)
        open_one(&crowd[i], BUSY);
    run(2 * CROWD);
    cr_assert_eq(served[0], 2 * CROWD, "a single user gets all turns, one in each iteration, not %u", served[0]);
    open_one(&one, QUIET);
    served[0] = 0;
    run(300);
    cr_assert_geq(served[1], 99, "the quiet user got %u turns, the busy one %u", served[1], served[0]);
    cr_assert_geq(served[0], 99, "the busy user got %u turns, the quiet one %u", served[0], served[1]);
    cr_assert_leq(count(QUIET, "longest_wait"), 1, "requests of the other before one of the quiet user");
    cr_assert_leq(count(BUSY, "longest_wait"), (json_int_t)served[1]);
    cr_assert_geq(count(BUSY, "waited"), 200);
    for (unsigned i = 0; i < CROWD; i++)
        close_one(&crowd[i]);
    close_one(&one);
}

Test(control_turns, three_users_take_turns)
{
    for (unsigned i = 0; i < CROWD; i++)
        open_one(&crowd[i], i % 2 ? BUSY : QUIET);
    open_one(&another, 7);
    run(300);
    cr_assert_geq(served[2], 70, "one connection of three users got %u turns", served[2]);
    cr_assert_leq(count(7, "longest_wait"), 2);
    for (unsigned i = 0; i < CROWD; i++)
        close_one(&crowd[i]);
    close_one(&another);
}

Test(control_turns, requests_are_served_at_once_while_nobody_waits)
{
    whole_slice = false;
    open_one(&one, QUIET);
    for (unsigned i = 0; i < 100; i++) {
        ev_run(loop, EVRUN_NOWAIT);
        cr_assert_eq(served[1], i + 1);
        cr_assert(!one.turn.waits && !ev_is_active(&turns.next));
    }
    cr_assert_eq(count(QUIET, "waited"), 0);
    close_one(&one);
}

Test(control_turns, a_connection_ends_with_its_request_and_while_it_waits)
{
    for (unsigned i = 0; i < 4; i++)
        open_one(&crowd[i], BUSY);
    crowd[0].ends = crowd[1].ends = true;
    run(2);
    cr_assert_eq(served[0], 2);
    cr_assert(crowd[2].turn.waits && crowd[3].turn.waits);
    close_one(&crowd[2]);
    run(3);
    cr_assert_geq(served[0], 4, "the last connection goes on");
    close_one(&crowd[3]);
}

Test(control_turns, a_user_sees_its_own_counts)
{
    const struct user quiet = {.uid = QUIET, .known = true};

    open_one(&one, QUIET);
    open_one(&another, BUSY);
    json_t *list = control_turns_json(&turns, &quiet);
    cr_assert_eq(json_array_size(list), 1);
    cr_assert_eq(json_integer_value(json_object_get(json_array_get(list, 0), "uid")), QUIET);
    json_decref(list);
    close_one(&one);
    close_one(&another);
}

#define SHARE 10u

/* Lets the loop run for some time, with requests of the busy user all the time. Returns the nanoseconds that passed. */
static uint64_t run_for(uint64_t ns)
{
    uint64_t begin = clock_ns();

    while (clock_ns() - begin < ns)
        ev_run(loop, EVRUN_ONCE);
    return clock_ns() - begin;
}

/* The most milliseconds that a user may have in this time: its share of it, that of a second before, and a request. */
static json_int_t most_ms(uint64_t ns)
{
    return (json_int_t)((ns + NS_PER_S) / NS_PER_MS * SHARE / 100 + 1);
}

Test(control_turns, a_user_that_has_used_its_share_rests)
{
    turns.share = SHARE;
    for (unsigned i = 0; i < CROWD; i++)
        open_one(&crowd[i], BUSY);
    uint64_t ns = run_for(NS_PER_S / 2);
    cr_expect_leq(count(BUSY, "busy_ms"), most_ms(ns) + 100, "%lld ms", (long long)count(BUSY, "busy_ms"));
    cr_expect_geq(count(BUSY, "rests"), 1);
    while (ev_is_active(&turns.next))
        ev_run(loop, EVRUN_ONCE);
    cr_expect(!TAILQ_EMPTY(&turns.resting), "the loop sleeps while the only user rests");
    open_one(&one, QUIET);
    whole_slice = false;
    run(100);
    cr_expect_geq(served[1], 100, "another user is not held up");
    cr_expect_eq(count(QUIET, "longest_wait"), 0);
    close_one(&one);
    /* It rests, and then it goes on. The rest is long if other programs had the processors during a slice. */
    unsigned before = served[0];
    for (int i = 0; i < 40 && served[0] == before; i++)
        run_for(NS_PER_S / 2);
    cr_expect_gt(served[0], before);
    for (unsigned i = 0; i < CROWD; i++)
        close_one(&crowd[i]);
}

Test(control_turns, new_connections_give_a_user_no_time)
{
    uint64_t ns = 0;

    turns.share = SHARE;
    while (ns < NS_PER_S / 2) {
        open_one(&one, BUSY);
        one.ends = true;
        ns += run_for(NS_PER_MS / 10);
        close_one(&one);
    }
    cr_expect_leq(served[0] * (SLICE_NS / 1000), (uint64_t)most_ms(ns) * 1000);
}

Test(control_turns, root_and_the_daemons_user_have_no_share)
{
    turns.share = SHARE;
    turns.self = BUSY;
    open_one(&one, BUSY);
    open_one(&another, 0);
    run(4000); /* a quarter of a millisecond each */
    cr_expect_eq(served[0] + served[2], 4000);
    cr_expect_eq(count(BUSY, "rests") + count(0, "rests"), 0);
    close_one(&one);
    close_one(&another);
}
