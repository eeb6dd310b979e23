// SPDX-License-Identifier: BSD-2-Clause
/* Which packets of a batch can leave by one GSO send: they lie side by side, go to one destination, and are equally
 * long, but for the last, which may be shorter. Pure. */
#ifndef PUMICE_DAEMON_GSO_H
#define PUMICE_DAEMON_GSO_H

#include "daemon/core/engine.h"

#define GSO_MAX_SEGMENTS 64u /* UDP_MAX_SEGMENTS of older kernels */
#define GSO_MAX_BYTES 65000u /* of one send; an IPv4 datagram has room for 65,507 */

/* Whether many packets travel in one system call (GSO and GRO). */
enum gso_mode {
    GSO_AUTO, /* on, but off while a sniffer is open */
    GSO_ON,
    GSO_OFF,
};

/* Number of packets, at least 1 (n must be), from pkt[0] on, that one send can carry. */
unsigned gso_span(const struct tx_pkt *pkt, unsigned n);

#endif
