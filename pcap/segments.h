// SPDX-License-Identifier: BSD-2-Clause
/* Separates the packets of a datagram that GSO or GRO has merged. Pure: no state, no I/O. */
#ifndef PUMICE_PCAP_SEGMENTS_H
#define PUMICE_PCAP_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "pcap/decap.h"
#include "wire/pkt.h"

#define SEGMENTS_PACKET_MAX (PKT_HEADERS_MAX + PKT_MTU_MAX + ICRC_LEN) /* a longer datagram holds several packets */

/* True if the whole payload was captured and is one packet with a right ICRC. */
bool segments_is_packet(const struct decap *d);

/* Finds the size of the packets that were merged into one datagram; the last one may be shorter. Sets *step: with 1 the
 * IP identifications of the packets count up, as in the segments that the kernel makes of a GSO datagram; with 0 they
 * are equal, as with some NIC drivers. Returns 0 if there is no size with which all ICRCs are right. The whole payload
 * was captured. */
size_t segments_size(const struct decap *d, unsigned *step);

#endif
