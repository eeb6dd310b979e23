// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_QP
#include "daemon/client_mem/mem_backend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"

_Static_assert(MEM_BACKEND_CLIENTS <= 1u << CLIENT_MEM_REGION_SHIFT &&
                   SHARED_REGIONS_MAX < 1u << (31 - CLIENT_MEM_REGION_SHIFT),
               "the space of a segment has room for both numbers");

int mem_backend_init(struct mem_backend *m, struct copier *copier)
{
    memset(m, 0, sizeof(*m));
    TAILQ_INIT(&m->dirty);
    m->owns_gather = copier == NULL;
    m->gather = copier ? copier_alloc(copier, sizeof(*m->gather)) : calloc(1, sizeof(*m->gather));
    return m->gather ? 0 : -ENOMEM;
}

void mem_backend_fini(struct mem_backend *m)
{
    free(m->faulted);
    m->faulted = NULL;
    if (m->owns_gather)
        free(m->gather);
    m->gather = NULL;
    placement_free(m->placement);
    m->placement = NULL;
    late_writes_free(m->late);
    m->late = NULL;
}

int mem_backend_be_unkind(struct mem_backend *m, struct unkind *u, uint8_t *bytes)
{
    if (unkind_is(u, UNKIND_PLACEMENT) && !(m->placement = placement_new(u)))
        return -ENOMEM;
    if (unkind_is(u, UNKIND_VISIBILITY) && !(m->late = bytes ? late_writes_new(u, bytes) : NULL))
        return -ENOMEM;
    return 0;
}

int mem_backend_add(struct mem_backend *m, struct client_mem *s)
{
    for (uint32_t i = 0; i < MEM_BACKEND_CLIENTS; i++) {
        if (!m->client[i]) {
            m->client[i] = s;
            s->number = i;
            return 0;
        }
    }
    return -ENOSPC;
}

static void remember_fault(void *ctx, uint32_t qpn, bool unmapped)
{
    struct mem_backend *m = ctx;

    for (unsigned i = 0; i < m->nfaulted; i++) {
        if (m->faulted[i].qpn == qpn && m->faulted[i].unmapped == unmapped) {
            m->faulted[i].n++;
            return;
        }
    }
    if (m->nfaulted == m->cap) {
        unsigned cap = m->cap ? 2 * m->cap : 64;
        struct mem_fault *p = realloc(m->faulted, cap * sizeof(*p));

        if (!p) {
            log_error("out of memory: cannot report a failed write of QP 0x%06x", qpn);
            return;
        }
        m->faulted = p;
        m->cap = cap;
    }
    m->faulted[m->nfaulted++] = (struct mem_fault){.qpn = qpn, .n = 1, .unmapped = unmapped};
}

void mem_backend_remove(struct mem_backend *m, struct client_mem *s)
{
    if (s->dirty)
        mem_backend_flush(m);
    if (m->late)
        late_writes_settle(m->late, s, remember_fault, m);
    m->client[s->number] = NULL;
}

bool mem_backend_pop_fault(struct mem_backend *m, struct mem_fault *fault)
{
    if (m->nfaulted == 0)
        return false;
    *fault = m->faulted[--m->nfaulted];
    return true;
}

/* The late writes come first, because they are older. */
static void flush_client(struct mem_backend *m, struct client_mem *s)
{
    if (__builtin_expect(m->late != NULL, 0))
        late_writes_settle(m->late, s, remember_fault, m);
    client_mem_flush(s, remember_fault, m);
}

static struct client_mem *next_dirty(struct mem_backend *m)
{
    struct client_mem *s = TAILQ_FIRST(&m->dirty);

    if (s) {
        TAILQ_REMOVE(&m->dirty, s, link);
        s->dirty = false;
    }
    return s;
}

void mem_backend_flush(struct mem_backend *m)
{
    struct client_mem *s;

    while ((s = next_dirty(m)) != NULL)
        flush_client(m, s);
}

void mem_backend_place(struct mem_backend *m, uint64_t now)
{
    struct client_mem *s;

    if (__builtin_expect(!m->placement && !m->late, 1)) {
        mem_backend_flush(m);
        return;
    }
    if (mem_backend_deadline(m) <= now)
        mem_backend_settle(m, 0);
    while ((s = next_dirty(m)) != NULL) {
        if (m->late)
            late_writes_hold(m->late, s, now, remember_fault, m);
        if (m->placement)
            placement_flush(m->placement, s, remember_fault, m);
        else
            client_mem_flush(s, remember_fault, m);
    }
}

void mem_backend_settle(struct mem_backend *m, pid_t pid)
{
    if (!m->late)
        return;
    if (pid)
        late_writes_settle_process(m->late, pid, remember_fault, m);
    else
        late_writes_settle(m->late, NULL, remember_fault, m);
}

bool mem_backend_probe(struct mem_backend *m, struct client_mem *s, uint64_t va)
{
    uint8_t byte;
    struct iovec local = {&byte, 1};
    struct iovec remote = {(void *)(uintptr_t)va, 1};

    (void)m;
    return client_mem_read(s, &local, 1, &remote, 1) == 1;
}

static struct client_mem *client_of(const struct mem_backend *m, const struct mem_segment *p, unsigned n)
{
    uint32_t number = n ? CLIENT_MEM_NUMBER(p[0].space) : MEM_BACKEND_CLIENTS;

    for (unsigned i = 1; i < n; i++) {
        if (CLIENT_MEM_NUMBER(p[i].space) != number)
            return NULL; /* cannot happen for honest requests: a QP and all its keys belong to one client */
    }
    return number < MEM_BACKEND_CLIENTS ? m->client[number] : NULL;
}

static bool is_on_demand(const struct mem_segment *p, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (p[i].space & CLIENT_MEM_ON_DEMAND)
            return true;
    }
    return false;
}

/* --- reading ----------------------------------------------------------------------------------- */

static unsigned region_of(const struct mem_segment *p)
{
    return CLIENT_MEM_REGION(p->space);
}

static int read_pieces(void *ctx, const struct mem_segment *src, unsigned nsrc, const struct buf *dst, unsigned ndst)
{
    struct mem_backend *m = ctx;

    mem_backend_flush(m);
    if (nsrc == 0)
        return 0;
    struct client_mem *s = client_of(m, src, nsrc);
    if (!s)
        return -1;
    if (m->late)
        late_writes_settle(m->late, s, remember_fault, m);
    if (shared_regions_read(&m->shared, region_of, src, nsrc, dst, ndst))
        return 0;
    switch (gather_read(m->gather, s, src, nsrc, dst, ndst)) {
    case CLIENT_MEM_DONE:
        return 0;
    case CLIENT_MEM_UNMAPPED:
        return is_on_demand(src, nsrc) ? -1 : MEM_UNMAPPED;
    default:
        return -1;
    }
}

/* --- writing ----------------------------------------------------------------------------------- */

static int write_pieces(void *ctx, uint32_t qpn, const struct mem_segment *dst, unsigned ndst, const uint8_t *src,
                        size_t len)
{
    struct mem_backend *m = ctx;

    if (ndst == 0 || len == 0)
        return 0;
    struct client_mem *s = client_of(m, dst, ndst);
    if (!s)
        return -1;
    for (unsigned i = 0; i < ndst && len; i++) {
        size_t n = dst[i].len < len ? dst[i].len : len;
        uint32_t owner = qpn | (dst[i].space & CLIENT_MEM_ON_DEMAND);

        if (n == 0)
            continue;
        if (!client_mem_defer(s, owner, dst[i].va, src, n)) {
            flush_client(m, s);
            client_mem_defer(s, owner, dst[i].va, src, n);
        }
        src += n;
        len -= n;
    }
    if (!s->dirty) {
        s->dirty = true;
        TAILQ_INSERT_TAIL(&m->dirty, s, link);
    }
    return 0;
}

static int atomic_segment(void *ctx, const struct mem_segment *where, enum mem_atomic op, uint64_t compare_add,
                          uint64_t swap, uint64_t *old)
{
    struct mem_backend *m = ctx;
    struct client_mem *s = client_of(m, where, 1);
    struct iovec local = {old, sizeof(*old)};
    struct iovec remote = {(void *)(uintptr_t)where->va, sizeof(*old)};
    bool on_demand = is_on_demand(where, 1);

    if (!s)
        return -1;
    mem_backend_flush(m);
    if (m->late)
        late_writes_settle(m->late, s, remember_fault, m);
    switch (client_mem_read_all(s, &local, 1, &remote, 1, sizeof(*old))) {
    case CLIENT_MEM_DONE:
        break;
    case CLIENT_MEM_UNMAPPED:
        return on_demand ? -1 : MEM_UNMAPPED;
    default:
        return -1;
    }
    if (op == MEM_CMP_SWAP && *old != compare_add)
        return 0;
    uint64_t value = op == MEM_CMP_SWAP ? swap : *old + compare_add;
    local = (struct iovec){&value, sizeof(value)};
    remote = (struct iovec){(void *)(uintptr_t)where->va, sizeof(value)};
    return client_mem_write(s, &local, 1, &remote, 1) == sizeof(value) ? 0 : -1;
}

/* Later writes must not overtake earlier ones. Those that wait are executed in order, unless the device is unkind. */
static void order_writes(void *ctx)
{
    struct mem_backend *m = ctx;

    if (m->placement || m->late) {
        mem_backend_flush(m);
        mem_backend_settle(m, 0);
    }
}

const struct mem_ops mem_backend_ops = {
    .read = read_pieces,
    .write = write_pieces,
    .atomic = atomic_segment,
    .order = order_writes,
};
