// SPDX-License-Identifier: BSD-2-Clause
/* Finds the packets of a batch that one GSO send can carry. They are adjacent in memory, go to one destination, and
 * have equal length; only the last may be shorter. This is a pure module: no I/O, no state. */
#ifndef PUMICE_DAEMON_NET_GSO_H
#define PUMICE_DAEMON_NET_GSO_H

#include "daemon/core/engine.h"

#define GSO_MAX_SEGMENTS 64u /* UDP_MAX_SEGMENTS of older kernels */
#define GSO_MAX_BYTES 65000u /* of one send; an IPv4 datagram holds up to 65,507 */

enum gso_mode {
    GSO_AUTO, /* on, but off while a sniffer is open */
    GSO_ON,
    GSO_OFF,
};

/* Returns how many packets, starting at pkt[0], one send can carry: at least 1. n must be at least 1. */
unsigned gso_span(const struct tx_pkt *pkt, unsigned n);

#endif
