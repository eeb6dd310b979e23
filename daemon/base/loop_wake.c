// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/base/loop_wake.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/base/event_loop.h"

static void on_readable(struct ev_loop *loop, ev_io *io, int revents)
{
    struct loop_wake *w = io->data;
    uint64_t n;

    event_loop_rewatch(loop, io, revents);
    if (read(w->fd, &n, sizeof(n)) < 0) {
        /* Nobody wrote: the kernel refused to watch the descriptor. */
    }
    /* After the read: a call of loop_wake_send that follows writes again. */
    if (atomic_exchange(&w->sent, false))
        w->woken(w->arg);
}

int loop_wake_start(struct loop_wake *w, struct ev_loop *loop, void (*woken)(void *arg), void *arg)
{
    w->loop = NULL;
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->fd < 0)
        return -errno;
    w->loop = loop;
    w->woken = woken;
    w->arg = arg;
    atomic_init(&w->sent, false);
    ev_io_init(&w->readable, on_readable, w->fd, EV_READ);
    w->readable.data = w;
    ev_io_start(loop, &w->readable);
    return 0;
}

void loop_wake_stop(struct loop_wake *w)
{
    if (!w->loop)
        return;
    ev_io_stop(w->loop, &w->readable);
    close(w->fd);
    w->loop = NULL;
}

void loop_wake_send(struct loop_wake *w)
{
    const uint64_t one = 1;

    if (!atomic_exchange(&w->sent, true) && write(w->fd, &one, sizeof(one)) < 0) {
        /* The count is at most 1, so the eventfd always has room. */
    }
}
