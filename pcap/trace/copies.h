// SPDX-License-Identifier: BSD-2-Clause
/* Finds the packets that were captured twice: where they left, and where they arrived. */
#ifndef PUMICE_PCAP_TRACE_COPIES_H
#define PUMICE_PCAP_TRACE_COPIES_H

#include "pcap/trace/trace.h"

/* Marks each second copy with TRACE_COPY, and gives its time to the first copy as arrival_ns. If a capture has both ends
 * of a flow, a packet without a copy was lost on its way: marks it, unless the flow ended before a copy could come. Does
 * nothing if the capture does not have the directions of packets. */
void copies_merge(struct trace *t);

#endif
