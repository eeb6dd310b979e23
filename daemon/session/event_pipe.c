// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/session/event_pipe.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/event_loop.h"
#include "pumice/abi.h"

_Static_assert(sizeof(struct event_record) == sizeof(struct pm_async_event), "record");
_Static_assert(sizeof(struct event_record) == sizeof(struct pm_comp_event), "record");

#define UNREAD_MAX (1 << 20) /* bytes in a pipe: the default limit up to which a client can enlarge it */

/* Writes records, and returns how many. The pipe has no room for the others, the kernel has no memory for them now, or
 * the client is stuck. A write of up to PIPE_BUF bytes writes all bytes or
 * none. */
static unsigned put(const struct event_pipe *p, const struct event_record *r, unsigned n)
{
    const unsigned most = PIPE_BUF / sizeof(*r);

    for (unsigned done = 0, part; done < n; done += part) {
        part = n - done < most ? n - done : most;
        if (client_pipe_write(&p->pipe, r + done, part * sizeof(*r)) != (ssize_t)(part * sizeof(*r)))
            return done;
    }
    return n;
}

static void on_writable(struct ev_loop *loop, ev_io *w, int revents)
{
    struct event_pipe *p = w->data;
    unsigned done = put(p, p->waiting, p->n);

    event_loop_rewatch(loop, w, revents);
    p->n -= done;
    p->indexed = false;
    memmove(p->waiting, p->waiting + done, p->n * sizeof(p->waiting[0]));
    if (p->n == 0)
        ev_io_stop(loop, w);
}

int event_pipe_init(struct event_pipe *p, struct ev_loop *loop, struct client_mem *mem)
{
    memset(p, 0, sizeof(*p));
    int rc = client_pipe_init(&p->pipe, mem);
    if (rc)
        return rc;
    p->loop = loop;
    ev_io_init(&p->writable, on_writable, p->pipe.write_fd, EV_WRITE);
    p->writable.data = p;
    return 0;
}

void event_pipe_fini(struct event_pipe *p)
{
    ev_io_stop(p->loop, &p->writable);
    client_pipe_fini(&p->pipe);
    free(p->waiting);
    free(p->index);
}

int event_pipe_take_read_fd(struct event_pipe *p)
{
    int fd = p->pipe.read_fd;

    p->pipe.read_fd = -1;
    return fd;
}

static bool reserve(struct event_pipe *p, unsigned n)
{
    unsigned cap = p->cap ? p->cap : 64;

    while (cap < n)
        cap *= 2;
    if (cap == p->cap)
        return true;
    if (cap > EVENT_PIPE_WAITING_MAX)
        return false;
    uint32_t *index = calloc(2 * cap, sizeof(*index));
    struct event_record *q = index ? realloc(p->waiting, cap * sizeof(*q)) : NULL;
    if (!q) {
        free(index);
        return false;
    }
    free(p->index);
    p->index = index;
    p->indexed = false;
    p->waiting = q;
    p->cap = cap;
    return true;
}

/* The entry of the index that has the record, or the free one where it belongs. */
static uint32_t *index_entry(const struct event_pipe *p, const struct event_record *r)
{
    const uint32_t mask = 2 * p->cap - 1;
    uint32_t i = (uint32_t)(((uint64_t)r->a << 32 | r->b) * 0x9e3779b97f4a7c15ull >> 32);

    for (;; i++) {
        uint32_t *entry = &p->index[i & mask];

        if (*entry == 0 || memcmp(&p->waiting[*entry - 1], r, sizeof(*r)) == 0)
            return entry;
    }
}

/* A client that does not read its events can have many that wait. So they are found by a hash table, which is built
 * again after records were removed: that happens once for many records. */
static void build_index(struct event_pipe *p)
{
    memset(p->index, 0, 2 * p->cap * sizeof(*p->index));
    for (unsigned i = 0; i < p->n; i++)
        *index_entry(p, &p->waiting[i]) = i + 1;
    p->indexed = true;
}

static bool keep(struct event_pipe *p, const struct event_record *r)
{
    if (p->n && !p->indexed)
        build_index(p);
    if (p->n && *index_entry(p, r))
        return true;
    if (!reserve(p, p->n + 1))
        return false;
    if (!p->indexed)
        build_index(p);
    *index_entry(p, r) = p->n + 1;
    p->waiting[p->n++] = *r;
    ev_io_start(p->loop, &p->writable);
    return true;
}

bool event_pipe_push(struct event_pipe *p, uint32_t a, uint32_t b)
{
    struct event_record r = {a, b};

    if (p->n == 0 && put(p, &r, 1) == 1)
        return true;
    return keep(p, &r);
}

/* --- removing records -------------------------------------------------------------------------- */

static unsigned kind_of(const struct event_record *r, const struct event_record *kind, unsigned kinds)
{
    unsigned k = 0;

    while (k < kinds && (r->a != kind[k].a || r->b != kind[k].b))
        k++;
    return k;
}

/* True if the first `bytes` bytes in the pipe may hold a record of one of these kinds. The records stay in the pipe. */
static bool holds(const struct event_pipe *p, size_t bytes, const struct event_record *kind, unsigned kinds)
{
    struct event_record r[512];
    bool found = false;
    size_t seen = 0;
    ssize_t got;
    int copy = client_pipe_copy(&p->pipe, bytes);

    if (copy < 0)
        return true;
    for (; !found && (got = read(copy, r, sizeof(r))) > 0; seen += (size_t)got) {
        for (size_t i = 0; i < (size_t)got / sizeof(r[0]); i++)
            found |= kind_of(&r[i], kind, kinds) < kinds;
    }
    close(copy);
    return found || seen < bytes;
}

/* Takes the unread records out of the pipe at once, because the client may read, or even write, at the same time. The
 * caller frees the result, which also has room for the waiting records. NULL: the pipe holds no record of these kinds,
 * or its records can't be taken out. */
static struct event_record *take_unread(const struct event_pipe *p, const struct event_record *kind, unsigned kinds,
                                        unsigned *n)
{
    struct event_record *r = NULL;
    ssize_t got = -1, bytes = client_pipe_unread(&p->pipe);

    if (bytes < (ssize_t)sizeof(*r) || bytes > UNREAD_MAX)
        return NULL;
    if (holds(p, (size_t)bytes, kind, kinds))
        r = malloc((size_t)bytes + p->n * sizeof(*r));
    if (r)
        got = client_pipe_read(&p->pipe, r, (size_t)bytes);
    if (got < (ssize_t)sizeof(*r)) {
        free(r);
        return NULL;
    }
    *n = (unsigned)((size_t)got / sizeof(*r));
    return r;
}

/* Removes the records of the destroyed handle from r[0 … n). Returns how many records are left. */
static unsigned filter(struct event_record *r, unsigned n, const struct event_record *kind, unsigned kinds,
                       unsigned sharers)
{
    unsigned stay[EVENT_PIPE_KINDS_MAX] = {0}, left = 0;

    for (unsigned i = 0, k; i < n; i++) {
        if ((k = kind_of(&r[i], kind, kinds)) < kinds)
            stay[k]++;
    }
    /* Each event has one record for each handle. The client may have read some of these records already. */
    for (unsigned k = 0; k < kinds; k++) {
        unsigned events = (stay[k] + sharers - 1) / sharers, others = events * (sharers - 1);

        stay[k] = stay[k] < others ? stay[k] : others;
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned k = kind_of(&r[i], kind, kinds);

        if (k == kinds || stay[k] > 0)
            r[left++] = r[i];
        if (k < kinds && stay[k] > 0)
            stay[k]--;
    }
    return left;
}

/* Writes records that were taken out back to the pipe, and keeps those for which it has no room. Returns how many
 * were lost. */
static unsigned put_back(struct event_pipe *p, const struct event_record *r, unsigned n)
{
    unsigned done = put(p, r, n), lost = 0;

    p->n = n - done;
    if (p->n && !reserve(p, p->n)) {
        lost = p->n - p->cap;
        p->n = p->cap;
    }
    if (p->n)
        memcpy(p->waiting, r + done, p->n * sizeof(*r));
    return lost;
}

unsigned event_pipe_forget(struct event_pipe *p, const struct event_record *kind, unsigned kinds, unsigned sharers)
{
    unsigned unread = 0, lost = 0;
    struct event_record *all = take_unread(p, kind, kinds, &unread);

    p->indexed = false;
    if (all) {
        if (p->n)
            memcpy(all + unread, p->waiting, p->n * sizeof(*all));
        lost = put_back(p, all, filter(all, unread + p->n, kind, kinds, sharers));
        free(all);
    } else {
        p->n = filter(p->waiting, p->n, kind, kinds, sharers);
    }
    if (p->n)
        ev_io_start(p->loop, &p->writable);
    else
        ev_io_stop(p->loop, &p->writable);
    return lost;
}
