// SPDX-License-Identifier: BSD-2-Clause
/* What the IP header of a received packet says. */
#ifndef PUMICE_CORE_BASE_RX_META_H
#define PUMICE_CORE_BASE_RX_META_H

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

/* Does the packet belong to the one partition, as a full or as a limited member (IBA 10.9.3)? */
static inline bool pkey_matches(uint16_t pkey)
{
    return (pkey & 0x7fff) == (PKEY_DEFAULT & 0x7fff);
}

#endif
