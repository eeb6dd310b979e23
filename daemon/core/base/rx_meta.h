// SPDX-License-Identifier: BSD-2-Clause
/* The things that the engine learns of a received packet beside its bytes: fields of its IP header, and for a packet of its own
 * device the QP that sent it. Also the check of the P_Key. */
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
    uint32_t flow_label; /* IPv6: 20 bits */
    bool ce; /* ECN congestion experienced */
    bool like_pumice; /* the sender's packets have what only those of Pumice devices have (wire/pumice/probe.h) */
    /* The QP that sent the packet. 0: not known, because the packet came from a network. RC, UC and XRC packets do not
     * name it, so only the owner of the engine can know it: when the packet stayed within the device. A connected QP
     * then takes it from no other QP than its peer. */
    uint32_t src_qpn;
};

/* Is it the P_Key of the default partition, the only one that the device has? The sender may be a full or a limited
 * member (IBA 10.9.3). */
static inline bool pkey_matches(uint16_t pkey)
{
    return (pkey & 0x7fff) == (PKEY_DEFAULT & 0x7fff);
}

#endif
