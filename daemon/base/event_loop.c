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
