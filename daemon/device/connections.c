// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/connections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int connections_init(struct connections *c, unsigned devices)
{
    memset(c, 0, sizeof(*c));
    pthread_mutex_init(&c->lock, NULL);
    atomic_init(&c->changes, 1);
    c->devices = devices;
    for (unsigned i = 0; i < devices; i++) {
        c->slot[i] = calloc(CONNECTION_SLOTS, sizeof(*c->slot[i]));
        if (!c->slot[i])
            return -ENOMEM;
    }
    return 0;
}

void connections_fini(struct connections *c)
{
    if (!c->devices)
        return;
    for (unsigned i = 0; i < c->devices; i++)
        free(c->slot[i]);
    pthread_mutex_destroy(&c->lock);
    c->devices = 0;
}

void connections_set_addresses(struct connections *c, unsigned device, const uint8_t (*gid)[16], unsigned n)
{
    pthread_mutex_lock(&c->lock);
    memcpy(c->address[device].gid, gid, n * sizeof(gid[0]));
    c->address[device].n = n;
    pthread_mutex_unlock(&c->lock);
    /* Release: a thread that sees the new number (refresh) takes the lock and finds the new addresses. */
    atomic_fetch_add_explicit(&c->changes, 1, memory_order_release);
}

void connections_set_peer(struct connections *c, unsigned device, uint32_t qpn, uint32_t peer)
{
    uint64_t entry = peer ? (uint64_t)qpn << 32 | peer : 0;

    /* Relaxed: the word is all that there is to see. The program that connects the QP gets its reply later, and only
     * then can packets of its peer mean anything. */
    atomic_store_explicit(&c->slot[device][qpn % CONNECTION_SLOTS], entry, memory_order_relaxed);
}

static void refresh(struct connections *c, struct connections_view *v, uint32_t changes)
{
    v->n = 0;
    pthread_mutex_lock(&c->lock);
    for (unsigned i = 0; i < c->devices; i++) {
        for (unsigned j = 0; j < c->address[i].n; j++, v->n++) {
            memcpy(v->address[v->n].gid, c->address[i].gid[j], 16);
            v->address[v->n].device = i;
        }
    }
    pthread_mutex_unlock(&c->lock);
    v->changes = changes;
}

static int find_device(const struct connections_view *v, const uint8_t gid[16])
{
    for (unsigned i = 0; i < v->n; i++) {
        if (memcmp(v->address[i].gid, gid, 16) == 0)
            return (int)v->address[i].device;
    }
    return -1;
}

bool connections_refuse(struct connections *c, struct connections_view *v, const uint8_t dgid[16], uint32_t dest_qpn,
                        uint32_t src_qpn)
{
    uint32_t changes = atomic_load_explicit(&c->changes, memory_order_acquire);
    bool changed = v->changes != changes;

    if (changed) /* rare: an interface has got or lost an address */
        refresh(c, v, changes);
    if (changed || memcmp(v->last, dgid, 16) != 0) {
        memcpy(v->last, dgid, 16);
        v->last_device = find_device(v, dgid);
    }
    if (v->last_device < 0)
        return false;
    uint64_t entry = atomic_load_explicit(&c->slot[v->last_device][dest_qpn % CONNECTION_SLOTS], memory_order_relaxed);
    return entry >> 32 == dest_qpn && (uint32_t)entry != src_qpn;
}
