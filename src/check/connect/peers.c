// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/connect/peers.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "src/check/base/report.h"

#define PEERS 4096u /* a power of two */
#define TRIES 64u /* places for one queue pair */

static struct peer *table; /* [PEERS] */

uint64_t peers_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- the table --------------------------------------------------------------------------------- */

/* Descriptor of the file, or -1: the table is this process's own. */
static int open_file(void)
{
    const char *dir = getenv("PUMICE_CHECK_DIR");
    char path[PATH_MAX];

    if (!dir)
        return -1;
    snprintf(path, sizeof(path), "%s/peers", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && ftruncate(fd, (off_t)(PEERS * sizeof(*table))) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Under the lock of records.h. */
static struct peer *get_table(void)
{
    if (table)
        return table;
    int fd = open_file();
    void *memory = mmap(NULL, PEERS * sizeof(*table), PROT_READ | PROT_WRITE,
                        fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    if (memory != MAP_FAILED)
        table = memory;
    return table;
}

/* The n-th place for a queue pair. */
static struct peer *place(struct peer *t, const union ibv_gid *gid, uint32_t qpn, unsigned n)
{
    uint32_t hash = qpn * 2654435761u;

    for (unsigned i = 0; i < sizeof(gid->raw); i++)
        hash = hash * 31 + gid->raw[i];
    return &t[((hash ^ hash >> 16) + n) % PEERS];
}

struct peer *peers_add(const union ibv_gid *gid, uint32_t qpn)
{
    struct peer *t = get_table();

    for (unsigned i = 0; t && i < TRIES; i++) {
        struct peer *p = place(t, gid, qpn, i);
        uint32_t unused = 0;

        if (!atomic_compare_exchange_strong(&p->state, &unused, 1))
            continue;
        p->gid = *gid;
        p->qpn = qpn;
        p->pid = (uint32_t)getpid();
        atomic_store(&p->sent, 0);
        atomic_store(&p->rnr_retry, 0);
        atomic_store(&p->state, 2);
        return p;
    }
    return NULL;
}

void peers_remove(struct peer *own)
{
    if (own)
        atomic_store(&own->state, 0);
}

bool peers_is(const struct peer *p, const union ibv_gid *gid, uint32_t qpn)
{
    return atomic_load(&p->state) == 2 && p->qpn == qpn && memcmp(&p->gid, gid, sizeof(*gid)) == 0;
}

const struct peer *peers_find(const union ibv_gid *gid, uint32_t qpn)
{
    struct peer *t = get_table();

    for (unsigned i = 0; t && i < TRIES; i++) {
        const struct peer *p = place(t, gid, qpn, i);

        if (peers_is(p, gid, qpn))
            return p;
    }
    return NULL;
}

/* --- messages ---------------------------------------------------------------------------------- */

void peers_sent(struct peer *own, const struct trace *where)
{
    if (!own)
        return;
    uint64_t n = atomic_load_explicit(&own->sent, memory_order_relaxed);
    atomic_store_explicit(&own->message[n % PEER_MESSAGES].when, peers_now(), memory_order_relaxed);
    atomic_store_explicit(&own->message[n % PEER_MESSAGES].where, report_wanted() ? report_trace(where) : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&own->sent, n + 1, memory_order_release);
}

void peers_unsent(struct peer *own)
{
    if (own)
        atomic_fetch_sub(&own->sent, 1);
}
