// SPDX-License-Identifier: BSD-2-Clause
/* Finds the messages of a trace: which packets are a request and its responses. Finds retransmissions, packets that were
 * lost, and packets that were overtaken. A capture shows these only indirectly: a PSN comes again, or a NAK asks for it.
 * Comments of Pumice say it directly. */
#ifndef PUMICE_PCAP_TRACE_MESSAGE_H
#define PUMICE_PCAP_TRACE_MESSAGE_H

#include "pcap/trace/trace.h"

/* A request with its responses. */
struct message {
    uint64_t psn, end; /* first and last PSN, extended as in trace_packet */
    uint64_t bytes; /* of data; what is known of it */
    uint64_t va; /* RETH or AtomicETH */
    uint32_t rkey;
    uint32_t flow; /* of the requests */
    uint32_t number; /* in the flow, from 1 */
    uint32_t first; /* its first packet in the capture */
    uint32_t acked_by; /* the first packet that acknowledges all of it; TRACE_NONE: none */
    uint8_t opcode; /* of its first packet */
    bool ended; /* the last PSN is known */
    bool begun; /* the capture has its first packet */
};

struct messages {
    struct message *list; /* in the order of their first packets */
    size_t n, cap;
};

/* Finds all messages. Extends the PSNs, and sets message, repeats, reason, first_acked and marks of the packets. The flows
 * must be paired. On a lack of memory sets t->no_memory. The caller always frees *out. */
void messages_find(struct messages *out, struct trace *t);

void messages_free(struct messages *m);

#endif
