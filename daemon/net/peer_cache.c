// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/net/peer_cache.h"

#include <string.h>

#include "wire/gid.h"
#include "wire/pkt.h"

void peers_init(struct peers *p, const union addr *own, bool incoming)
{
    memset(p, 0, sizeof(*p));
    p->own = *own;
    p->incoming = incoming;
    p->last = &p->slot[0];
}

static struct peer_addr *slot_of(struct peers *p, const uint8_t gid[16], uint16_t port)
{
    uint64_t a, b;

    memcpy(&a, gid, 8);
    memcpy(&b, gid + 8, 8);
    a = (a ^ b ^ port) * 0x9e3779b97f4a7c15ull;
    return &p->slot[a >> 56];
}
_Static_assert(PEER_SLOTS == 256, "slot_of takes eight bits");

/* The address bytes that enter the ICRC. An IPv4 address is in the last four, as in a mapped GID. */
static void host_bytes(const union addr *a, uint8_t out[16])
{
    memset(out, 0, 16);
    if (a->sa.sa_family == AF_INET6)
        memcpy(out, &a->v6.sin6_addr, 16);
    else
        memcpy(out + 12, &a->v4.sin_addr, 4);
}

static struct peer_addr *fill(struct peers *p, struct peer_addr *slot, const uint8_t gid[16], const union addr *addr)
{
    struct icrc_flow flow = {0};
    const union addr *src = p->incoming ? addr : &p->own;
    const union addr *dst = p->incoming ? &p->own : addr;

    host_bytes(src, flow.src);
    host_bytes(dst, flow.dst);
    flow.src_port = addr_port(src);
    flow.dst_port = addr_port(dst);
    flow.is_v6 = addr->sa.sa_family == AF_INET6;
    memcpy(slot->gid, gid, 16);
    slot->addr = *addr;
    slot->addr_len = addr_len(addr);
    slot->multicast = gid_is_multicast(gid);
    slot->other_port = addr_port(addr) != ROCE_PORT;
    slot->like_pumice = false;
    slot->refused_by = 0;
    icrc_ctx_init(&slot->icrc, &flow);
    slot->valid = true;
    return slot;
}

struct peer_addr *peers_by_gid(struct peers *p, const uint8_t gid[16])
{
    union addr addr;

    if (p->last->valid && memcmp(p->last->gid, gid, 16) == 0)
        return p->last;
    p->last = slot_of(p, gid, ROCE_PORT);
    if (p->last->valid && memcmp(p->last->gid, gid, 16) == 0)
        return p->last;
    if (!gid_to_addr(gid, &p->own, &addr))
        return NULL;
    addr_set_port(&addr, ROCE_PORT);
    return fill(p, p->last, gid, &addr);
}

static bool same_addr(const union addr *a, const union addr *b)
{
    if (a->sa.sa_family != b->sa.sa_family)
        return false;
    if (a->sa.sa_family == AF_INET)
        return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr && a->v4.sin_port == b->v4.sin_port;
    return memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, 16) == 0 && a->v6.sin6_port == b->v6.sin6_port;
}

struct peer_addr *peers_by_addr(struct peers *p, const union addr *addr)
{
    uint8_t gid[16];

    if (p->last->valid && same_addr(&p->last->addr, addr))
        return p->last;
    addr_to_gid(addr, gid);
    p->last = slot_of(p, gid, addr_port(addr));
    if (p->last->valid && same_addr(&p->last->addr, addr))
        return p->last;
    return fill(p, p->last, gid, addr);
}
