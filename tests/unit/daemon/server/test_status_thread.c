// SPDX-License-Identifier: BSD-2-Clause
/* The status thread: the loop goes on while an answer is made, and users take turns. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <unistd.h>

#include "daemon/server/status_thread.h"
#include "daemon/status/object_walk.h"

static struct status_thread t;
static struct ev_loop *loop;

struct request {
    struct status_request request;
    unsigned order; /* in which it was made; 0: it was not */
    bool taken;
};

static _Atomic bool go;
static _Atomic unsigned made;
static unsigned taken;

static void make(struct status_request *r)
{
    while (!atomic_load(&go))
        usleep(1000);
    ((struct request *)r)->order = atomic_fetch_add(&made, 1) + 1;
}

static void take(struct status_request *r)
{
    ((struct request *)r)->taken = true;
    taken++;
}

static void ask(struct request *r, uid_t uid)
{
    r->request = (struct status_request){.uid = uid, .make = make, .take = take};
    status_thread_ask(&t, &r->request);
}

static void start(void)
{
    char why[ERROR_TEXT_MAX];

    loop = ev_loop_new(EVFLAG_NOENV);
    cr_assert_eq(status_thread_start(&t, loop, why), 0);
}

static void finish(void)
{
    status_thread_stop(&t);
    ev_loop_destroy(loop);
}

TestSuite(status_thread, .init = start, .fini = finish, .timeout = 30);

Test(status_thread, the_loop_goes_on)
{
    struct request r = {0};

    ask(&r, 1);
    for (unsigned i = 0; i < 10; i++)
        ev_run(loop, EVRUN_NOWAIT);
    cr_expect_not(r.taken);
    atomic_store(&go, true);
    for (unsigned i = 0; i < 1000 && !taken; i++) {
        usleep(1000);
        ev_run(loop, EVRUN_NOWAIT);
    }
    cr_expect(r.taken);
}

/* One user asks a hundred times. The second user waits for one answer, or for two if the first was just begun. */
Test(status_thread, users_take_turns)
{
    static struct request many[100], one;

    for (unsigned i = 0; i < 100; i++)
        ask(&many[i], 1);
    ask(&one, 2);
    atomic_store(&go, true);
    for (unsigned i = 0; i < 5000 && taken < 101; i++) {
        usleep(1000);
        ev_run(loop, EVRUN_NOWAIT);
    }
    cr_assert_eq(taken, 101);
    cr_expect_leq(one.order, 3, "it was number %u", one.order);
    cr_expect_lt(many[10].order, many[11].order, "those of one user stay in order");
}

/* At the end of the daemon every request comes back, made or not. */
Test(status_thread, the_end)
{
    static struct request r[5];

    for (unsigned i = 0; i < 5; i++)
        ask(&r[i], i);
    atomic_store(&go, true);
    status_thread_stop(&t);
    for (unsigned i = 0; i < 5; i++)
        cr_expect(r[i].taken, "request %u", i);
}

/* --- pauses ------------------------------------------------------------------------------------ */

#define MEMBER 60001u
#define OTHER 60002u

/* A long request: it pauses until the test lets it end. */
static void make_long(struct status_request *r)
{
    struct object_walk w = {.user = user_of(r->uid)};

    object_walk_lock();
    while (!atomic_load(&go)) {
        usleep(1000);
        object_walk_pause(&w);
    }
    object_walk_unlock();
    ((struct request *)r)->order = atomic_fetch_add(&made, 1) + 1;
}

/* As those of the status: it takes the lock, and pauses. */
static void make_short(struct status_request *r)
{
    struct object_walk w = {.user = user_of(r->uid)};

    object_walk_lock();
    object_walk_pause(&w);
    object_walk_unlock();
    ((struct request *)r)->order = atomic_fetch_add(&made, 1) + 1;
}

static void ask_to(struct request *r, uid_t uid, void (*fn)(struct status_request *r))
{
    r->request = (struct status_request){.uid = uid, .make = fn, .take = take};
    status_thread_ask(&t, &r->request);
}

static void wait_taken(unsigned n)
{
    for (unsigned i = 0; i < 5000 && taken < n; i++) {
        usleep(1000);
        ev_run(loop, EVRUN_NOWAIT);
    }
    cr_assert_eq(taken, n);
}

/* The request of another user is answered while a long one is made. One of the same user waits, and so does one of root,
 * who sees the same objects. */
Test(status_thread, a_long_request_holds_up_no_other_user)
{
    struct request slow = {0}, own = {0}, root = {0}, other[2] = {0};

    ask_to(&slow, MEMBER, make_long);
    ask_to(&own, MEMBER, make_short);
    ask_to(&root, 0, make_short);
    ask_to(&other[0], OTHER, make_short);
    ask_to(&other[1], OTHER, make_short);
    wait_taken(2);
    cr_expect(other[0].taken && other[1].taken && !slow.taken && !own.taken && !root.taken);
    atomic_store(&go, true);
    wait_taken(5);
}

/* Nobody is answered while root's request is made. */
Test(status_thread, the_request_of_root_has_no_pause)
{
    struct request slow = {0}, other = {0};

    ask_to(&slow, 0, make_long);
    ask_to(&other, OTHER, make_short);
    usleep(50000);
    ev_run(loop, EVRUN_NOWAIT);
    cr_expect_eq(taken, 0);
    atomic_store(&go, true);
    wait_taken(2);
    cr_expect(slow.order == 1 && other.order == 2);
}
