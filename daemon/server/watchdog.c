// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/log.h"

#define LOOK_NS NS_PER_S
#define FOR_EVER UINT64_MAX

/* --- looking ----------------------------------------------------------------------------------- */

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

/* "REG_MR of session 3, pid 4711" */
static void describe(const struct activity_view *v, char *out, size_t size)
{
    int n = snprintf(out, size, "%s", v->what);

    if (v->session && n > 0 && (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, " of session %u", v->session);
    if (v->pid && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, ", pid %d", (int)v->pid);
}

/* How long the turn has lasted. The thread's clock may be a little ahead of `now`. */
static uint64_t duration(const struct activity_view *v, uint64_t now)
{
    return v->since && v->since < now ? now - v->since : 0;
}

bool watchdog_is_stuck(const struct activity *a, uint64_t now)
{
    struct activity_view v = activity_read(a);

    return duration(&v, now) >= WATCHDOG_STUCK_NS;
}

static uint64_t look_at(struct watchdog_thread *t, uint64_t now)
{
    struct activity_view v = activity_read(t->activity);
    uint64_t lasted = duration(&v, now);

    if (t->stuck_since && v.since != t->stuck_since) {
        log_write(LOG_AREA, LOG_LEVEL_WARN, "thread %s goes on. It was stuck for up to %.1f s, in %s", t->name,
                  seconds(now - t->stuck_since), t->doing);
        t->stuck_since = 0;
    }
    if (lasted < WATCHDOG_STUCK_NS)
        return 0;
    if (!t->stuck_since) {
        t->stuck_since = v.since;
        t->report_next = WATCHDOG_STUCK_NS;
    }
    if (lasted >= t->report_next) {
        describe(&v, t->doing, sizeof(t->doing));
        log_error("thread %s has been stuck for %.1f s, in %s", t->name, seconds(lasted), t->doing);
        t->report_next = 2 * lasted;
    }
    return lasted;
}

uint64_t watchdog_look(struct watchdog *w, uint64_t now)
{
    uint64_t longest = 0;

    for (unsigned i = 0; i < w->n; i++) {
        uint64_t lasted = look_at(&w->thread[i], now);

        if (lasted > longest && now >= atomic_load(&w->thread[i].activity->may_last_until))
            longest = lasted;
    }
    return longest;
}

/* --- the thread -------------------------------------------------------------------------------- */

/* The daemon was asked to end, and has not. */
static void exit_now(struct watchdog *w)
{
    uint64_t now = clock_ns();

    for (unsigned i = 0; i < w->n; i++) {
        struct watchdog_thread *t = &w->thread[i];
        struct activity_view v = activity_read(t->activity);
        uint64_t lasted = duration(&v, now);

        describe(&v, t->doing, sizeof(t->doing));
        if (lasted >= WATCHDOG_STUCK_NS)
            log_error("thread %s has been stuck for %.1f s, in %s", t->name, seconds(lasted), t->doing);
    }
    log_error("the daemon could not end in an orderly way. It exits now");
    log_stop(); /* writes the lines that wait */
    _exit(EXIT_FAILURE);
}

/* False: another thread has stopped the watchdog. Does not return if the daemon should have ended by now. */
static bool goes_on(struct watchdog *w, uint64_t now, uint64_t *end_by)
{
    pthread_mutex_lock(&w->lock);
    bool stop = w->stop;
    *end_by = w->end_by;
    if (!stop && w->end_by && now >= w->end_by)
        exit_now(w);
    pthread_mutex_unlock(&w->lock);
    return !stop;
}

/* Waits until this time, or until the daemon ends. rest: or until a thread wakes the watchdog from its rest. False: stop. */
static bool wait_until(struct watchdog *w, uint64_t until, bool rest)
{
    uint64_t now = clock_ns(), end_by;
    eventfd_t count;

    while (goes_on(w, now, &end_by)) {
        if (now >= until || (rest && atomic_load(&w->watch.state) == ACTIVITY_WATCHED))
            return true;
        uint64_t end = end_by && end_by < until ? end_by : until;
        struct pollfd p = {w->watch.fd, POLLIN, 0};
        int ms = end == FOR_EVER ? -1 : end <= now ? 0 : (int)((end - now + NS_PER_MS - 1) / NS_PER_MS);

        if (poll(&p, 1, ms) > 0)
            eventfd_read(w->watch.fd, &count);
        now = clock_ns();
    }
    return false;
}

static bool all_wait(struct watchdog *w)
{
    bool wait = true;

    pthread_mutex_lock(&w->lock);
    for (unsigned i = 0; i < w->n; i++)
        wait = wait && activity_read(w->thread[i].activity).since == 0;
    pthread_mutex_unlock(&w->lock);
    return wait;
}

/* After a look: may the watchdog rest until a thread goes on? Yes if all threads wait, and none has gone on since the
 * look before, at which they waited, too; or if it rested, and no thread has woken it. */
static bool may_rest(struct watchdog *w)
{
    enum activity_watched quiet = ACTIVITY_QUIET;

    if (!all_wait(w)) {
        atomic_store(&w->watch.state, ACTIVITY_WATCHED);
        return false;
    }
    if (atomic_compare_exchange_strong(&w->watch.state, &quiet, ACTIVITY_UNWATCHED) || quiet == ACTIVITY_UNWATCHED)
        return true;
    atomic_store(&w->watch.state, ACTIVITY_QUIET);
    return false;
}

static void *run(void *arg)
{
    struct watchdog *w = arg;
    uint64_t limit_us = 0, stuck = 0, looked = clock_ns();
    bool reports = sd_watchdog_enabled(0, &limit_us) > 0;
    uint64_t rest = reports ? limit_us * NS_PER_US / 4 : FOR_EVER, look = rest < LOOK_NS ? rest : LOOK_NS;

    prctl(PR_SET_NAME, "watchdog");
    do {
        uint64_t now = clock_ns();

        /* After a stop of the whole process, for example by a debugger, all threads seem to be stuck. Give them the
         * time until the next look. */
        if (now - looked < look + WATCHDOG_STUCK_NS / 2) {
            pthread_mutex_lock(&w->lock);
            stuck = watchdog_look(w, now);
            pthread_mutex_unlock(&w->lock);
        }
        if (reports && stuck < limit_us * NS_PER_US / 2)
            sd_notify(0, "WATCHDOG=1");
        if (may_rest(w) && !wait_until(w, reports ? now + rest : FOR_EVER, true))
            break;
        looked = clock_ns();
    } while (wait_until(w, looked + look, false));
    return NULL;
}

/* --- start and end ----------------------------------------------------------------------------- */

void watchdog_add(struct watchdog *w, const char *name, struct activity *a)
{
    struct watchdog_thread *t = &w->thread[w->n++];

    snprintf(t->name, sizeof(t->name), "%s", name);
    t->activity = a;
    atomic_store_explicit(&a->watch, &w->watch, memory_order_release);
}

int watchdog_start(struct watchdog *w, char why[ERROR_TEXT_MAX])
{
    sigset_t all, old;

    w->watch.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->watch.fd < 0) {
        snprintf(why, ERROR_TEXT_MAX, "cannot create an eventfd: %s", strerror(errno));
        return -errno;
    }
    pthread_mutex_init(&w->lock, NULL);
    sigfillset(&all); /* the main thread handles the signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = -pthread_create(&w->id, NULL, run, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        snprintf(why, ERROR_TEXT_MAX, "cannot start a thread: %s", strerror(-rc));
        close(w->watch.fd);
    }
    w->running = rc == 0;
    return rc;
}

void watchdog_end_within(struct watchdog *w, unsigned s)
{
    if (!w->running)
        return;
    pthread_mutex_lock(&w->lock);
    w->end_by = clock_ns() + s * NS_PER_S;
    pthread_mutex_unlock(&w->lock);
    eventfd_write(w->watch.fd, 1);
}

void watchdog_forget_devices(struct watchdog *w)
{
    if (!w->running)
        return;
    pthread_mutex_lock(&w->lock);
    w->n = 1;
    pthread_mutex_unlock(&w->lock);
}

void watchdog_stop(struct watchdog *w)
{
    if (!w->running)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_mutex_unlock(&w->lock);
    eventfd_write(w->watch.fd, 1);
    pthread_join(w->id, NULL);
    atomic_store(&w->watch.state, ACTIVITY_WATCHED); /* no thread writes to the eventfd any more */
    close(w->watch.fd);
    pthread_mutex_destroy(&w->lock);
    w->running = false;
}

/* --- the status -------------------------------------------------------------------------------- */

static json_t *number_or_null(int64_t n, bool shown)
{
    return n && shown ? json_integer(n) : json_null();
}

json_t *watchdog_json(const struct watchdog *w, bool clients)
{
    json_t *list = json_array();
    uint64_t now = clock_ns();

    for (unsigned i = 0; i < w->n; i++) {
        struct activity_view v = activity_read(w->thread[i].activity);
        uint64_t lasted = duration(&v, now);

        json_array_append_new(list,
                              json_pack("{s:s, s:b, s:f, s:o, s:o, s:o}", "name", w->thread[i].name, "hangs",
                                        lasted >= WATCHDOG_STUCK_NS, "busy_s", seconds(lasted), "doing",
                                        v.since ? json_string(v.what) : json_null(), "session",
                                        number_or_null(v.session, clients), "pid", number_or_null(v.pid, clients)));
    }
    return list;
}
