// SPDX-License-Identifier: BSD-2-Clause
/* Groups the packets of a trace to exchanges: a message with its responses, a rendezvous with its READ and its FIN, the
 * beginning or the end of a connection. A picture shows an exchange as one unit. */
#ifndef PUMICE_PCAP_TRACE_EXCHANGE_H
#define PUMICE_PCAP_TRACE_EXCHANGE_H

#include "pcap/trace/message.h"
#include "pcap/trace/trace.h"

enum exchange_kind {
    EXCHANGE_OTHER, /* a packet that belongs to no message */
    EXCHANGE_SEND,
    EXCHANGE_WRITE,
    EXCHANGE_READ,
    EXCHANGE_ATOMIC, /* also ATOMIC WRITE and FLUSH */
    EXCHANGE_DATAGRAM,
    EXCHANGE_RENDEZVOUS,
    EXCHANGE_CONNECT, /* REQ, REP, RTU … */
    EXCHANGE_DISCONNECT, /* DREQ, DREP */
    EXCHANGE_LOOKUP, /* SIDR_REQ, SIDR_REP */
    EXCHANGE_KINDS,
};

struct exchange {
    enum exchange_kind kind;
    uint32_t message; /* the first one; TRACE_NONE: none */
    uint32_t first; /* its first packet that is shown */
    uint32_t *packets; /* its packets that are shown, in the order of time */
    uint32_t num_packets;
    uint32_t num_messages;
    uint32_t lost, again; /* lost packets, retransmissions */
    uint64_t bytes; /* of data */
};

struct exchanges {
    struct exchange *list; /* those with packets come first, in the order of their first packets */
    size_t n; /* exchanges with packets */
    uint32_t *packets; /* storage of all packet lists */
};

/* Groups the packets whose bytes in `shown` are not 0. On a lack of memory sets t->no_memory. The caller always frees
 * *out. */
void exchanges_find(struct exchanges *out, struct trace *t, const struct messages *messages, const bool *shown);

void exchanges_free(struct exchanges *x);

/* "SEND", "rendezvous", "connection" … */
const char *exchange_name(enum exchange_kind kind);

#endif
