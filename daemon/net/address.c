// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/net/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "wire/gid.h"

int addr_parse(const char *text, union addr *out)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM};
    struct addrinfo *res;

    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        return 0;
    }
    /* getaddrinfo parses scopes, but it also accepts 127.1 as an IPv4 address. */
    if (!strchr(text, ':') || getaddrinfo(text, NULL, &hints, &res) != 0)
        return -EINVAL;
    if (res->ai_addrlen <= sizeof(*out))
        memcpy(out, res->ai_addr, res->ai_addrlen);
    freeaddrinfo(res);
    return out->sa.sa_family == AF_INET || out->sa.sa_family == AF_INET6 ? 0 : -EINVAL;
}

socklen_t addr_len(const union addr *a)
{
    return a->sa.sa_family == AF_INET6 ? sizeof(a->v6) : sizeof(a->v4);
}

void addr_set_port(union addr *a, uint16_t port)
{
    if (a->sa.sa_family == AF_INET6)
        a->v6.sin6_port = htons(port);
    else
        a->v4.sin_port = htons(port);
}

uint16_t addr_port(const union addr *a)
{
    return ntohs(a->sa.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
}

bool addr_is_loopback(const union addr *a)
{
    if (a->sa.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
    return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
}

const char *addr_text(const union addr *a, char buf[ADDR_TEXT_MAX])
{
    if (getnameinfo(&a->sa, addr_len(a), buf, ADDR_TEXT_MAX, NULL, 0, NI_NUMERICHOST) != 0)
        snprintf(buf, ADDR_TEXT_MAX, "?");
    return buf;
}

const char *gid_text(const uint8_t gid[16], char buf[ADDR_TEXT_MAX])
{
    if (!inet_ntop(AF_INET6, gid, buf, ADDR_TEXT_MAX))
        snprintf(buf, ADDR_TEXT_MAX, "?");
    return buf;
}

void addr_to_gid(const union addr *a, uint8_t gid[16])
{
    if (a->sa.sa_family == AF_INET6) {
        memcpy(gid, &a->v6.sin6_addr, 16);
    } else {
        gid_from_v4(gid, &a->v4.sin_addr);
    }
}

bool addr_has_gid(const union addr *a, const uint8_t gid[16])
{
    uint8_t own[16];

    addr_to_gid(a, own);
    return memcmp(own, gid, sizeof(own)) == 0;
}

/* 239.192.0.0/14 is the organization-local scope (RFC 2365 6.2). The lower 18 bits are from the FNV-1a hash of the
 * MGID. */
static uint32_t group_of_mgid(const uint8_t gid[16])
{
    uint32_t hash = 2166136261u;

    for (unsigned i = 0; i < 16; i++)
        hash = (hash ^ gid[i]) * 16777619u;
    return 0xefc00000u | ((hash ^ hash >> 18) & 0x3ffffu);
}

/* For an IPv4 device. */
static bool to_v4(const uint8_t gid[16], union addr *out)
{
    out->v4.sin_family = AF_INET;
    if (gid[0] == 0xff)
        out->v4.sin_addr.s_addr = htonl(group_of_mgid(gid));
    else if (gid_is_v4(gid))
        memcpy(&out->v4.sin_addr, gid + GID_V4_AT, 4);
    return out->v4.sin_addr.s_addr != 0;
}

/* For an IPv6 device. Link-local addresses get its scope. */
static bool to_v6(const uint8_t gid[16], uint32_t scope, union addr *out)
{
    static const uint8_t zero[16];
    uint8_t *a = out->v6.sin6_addr.s6_addr;
    bool mapped = gid_is_v4(gid);

    out->v6.sin6_family = AF_INET6;
    memcpy(a, gid, 16);
    if (mapped && gid[GID_V4_AT] >> 4 == 0xe) { /* IPv4 group: below a transient prefix of organization scope */
        a[0] = 0xff;
        a[1] = 0x18;
        return true;
    }
    /* IPv6 does not send groups of interface-local scope to other hosts. InfiniBand does, so they get link scope. */
    if (gid[0] == 0xff && (gid[1] & 0xf) <= 1)
        a[1] = (gid[1] & 0xf0) | 2;
    if (IN6_IS_ADDR_LINKLOCAL(&out->v6.sin6_addr))
        out->v6.sin6_scope_id = scope;
    return !mapped && memcmp(gid, zero, 16) != 0;
}

bool gid_to_addr(const uint8_t gid[16], const union addr *own, union addr *out)
{
    memset(out, 0, sizeof(*out));
    return own->sa.sa_family == AF_INET6 ? to_v6(gid, own->v6.sin6_scope_id, out) : to_v4(gid, out);
}
