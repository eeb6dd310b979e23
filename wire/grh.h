// SPDX-License-Identifier: BSD-2-Clause
/* Builds the 40 bytes before each received datagram (UD). InfiniBand has its Global Route Header there. RoCEv2 has the
 * IP header there (IBA A17.4.5.2): an IPv6 header, or 20 bytes of zeroes and an IPv4 header. Programs read the sender's
 * address from it. */
#ifndef PUMICE_WIRE_GRH_H
#define PUMICE_WIRE_GRH_H

#include <stdint.h>

#define GRH_LEN 40u

/* The fields of the packet's IP header that the receiver knows. */
struct grh {
    uint8_t src[16], dst[16]; /* GIDs; either both are IPv4-mapped, or both are IPv6 */
    uint8_t traffic_class; /* TOS or traffic class */
    uint8_t hop_limit; /* TTL or hop limit */
    uint32_t flow_label; /* IPv6: 20 bits */
    uint16_t len; /* bytes of the UDP payload, BTH to ICRC */
};

/* Builds the header from these fields. A UDP socket does not report the other fields of the packet's IP header. They
 * get the values that RoCEv2 senders use: IPv4 without options, identification 0, DF; IPv6 without extension headers.
 * The checksum of an IPv4 header is right, because libibverbs uses it to distinguish IPv4 from IPv6. */
void grh_build(const struct grh *g, uint8_t out[GRH_LEN]);

#endif
