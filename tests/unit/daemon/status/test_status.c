// SPDX-License-Identifier: BSD-2-Clause
/* The status of a device is made in slices. Here the test is the device's thread, and another thread asks. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "daemon/objects/qp/qp.h"
#include "daemon/status/status.h"
#include "tests/unit/daemon/daemon_fixture.h"

static const struct user root = {.known = true, .administers = true};
static struct fixture f;
static uint32_t pd;
static struct fixture_cq cq;

static void start(void)
{
    cr_assert(fixture_start(&f));
}

static void finish(void)
{
    f.device->running = false;
    fixture_end(&f);
}

TestSuite(status, .init = start, .fini = finish, .timeout = 60);

static struct session *crowd(unsigned n)
{
    struct session *s = fixture_session(&f);
    struct fixture_qp qp;

    pd = fixture_pd(&f, s);
    cr_assert_eq(fixture_cq(&f, s, 4, 0, &cq), 0);
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(fixture_qp(&f, s, pd, cq.rep.handle, 1, &qp), 0);
        munmap(qp.page, qp.rep.size);
    }
    return s;
}

static _Atomic bool answered;

static void *ask(void *out)
{
    *(json_t **)out = status_device(f.device, &root);
    atomic_store(&answered, true);
    return NULL;
}

static pthread_t ask_in_thread(json_t **out)
{
    pthread_t t;

    atomic_store(&answered, false);
    f.device->running = true;
    cr_assert_eq(pthread_create(&t, NULL, ask, out), 0);
    return t;
}

static size_t length(const json_t *status, const char *list)
{
    return json_array_size(json_object_get(status, list));
}

static unsigned rows_of(const json_t *status, const char *list, const char *member, json_int_t value)
{
    unsigned n = 0;
    size_t i;
    json_t *row;

    json_array_foreach (json_object_get(status, list), i, row)
        n += json_integer_value(json_object_get(row, member)) == value;
    return n;
}

Test(status, packets_are_carried_between_slices)
{
    json_t *status = NULL;
    unsigned slices = 0;

    crowd(2000);
    pthread_t t = ask_in_thread(&status);
    while (!atomic_load(&answered)) {
        bool waits = f.device->slices.job != NULL;

        ev_run(f.device->loop, EVRUN_NOWAIT);
        device_pass(f.device, clock_ns());
        slices += waits;
    }
    pthread_join(t, NULL);
    cr_expect_gt(slices, 10, "2000 queue pairs in %u slices", slices);
    cr_expect_eq(length(status, "qps"), 2000);
    cr_expect_eq(length(status, "sessions"), 1);
    cr_expect_eq(length(status, "cqs"), 1);
    cr_expect(json_is_true(json_object_get(status, "answers")));
    json_decref(status);
}

/* Objects come and go between the slices. Those that stay are reported once, and nothing is reported twice. */
Test(status, objects_that_come_and_go)
{
    struct session *first = crowd(400), *second = crowd(400), *third = crowd(400);
    uint32_t stays[400], n = 0, gone = 0;
    json_t *status = NULL;
    unsigned turn = 0;
    size_t i;
    json_t *row;

    handles_walk_begin(&third->qps);
    for (const struct client_qp *q; (q = handles_walk_next(&third->qps)) != NULL;)
        stays[n++] = q->qpn;
    cr_assert_eq(n, 400);
    pthread_t t = ask_in_thread(&status);
    while (!atomic_load(&answered)) {
        struct client_qp *q = first ? handles_any(&first->qps) : NULL;

        ev_run(f.device->loop, EVRUN_NOWAIT);
        if (!f.device->slices.job && ++turn == 2 && second) {
            session_close(second);
            second = NULL;
        }
        if (q && gone < 100) {
            struct pm_handle h = {q->qpn};

            cr_assert_eq(fixture_call(&f, first, PM_OP_DESTROY_QP, &h, sizeof(h), NULL, 0), 0);
            gone++;
        }
    }
    pthread_join(t, NULL);
    for (i = 0; i < n; i++)
        cr_assert_eq(rows_of(status, "qps", "qpn", stays[i]), 1, "QP 0x%06x", stays[i]);
    json_array_foreach (json_object_get(status, "qps"), i, row) {
        json_int_t qpn = json_integer_value(json_object_get(row, "qpn"));

        cr_assert_eq(rows_of(status, "qps", "qpn", qpn), 1, "twice");
    }
    cr_expect_eq(rows_of(status, "sessions", "session", third->number), 1);
    json_decref(status);
}

/* Nobody runs the loop. The first request is given up after a while. The second one finds the first in the box. */
Test(status, a_device_that_does_not_answer)
{
    uint64_t begin = clock_ns();

    crowd(10);
    f.device->running = true;
    for (unsigned i = 0; i < 2; i++) {
        json_t *status = status_device(f.device, &root);

        cr_expect_str_eq(json_string_value(json_object_get(status, "name")), "test0");
        cr_expect(json_is_false(json_object_get(status, "answers")));
        cr_expect(json_is_array(json_object_get(status, "qps")));
        json_decref(status);
    }
    cr_expect_lt(clock_ns() - begin, 30 * NS_PER_S);
    /* The thread goes on. It frees what was given up, and answers again. */
    ev_run(f.device->loop, EVRUN_NOWAIT);
    cr_expect_null(f.device->slices.job);
    f.device->running = false;
    json_t *status = status_device(f.device, &root);
    cr_expect_eq(length(status, "qps"), 10);
    json_decref(status);
}

/* The device ends while a job that was given up is still in the box. */
Test(status, a_job_that_nobody_takes_any_more)
{
    f.device->running = true;
    json_decref(status_device(f.device, &root));
    cr_expect_not_null(f.device->slices.job); /* device_fini frees it, as the sanitizers see */
}

/* Nobody waits for a thread that is known to be stuck. */
Test(status, a_device_that_is_stuck)
{
    uint64_t begin = clock_ns();

    f.device->running = true;
    activity_turn(&f.device->activity, begin - 60 * NS_PER_S);
    for (unsigned i = 0; i < 100; i++) {
        json_t *status = status_device(f.device, &root);

        cr_expect(json_is_false(json_object_get(status, "answers")));
        json_decref(status);
    }
    cr_expect_lt(clock_ns() - begin, 50 * NS_PER_S, "each waited");
}
