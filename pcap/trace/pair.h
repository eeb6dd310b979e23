// SPDX-License-Identifier: BSD-2-Clause
/* Finds the two flows that form a connection, and their path MTU. Comments and messages of connection management name
 * both QPs. Without these, a response has the PSN of its request, so the flows are paired whose responses fit each
 * other's requests best. Unlike the linter, a picture does not care where a packet was captured. */
#ifndef PUMICE_PCAP_TRACE_PAIR_H
#define PUMICE_PCAP_TRACE_PAIR_H

#include "pcap/trace/trace.h"

/* Sets peer, qpn_of_sender and mtu of all flows. On a lack of memory sets t->no_memory. */
void pair_flows(struct trace *t);

#endif
