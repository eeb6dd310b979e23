// SPDX-License-Identifier: BSD-2-Clause
/* Arithmetic on 24-bit packet sequence numbers (IBA 9.7.2). */
#ifndef PUMICE_DAEMON_CORE_BASE_PSN_H
#define PUMICE_DAEMON_CORE_BASE_PSN_H

#include <stdint.h>

#include "wire/pkt.h"

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & PSN_MASK;
}

/* The distance from b to a: negative if a is behind b. Valid only if they are less than 2^23 apart. */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
    uint32_t d = (a - b) & PSN_MASK;
    return d & 0x800000u ? (int32_t)d - 0x1000000 : (int32_t)d;
}

/* Number of packets of a message of len bytes. An empty message takes one packet. */
static inline uint32_t psn_count(uint32_t len, uint32_t mtu)
{
    return len == 0 ? 1 : (uint32_t)(((uint64_t)len + mtu - 1) / mtu);
}

#endif
