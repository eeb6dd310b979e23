// SPDX-License-Identifier: BSD-2-Clause
/* The fields of a received packet's IP header that the engine uses, and the check of its P_Key. */
#ifndef PUMICE_DAEMON_CORE_BASE_RX_META_H
#define PUMICE_DAEMON_CORE_BASE_RX_META_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/pkt.h"

struct rx_meta {
    uint8_t src_gid[16]; /* from the IP header; v4 as ::ffff:a.b.c.d */
    uint8_t dst_gid[16]; /* in the same form: one of the device's addresses, or a multicast group */
    uint8_t traffic_class; /* TOS or traffic class */
    uint8_t hop_limit; /* 0: not known */
    bool ce; /* ECN congestion experienced */
};

/* Is it the P_Key of the default partition, the only one that the device has? The sender may be a full or a limited
 * member (IBA 10.9.3). */
static inline bool pkey_matches(uint16_t pkey)
{
    return (pkey & 0x7fff) == (PKEY_DEFAULT & 0x7fff);
}

#endif
