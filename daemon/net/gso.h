// SPDX-License-Identifier: BSD-2-Clause
/* The limits and the modes of GSO: one send carries many packets (core/base/tx_batch.h finds them). */
#ifndef PUMICE_DAEMON_NET_GSO_H
#define PUMICE_DAEMON_NET_GSO_H

#define GSO_MAX_SEGMENTS 64u /* UDP_MAX_SEGMENTS of older kernels */
#define GSO_MAX_BYTES 65000u /* of one send; an IPv4 datagram holds up to 65,507 */

enum gso_mode {
    GSO_AUTO, /* on, but off while a sniffer is open */
    GSO_ON,
    GSO_OFF,
};

#endif
