// SPDX-License-Identifier: BSD-2-Clause
/* The 40 bytes before each received datagram, where InfiniBand has its Global Route Header and RoCEv2 puts the IP header
 * (IBA A17.4.5.2): an IPv6 header as it stands; or 20 bytes of zeroes and an IPv4 header. Programs read the sender's
 * address from it. */
#ifndef PUMICE_WIRE_GRH_H
#define PUMICE_WIRE_GRH_H

#include <stdint.h>

#define GRH_LEN 40u

struct grh { /* what is known of the packet's IP header */
    uint8_t src[16], dst[16]; /* GIDs: IPv6 addresses or ::ffff:a.b.c.d, both of one kind */
    uint8_t traffic_class; /* TOS or traffic class */
    uint8_t hop_limit; /* TTL or hop limit */
    uint16_t len; /* bytes of the UDP payload, BTH to ICRC */
};

/* Builds it as the packet had it. What a UDP socket does not tell is written as what the senders of RoCEv2 use: IPv4
 * without options, identification 0, DF; IPv6 without extension headers, flow label 0. The checksum of an IPv4 header is
 * right: libibverbs looks at it to tell the two kinds apart. */
void grh_build(const struct grh *g, uint8_t out[GRH_LEN]);

#endif
