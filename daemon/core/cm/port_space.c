// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/cm/port_space.h"

#include <errno.h>
#include <string.h>

#include "wire/gid.h"

#define TWEAK_PORT 0x30000u

/* The port spaces that RDMA IP CM service IDs have. */
static const uint16_t spaces[PORT_SPACES] = {CM_PS_IPOIB, CM_PS_TCP, CM_PS_UDP, CM_PS_IB};

static uint32_t index_of(uint16_t port_space)
{
    uint32_t i = 0;
    while (i < PORT_SPACES && spaces[i] != port_space)
        i++;
    return i;
}

bool port_space_exists(uint16_t port_space)
{
    return index_of(port_space) < PORT_SPACES;
}

bool cm_addr_is_any(const struct cm_addr *a)
{
    static const uint8_t zero[16];
    if (gid_is_v4(a->gid))
        return memcmp(a->gid + 12, zero, 4) == 0;
    return memcmp(a->gid, zero, 16) == 0;
}

size_t port_table_size(void)
{
    return sizeof(struct binding *) * PORT_SPACES * PORTS;
}

void port_table_init(struct port_table *t, void *mem, uint16_t first_port, uint16_t last_port,
                     const struct permute_secret *secret)
{
    *t = (struct port_table){.first = mem, .first_port = first_port, .last_port = last_port, .secret = *secret};
}

static struct binding **users_of(const struct port_table *t, uint16_t port_space, uint16_t port)
{
    return &t->first[index_of(port_space) * PORTS + port];
}

/* As cma_check_port of Linux. */
static int check(const struct port_table *t, const struct binding *b, bool reuseaddr)
{
    for (const struct binding *o = *users_of(t, b->port_space, b->addr.port); o; o = o->next) {
        if (o == b || (reuseaddr && o->reuseaddr && !o->listening))
            continue;
        if (b->afonly && o->afonly && b->addr.v6 != o->addr.v6)
            continue;
        if (cm_addr_is_any(&b->addr) || cm_addr_is_any(&o->addr))
            return -EADDRNOTAVAIL;
        if (memcmp(b->addr.gid, o->addr.gid, sizeof(b->addr.gid)) == 0)
            return -EADDRINUSE;
    }
    return 0;
}

/* A port that nobody uses, in a secret order. 0: there is none. */
static uint16_t ephemeral(struct port_table *t, uint16_t port_space)
{
    for (uint32_t i = 0; i < PORTS; i++) {
        uint16_t port = (uint16_t)permute(&t->secret, TWEAK_PORT, 16, ++t->tried % PORTS);
        if (port && port >= t->first_port && port <= t->last_port && !*users_of(t, port_space, port))
            return port;
    }
    return 0;
}

int port_space_bind(struct port_table *t, struct binding *b)
{
    uint16_t chosen = b->addr.port;
    if (chosen) {
        int rc = check(t, b, b->reuseaddr);
        if (rc)
            return rc;
    } else if ((b->addr.port = ephemeral(t, b->port_space)) == 0) {
        return -EADDRNOTAVAIL;
    }
    struct binding **head = users_of(t, b->port_space, b->addr.port);
    b->next = *head;
    b->link = head;
    if (b->next)
        b->next->link = &b->next;
    *head = b;
    return 0;
}

int port_space_may_listen(const struct port_table *t, const struct binding *b)
{
    return check(t, b, false);
}

void port_space_release(struct binding *b)
{
    if (!b->link)
        return;
    *b->link = b->next;
    if (b->next)
        b->next->link = b->link;
    b->next = NULL;
    b->link = NULL;
    b->listening = false;
}

/* As cma_match_private_data of Linux. */
static bool matches(const struct binding *b, bool v6, const uint8_t gid[16])
{
    bool any = cm_addr_is_any(&b->addr);
    if (any && !b->afonly)
        return true;
    return b->addr.v6 == v6 && (any || memcmp(b->addr.gid, gid, 16) == 0);
}

struct binding *port_space_find(const struct port_table *t, uint16_t port_space, uint16_t port, bool v6,
                                const uint8_t gid[16])
{
    struct binding *found = NULL;
    if (!port_space_exists(port_space))
        return NULL;
    for (struct binding *b = *users_of(t, port_space, port); b; b = b->next) {
        if (b->listening && matches(b, v6, gid) && (!found || cm_addr_is_any(&found->addr)))
            found = b;
    }
    return found;
}
