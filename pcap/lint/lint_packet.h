// SPDX-License-Identifier: BSD-2-Clause
/* Checks the rules for a single packet: lengths, BTH, headers, padding, ICRC. Makes the records of the packets. */
#ifndef PUMICE_PCAP_LINT_LINT_PACKET_H
#define PUMICE_PCAP_LINT_LINT_PACKET_H

#include "pcap/capread.h"
#include "pcap/decap.h"
#include "pcap/lint/base/lint_state.h"

/* Judges a UDP datagram to the port of RoCEv2, and appends its packets to the records. A datagram can hold several
 * packets if GSO or GRO has merged them. */
void lint_datagram(struct lint *l, const struct capread_frame *f, const struct decap *d);

#endif
