// SPDX-License-Identifier: BSD-2-Clause
#include "evpipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pumice/abi.h"

_Static_assert(sizeof(struct evrecord) == sizeof(struct pm_async_event), "record");
_Static_assert(sizeof(struct evrecord) == sizeof(struct pm_comp_event), "record");

/* Writes one record. 1: done; 0: no room; -1: nobody reads any more. Records are far below PIPE_BUF, so writes are
 * whole. */
static int put(struct evpipe *p, const struct evrecord *r)
{
    if (write(p->write_fd, r, sizeof(*r)) == (ssize_t)sizeof(*r))
        return 1;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static void on_writable(struct ev_loop *loop, ev_io *w, int revents)
{
    struct evpipe *p = w->data;
    unsigned done = 0;

    (void)revents;
    while (done < p->n) {
        int r = put(p, &p->waiting[done]);

        if (r == 0)
            break;
        done = r < 0 ? p->n : done + 1;
    }
    p->n -= done;
    memmove(p->waiting, p->waiting + done, p->n * sizeof(p->waiting[0]));
    if (p->n == 0)
        ev_io_stop(loop, w);
}

int evpipe_init(struct evpipe *p, struct ev_loop *loop)
{
    int fds[2];

    memset(p, 0, sizeof(*p));
    if (pipe2(fds, O_CLOEXEC) != 0)
        return -errno;
    p->loop = loop;
    p->read_fd = fds[0];
    p->write_fd = fds[1];
    if (fcntl(p->write_fd, F_SETFL, O_NONBLOCK) != 0) {
        int rc = -errno;

        close(fds[0]);
        close(fds[1]);
        p->loop = NULL;
        return rc;
    }
    ev_io_init(&p->writable, on_writable, p->write_fd, EV_WRITE);
    p->writable.data = p;
    return 0;
}

void evpipe_fini(struct evpipe *p)
{
    ev_io_stop(p->loop, &p->writable);
    if (p->read_fd >= 0)
        close(p->read_fd);
    close(p->write_fd);
    free(p->waiting);
}

int evpipe_take_read_fd(struct evpipe *p)
{
    int fd = p->read_fd;

    p->read_fd = -1;
    return fd;
}

static bool keep(struct evpipe *p, const struct evrecord *r)
{
    for (unsigned i = 0; i < p->n; i++) {
        if (p->waiting[i].a == r->a && p->waiting[i].b == r->b)
            return true;
    }
    if (p->n == p->cap) {
        unsigned cap = p->cap ? 2 * p->cap : 64;
        struct evrecord *q;

        if (cap > EVPIPE_WAITING_MAX)
            return false;
        q = realloc(p->waiting, cap * sizeof(*q));
        if (!q)
            return false;
        p->waiting = q;
        p->cap = cap;
    }
    p->waiting[p->n++] = *r;
    ev_io_start(p->loop, &p->writable);
    return true;
}

bool evpipe_push(struct evpipe *p, uint32_t a, uint32_t b)
{
    struct evrecord r = {a, b};

    if (p->n == 0 && put(p, &r) != 0)
        return true;
    return keep(p, &r);
}

void evpipe_forget(struct evpipe *p, uint32_t a)
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->n; i++) {
        if (p->waiting[i].a != a)
            p->waiting[n++] = p->waiting[i];
    }
    p->n = n;
    if (n == 0)
        ev_io_stop(p->loop, &p->writable);
}
