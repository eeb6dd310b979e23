// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/base/event_loop.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"

/* --- memory ------------------------------------------------------------------------------------ */

/* Blocks of the reserve are never given back. The arrays of libev double when they grow, so they need few blocks. Pages
 * that nobody uses cost nothing. */
struct block {
    _Alignas(16) size_t size;
    uint8_t bytes[];
};
static _Alignas(16) uint8_t reserve[EVENT_LOOP_RESERVE];
static _Atomic size_t used;

static bool is_reserve(const void *p)
{
    return (const uint8_t *)p >= reserve && (const uint8_t *)p < reserve + sizeof(reserve);
}

static size_t size_of(void *p)
{
    if (!is_reserve(p))
        return malloc_usable_size(p);
    return ((const struct block *)(const void *)((uint8_t *)p - offsetof(struct block, bytes)))->size;
}

static void *take_reserve(size_t size)
{
    size_t all = (sizeof(struct block) + size + 15) & ~(size_t)15;
    size_t at = atomic_load(&used);

    do {
        if (all > sizeof(reserve) - at)
            return NULL;
    } while (!atomic_compare_exchange_weak(&used, &at, at + all));
    struct block *b = (struct block *)(void *)(reserve + at);
    b->size = size;
    return b->bytes;
}

/* As libev wants it: size 0 frees. It ends the process after NULL. */
static void *allocate(void *p, long size)
{
    bool reserved = is_reserve(p);
    void *q;

    if (size == 0) {
        if (!reserved)
            free(p);
        return NULL;
    }
    q = reserved ? malloc((size_t)size) : realloc(p, (size_t)size);
    if (q && !reserved)
        return q;
    if (!q)
        q = take_reserve((size_t)size);
    if (!q || !p)
        return q;
    memcpy(q, p, size_of(p) < (size_t)size ? size_of(p) : (size_t)size);
    if (!reserved)
        free(p);
    return q;
}

/* --- errors ------------------------------------------------------------------------------------ */

/* libev calls this with its message when a call has failed that it can't do without. */
static void on_error(const char *what)
{
    static struct log_rate rate;
    int err = errno;

    if (strstr(what, "pipe")) {
        log_error("%s: %s", what, strerror(err));
        exit(EXIT_FAILURE);
    }
    if (log_wants(LOG_DAEMON, LOG_LEVEL_ERROR, &rate))
        log_write(LOG_DAEMON, LOG_LEVEL_ERROR, "%s: %s; trying again", what, strerror(err));
}

void event_loop_guard(void)
{
    ev_set_allocator(allocate);
    ev_set_syserr_cb(on_error);
}

bool event_loop_rewatch(struct ev_loop *loop, ev_io *w, int revents)
{
    static struct log_rate rate;

    if (!(revents & EV_ERROR))
        return false;
    if (log_wants(LOG_DAEMON, LOG_LEVEL_ERROR, &rate))
        log_write(LOG_DAEMON, LOG_LEVEL_ERROR, "the kernel refuses to watch descriptor %d; trying again", w->fd);
    ev_io_stop(loop, w);
    ev_io_set(w, w->fd, w->events & (EV_READ | EV_WRITE)); /* so that libev asks the kernel again */
    ev_io_start(loop, w);
    return true;
}

/* --- waits ------------------------------------------------------------------------------------- */

static void on_limit(struct ev_loop *loop, ev_timer *w, int revents)
{
    (void)loop;
    (void)w;
    (void)revents;
}

static void before_wait(struct ev_loop *loop, ev_prepare *w, int revents)
{
    struct wait_limit *l = w->data;

    (void)revents;
    ev_timer_stop(loop, &l->timer);
    if (l->idle)
        return;
    /* libev's time is that of the last turn. A limit that is over then only makes this wait end at once. */
    ev_timer_set(&l->timer, WAIT_LIMIT_S, 0.);
    ev_timer_start(loop, &l->timer);
}

/* The callbacks of the events come after this one. */
static void after_wait(struct ev_loop *loop, ev_check *w, int revents)
{
    struct wait_limit *l = w->data;
    bool over = ev_is_pending(&l->timer);

    (void)revents;
    l->idle = (l->idle || over) && ev_pending_count(loop) == over;
}

void wait_limit_start(struct wait_limit *l, struct ev_loop *loop)
{
    l->idle = false;
    ev_timer_init(&l->timer, on_limit, 0., 0.);
    ev_prepare_init(&l->waits, before_wait);
    ev_check_init(&l->waited, after_wait);
    ev_set_priority(&l->waited, EV_MAXPRI - 1); /* after the watchers that run in each turn, before the events */
    l->waits.data = l->waited.data = l;
    ev_prepare_start(loop, &l->waits);
    ev_check_start(loop, &l->waited);
}

void wait_limit_stop(struct wait_limit *l, struct ev_loop *loop)
{
    ev_timer_stop(loop, &l->timer);
    ev_prepare_stop(loop, &l->waits);
    ev_check_stop(loop, &l->waited);
}
