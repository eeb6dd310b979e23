// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/cm/host/ucma_sockaddr.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "daemon/cm/host/cm_devices.h"
#include "wire/gid.h"

#define PKEY_DEFAULT 0xffffu

size_t ucma_sockaddr_size(const union ucma_sockaddr *a)
{
    switch (a->sa.sa_family) {
    case AF_INET:
        return sizeof(a->v4);
    case AF_INET6:
        return sizeof(a->v6);
    case AF_IB:
        return sizeof(a->ib);
    default:
        return 0;
    }
}

static void read_ib(const struct ucma_sockaddr_ib *ib, struct cm_addr *out)
{
    uint64_t sid = be64toh(ib->sid);

    memcpy(out->gid, ib->gid, sizeof(out->gid));
    out->v6 = !gid_is_v4(ib->gid);
    out->port = (uint16_t)sid;
}

int ucma_sockaddr_read(const union ucma_sockaddr *a, struct cm_addr *out, uint32_t *scope)
{
    memset(out, 0, sizeof(*out));
    *scope = 0;
    switch (a->sa.sa_family) {
    case AF_INET:
        gid_from_v4(out->gid, &a->v4.sin_addr);
        out->port = ntohs(a->v4.sin_port);
        return 0;
    case AF_INET6:
        out->v6 = true;
        memcpy(out->gid, &a->v6.sin6_addr, sizeof(out->gid));
        out->port = ntohs(a->v6.sin6_port);
        if (!cm_is_link_local(out->gid))
            return 0;
        *scope = a->v6.sin6_scope_id;
        return *scope ? 0 : -EINVAL;
    case AF_IB:
        read_ib(&a->ib, out);
        return 0;
    default:
        return -EAFNOSUPPORT;
    }
}

bool cm_addr_is_wildcard(const struct cm_addr *a)
{
    static const uint8_t zero[16];

    return memcmp(a->gid, zero, sizeof(zero)) == 0 ||
           (gid_is_v4(a->gid) && memcmp(a->gid + GID_V4_AT, zero, sizeof(zero) - GID_V4_AT) == 0);
}

bool cm_addr_make_wildcard(struct cm_addr *a)
{
    static const uint8_t localhost[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1}, localhost6[16] = {[15] = 1};

    if (memcmp(a->gid, localhost, sizeof(localhost)) != 0 && memcmp(a->gid, localhost6, sizeof(localhost6)) != 0)
        return false;
    memset(a->gid + (gid_is_v4(a->gid) ? GID_V4_AT : 0), 0, sizeof(a->gid) - (gid_is_v4(a->gid) ? GID_V4_AT : 0));
    return true;
}

bool cm_addr_is_none(const struct cm_addr *a)
{
    static const uint8_t zero[16];

    return a->port == 0 && memcmp(a->gid, zero, sizeof(zero)) == 0;
}

size_t ucma_sockaddr_write(const struct cm_addr *a, uint32_t scope, union ucma_sockaddr *out)
{
    memset(out, 0, sizeof(*out));
    if (cm_addr_is_none(a))
        return 0;
    if (a->v6) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(a->port);
        memcpy(&out->v6.sin6_addr, a->gid, sizeof(a->gid));
        out->v6.sin6_scope_id = cm_is_link_local(a->gid) ? scope : 0;
        return sizeof(out->v6);
    }
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(a->port);
    memcpy(&out->v4.sin_addr, a->gid + GID_V4_AT, sizeof(out->v4.sin_addr));
    return sizeof(out->v4);
}

void ucma_sockaddr_write_ib(const struct cm_addr *a, uint16_t port_space, struct ucma_sockaddr_ib *out)
{
    *out = (struct ucma_sockaddr_ib){
        .family = AF_IB,
        .pkey = htobe16(PKEY_DEFAULT),
        .sid = htobe64((uint64_t)port_space << 16 | a->port),
    };
    memcpy(out->gid, a->gid, sizeof(out->gid));
}

void cm_addr_to_net(const struct cm_addr *a, uint32_t scope, union addr *out)
{
    union ucma_sockaddr sa;

    ucma_sockaddr_write(a, scope, &sa);
    memset(out, 0, sizeof(*out));
    if (a->v6)
        out->v6 = sa.v6;
    else
        out->v4 = sa.v4;
}
