// SPDX-License-Identifier: BSD-2-Clause
/* The kinds of addresses in a GID. With RoCEv2 a GID is an IPv6 address or an IPv4-mapped one. */
#ifndef PUMICE_SRC_VERBS_BASE_GID_H
#define PUMICE_SRC_VERBS_BASE_GID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Is it an IPv4-mapped address, ::ffff:a.b.c.d? */
static inline bool vb_gid_is_v4(const uint8_t gid[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

/* Is it an IPv4-mapped multicast address, ::ffff:224.0.0.0/100? */
static inline bool vb_gid_is_v4_group(const uint8_t gid[16])
{
    return vb_gid_is_v4(gid) && gid[12] >> 4 == 0xe;
}

/* Is it a multicast address of either family? */
static inline bool vb_gid_is_group(const uint8_t gid[16])
{
    return gid[0] == 0xff || vb_gid_is_v4_group(gid);
}

#endif
