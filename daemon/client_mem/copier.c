// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/client_mem/copier.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/client_mem/served_memory.h"
#include "daemon/threads/takeover.h"

#define PAGE 4096u

/* --- buffers and windows ----------------------------------------------------------------------- */

static size_t round_up(size_t n)
{
    return (n + PAGE - 1) & ~(size_t)(PAGE - 1);
}

/* A second mapping of the buffers. NULL: none is to be had. */
static uint8_t *map_window(const struct copier *c)
{
    /* With an old size of 0, mremap leaves the shared mapping where it is, and makes another one of the same pages. */
    void *p = mremap(c->buffers, 0, c->size, MREMAP_MAYMOVE);

    return p == MAP_FAILED ? NULL : p;
}

int copier_init(struct copier *c, size_t size)
{
    memset(c, 0, sizeof(*c));
    c->size = round_up(size) + COPIER_DETOUR_BYTES;
    void *p = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -ENOMEM;
    c->buffers = p;
    c->window = map_window(c);
    c->detour = copier_alloc(c, COPIER_DETOUR_BYTES);
    return c->window ? 0 : -ENOMEM;
}

void copier_fini(struct copier *c)
{
    if (c->spare)
        munmap(c->spare, c->size);
    if (c->window)
        munmap(c->window, c->size);
    if (c->buffers)
        munmap(c->buffers, c->size);
    memset(c, 0, sizeof(*c));
}

void *copier_alloc(struct copier *c, size_t size)
{
    size = round_up(size);
    if (!c->buffers || size > c->size - c->used)
        return NULL;
    void *p = c->buffers + c->used;
    c->used += size;
    return p;
}

/* The function of the kernel that waits for the reader of a userfaultfd. The mappings of the process do not show that. */
#define USERFAULTFD_WAIT "handle_userfault"

static void note_wait(struct copier *c, const char *waits_in)
{
    snprintf(c->now.waits_in, sizeof(c->now.waits_in), "%s", waits_in);
}

bool copier_may_last(struct copier *c, const char *waits_in)
{
    note_wait(c, waits_in);
    if (copier_waits_for_lock(waits_in))
        return true;
    bool userfault = strncmp(waits_in, USERFAULTFD_WAIT, strlen(USERFAULTFD_WAIT)) == 0;

    c->now.served =
        c->now.remote && (userfault || c->now.maps_fd < 0 || memory_is_served(c->now.maps_fd, c->now.remote, c->now.n));
    return !c->now.served;
}

bool copier_waits_for_lock(const char *function)
{
    /* The first two take it before the first page. The two of `gup` take it again after a page was read from a disk. */
    static const char *const those[] = {"process_vm_rw_core",      "__access_remote_vm",    "access_remote_vm",
                                        "__get_user_pages_locked", "__gup_longterm_locked", "rwsem_down_read"};

    for (size_t i = 0; i < sizeof(those) / sizeof(those[0]); i++)
        if (strncmp(function, those[i], strlen(those[i])) == 0)
            return true;
    return false;
}

bool copier_may_go_on(struct copier *c, const char *waits_in, uint64_t slept_ns)
{
    note_wait(c, waits_in);
    return c->now.remote && copier_waits_for_lock(waits_in) && slept_ns < c->now.lock_limit_ms * NS_PER_MS;
}

bool copier_lost_by_lock(const struct copier *c)
{
    return c->loss.what == COPIER_LOST_COPY && copier_waits_for_lock(c->loss.waits_in);
}

bool copier_prepare(struct copier *c)
{
    if (!c->spare)
        c->spare = map_window(c);
    return c->spare != NULL;
}

void copier_replaced(struct copier *c)
{
    /* The addresses stay reserved, because the lost copy knows them. No mapping is split, so this needs no memory. */
    if (mmap(c->window, c->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        abort(); /* better than showing a client the memory of others */
    c->window = c->spare;
    c->spare = NULL;
    c->lost++;
    c->loss.what = !c->now.remote ? COPIER_LOST_CALL : c->now.served ? COPIER_LOST_SERVED_COPY : COPIER_LOST_COPY;
    memcpy(c->loss.waits_in, c->now.waits_in, sizeof(c->loss.waits_in));
    c->loss.limit_ms = c->now.limit_ms;
    if (c->loss.what == COPIER_LOST_SERVED_COPY && c->loss.limit_ms > TAKEOVER_DOUBT_MS)
        c->loss.limit_ms = TAKEOVER_DOUBT_MS;
    else if (copier_lost_by_lock(c))
        c->loss.limit_ms = c->now.lock_limit_ms;
}

/* --- one system call --------------------------------------------------------------------------- */

/* Does a lost copy leave the calling thread its stack? Then copies go through the window. */
static bool is_guarded(const struct copier *c)
{
    return c && c->thread;
}

static long plain_call(long nr, const long a[6])
{
    long r = syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);

    return r < 0 ? -errno : r;
}

static long call(const struct copier *c, unsigned limit_ms, long nr, const long a[6])
{
    return is_guarded(c) ? takeover_syscall(c->thread, limit_ms, nr, a) : plain_call(nr, a);
}

static int64_t process_vm(const struct copier *c, const struct copier_target *to, bool write, const struct iovec *local,
                          unsigned nlocal, const struct iovec *remote, unsigned nremote)
{
    long nr = write ? SYS_process_vm_writev : SYS_process_vm_readv;

    return call(c, to->limit_ms, nr, (long[6]){to->pid, (long)local, nlocal, (long)remote, nremote, 0});
}

/* Takes the next `want` bytes from a list of local buffers: stores the parts in part[], advances the cursor (*at,
 * *skip), and returns the number of parts. *got: the bytes, which are fewer at the end of the list. */
static unsigned take(const struct iovec *local, unsigned nlocal, unsigned *at, size_t *skip, size_t want,
                     struct iovec *part, size_t *got)
{
    unsigned n = 0;

    *got = 0;
    while (want && *at < nlocal) {
        size_t len = local[*at].iov_len - *skip;

        if (len > want)
            len = want;
        part[n++] = (struct iovec){(uint8_t *)local[*at].iov_base + *skip, len};
        want -= len;
        *got += len;
        *skip += len;
        if (*skip == local[*at].iov_len) {
            (*at)++;
            *skip = 0;
        }
    }
    return n;
}

static int64_t proc_mem(const struct copier *c, const struct copier_target *to, bool write, const struct iovec *local,
                        unsigned nlocal, const struct iovec *remote, unsigned nremote)
{
    struct iovec part[COPIER_IOVS];
    int64_t done = 0;
    unsigned at = 0;
    size_t skip = 0;

    for (unsigned i = 0; i < nremote; i++) {
        size_t got;
        unsigned n = take(local, nlocal, &at, &skip, remote[i].iov_len, part, &got);

        if (got == 0)
            continue;
        /* The fifth argument is the upper half of the offset, which only 32-bit kernels use. */
        long r = call(c, to->limit_ms, write ? SYS_pwritev : SYS_preadv,
                      (long[6]){to->fd, (long)part, n, (long)(uintptr_t)remote[i].iov_base, 0, 0});
        if (r == 0)
            r = -ESRCH; /* the process has given up its memory */
        if (r == -ETIMEDOUT || (r < 0 && done == 0))
            return r;
        if (r < 0)
            break;
        done += r;
        if ((size_t)r != got || got != remote[i].iov_len)
            break;
    }
    return done;
}

/* --- through the window ------------------------------------------------------------------------ */

/* A local list with the addresses of the window. Memory outside of the buffers goes through the detour. */
struct list {
    unsigned n;
    size_t detour; /* bytes of it in use */
    struct iovec v[COPIER_IOVS];
};

static bool in_buffers(const struct copier *c, const struct iovec *v)
{
    size_t off = (size_t)((uint8_t *)v->iov_base - c->buffers);

    return off < c->size && v->iov_len <= c->size - off;
}

/* Translates the list, up to the entry for which the detour has no room. For a write, also fills the detour. */
static void translate(const struct copier *c, bool write, const struct iovec *local, unsigned nlocal, struct list *l)
{
    ptrdiff_t move = c->window - c->buffers;

    l->n = 0;
    l->detour = 0;
    for (unsigned i = 0; i < nlocal; i++) {
        uint8_t *p = local[i].iov_base;
        size_t len = local[i].iov_len;

        if (!in_buffers(c, &local[i])) {
            size_t room = COPIER_DETOUR_BYTES - l->detour;

            if (len > room)
                len = room;
            if (len == 0 && local[i].iov_len)
                return;
            p = c->detour + l->detour;
            if (write)
                memcpy(p, local[i].iov_base, len);
            l->detour += len;
        }
        l->v[l->n++] = (struct iovec){p + move, len};
        if (len != local[i].iov_len)
            return;
    }
}

/* After a read of `done` bytes: copies from the detour to where the bytes belong. */
static void leave_detour(const struct copier *c, const struct iovec *local, const struct list *l, uint64_t done)
{
    const uint8_t *from = c->detour;

    for (unsigned i = 0; i < l->n && done; i++) {
        size_t len = l->v[i].iov_len < done ? l->v[i].iov_len : (size_t)done;

        if (!in_buffers(c, &local[i])) {
            memcpy(local[i].iov_base, from, len);
            from += l->v[i].iov_len;
        }
        done -= len;
    }
}

/* In the calling thread, or guarded: then c->now tells the watching thread what is copied. */
static int64_t copy_lists(struct copier *c, const struct copier_target *to, bool write, const struct iovec *local,
                          unsigned nlocal, const struct iovec *remote, unsigned nremote)
{
    if (is_guarded(c)) {
        c->now.maps_fd = to->maps_fd;
        c->now.remote = remote;
        c->now.n = nremote;
        c->now.limit_ms = to->limit_ms;
        c->now.lock_limit_ms = to->lock_limit_ms;
        c->now.served = false;
    }
    return to->fd >= 0 ? proc_mem(c, to, write, local, nlocal, remote, nremote)
                       : process_vm(c, to, write, local, nlocal, remote, nremote);
}

int64_t copier_read(struct copier *c, const struct copier_target *from, const struct iovec *local, unsigned nlocal,
                    const struct iovec *remote, unsigned nremote)
{
    struct list l;

    if (!is_guarded(c))
        return copy_lists(c, from, false, local, nlocal, remote, nremote);
    translate(c, false, local, nlocal, &l);
    int64_t done = copy_lists(c, from, false, l.v, l.n, remote, nremote);
    if (l.detour && done > 0)
        leave_detour(c, local, &l, (uint64_t)done);
    return done;
}

int64_t copier_write(struct copier *c, const struct copier_target *to, const struct iovec *local, unsigned nlocal,
                     const struct iovec *remote, unsigned nremote)
{
    struct list l;

    if (!is_guarded(c))
        return copy_lists(c, to, true, local, nlocal, remote, nremote);
    translate(c, true, local, nlocal, &l);
    return copy_lists(c, to, true, l.v, l.n, remote, nremote);
}

/* --- other calls ------------------------------------------------------------------------------- */

long copier_call(struct copier *c, unsigned limit_ms, long nr, const long a[6])
{
    if (is_guarded(c)) {
        c->now.remote = NULL;
        c->now.limit_ms = limit_ms;
        c->now.served = false;
    }
    return call(c, limit_ms, nr, a);
}

uint8_t *copier_detour(const struct copier *c)
{
    return is_guarded(c) ? c->detour : NULL;
}

void *copier_seen_by_kernel(const struct copier *c, const void *p)
{
    return c->window + ((const uint8_t *)p - c->buffers);
}
