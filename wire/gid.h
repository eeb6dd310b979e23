// SPDX-License-Identifier: BSD-2-Clause
/* Tests and makes GIDs of RoCEv2. A GID is an IPv6 address in network byte order. For an IPv4 address a.b.c.d, it is
 * the IPv4-mapped IPv6 address ::ffff:a.b.c.d (IBA A17.4.5.2, RFC 4291 2.5.5.2). */
#ifndef PUMICE_WIRE_GID_H
#define PUMICE_WIRE_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bytes before the IPv4 address in an IPv4-mapped GID. */
#define GID_V4_AT 12

/* True if the GID is an IPv4-mapped address. Its IPv4 address is then gid[12 ... 15]. */
static inline bool gid_is_v4(const uint8_t gid[16])
{
    static const uint8_t mapped[GID_V4_AT] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, mapped, sizeof(mapped)) == 0;
}

/* True if the GID is that of a multicast group: ff00::/8, or 224.0.0.0/4 as an IPv4-mapped address. */
static inline bool gid_is_multicast(const uint8_t gid[16])
{
    return gid[0] == 0xff || (gid_is_v4(gid) && gid[GID_V4_AT] >> 4 == 0xe);
}

/* Sets the GID to ::ffff:a.b.c.d. ip4 points to the four bytes of the address in network byte order. It may point into
 * gid. */
static inline void gid_from_v4(uint8_t gid[16], const void *ip4)
{
    memmove(gid + GID_V4_AT, ip4, 4);
    memset(gid, 0, GID_V4_AT);
    gid[10] = gid[11] = 0xff;
}

#endif
