// SPDX-License-Identifier: BSD-2-Clause
/* Extends the PSNs of a trace from 24 to 64 bits, and finds what their order says: retransmissions, losses, packets that
 * were overtaken. */
#ifndef PUMICE_PCAP_TRACE_PSN_ORDER_H
#define PUMICE_PCAP_TRACE_PSN_ORDER_H

#include "pcap/trace/trace.h"

/* Sets psn, marks, repeats and reason of all packets. The low 24 bits of psn stay. A response gets the PSN of the request
 * that it answers. A packet whose PSN says nothing (UD, damaged, a response without a peer) keeps its 24 bits. */
void psn_order(struct trace *t);

/* True if psn_order has extended the PSN. */
static inline bool psn_is_extended(const struct trace_packet *p)
{
    return p->psn > 0xffffff;
}

#endif
