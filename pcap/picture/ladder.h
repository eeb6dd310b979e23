// SPDX-License-Identifier: BSD-2-Clause
/* A sequence diagram of a capture: a column for each address, time downwards, an arrow for each packet. This module
 * chooses its packets and columns. ladder_svg.h and ladder_html.h write it. */
#ifndef PUMICE_PCAP_PICTURE_LADDER_H
#define PUMICE_PCAP_PICTURE_LADDER_H

#include "pcap/trace/exchange.h"
#include "pcap/trace/message.h"
#include "pcap/trace/trace.h"

#define LADDER_COLUMNS_MAX 16
#define LADDER_PACKETS 1000 /* packets of one picture, if the user does not say how many */
#define LADDER_PACKETS_MAX 100000 /* the largest number that the user may ask for */

/* An end of packets: an address. If an address sends to itself, a queue pair of it. */
struct ladder_column {
    uint32_t host;
    uint32_t qpn; /* 0: all queue pairs of the host */
};

struct ladder {
    struct trace trace;
    struct messages messages;
    struct exchanges exchanges;
    const char *name; /* of the file */
    bool *shown; /* for each packet: it is in the picture */
    uint32_t *packets; /* the packets in the picture, in the order of time */
    uint32_t num_packets;
    uint32_t wanted; /* packets that the options choose, without the limit of their number */
    uint32_t lost, again; /* lost or damaged packets, and retransmissions, in the picture */
    struct ladder_column columns[LADDER_COLUMNS_MAX];
    uint32_t num_columns;
    bool many_connections; /* more than one between the same two columns */
    bool too_many; /* the packets need more than LADDER_COLUMNS_MAX columns: there is no picture */
    struct ladder_ends { /* for each flow: the columns of its ends */
        uint32_t src, dst;
    } * of_flow;
};

/* Reads f, and closes it. Keeps at most `count` packets. name is that of the file, for the title; it must stay. Returns 0,
 * -ENOMEM, -EINVAL if f is no capture or can't be read to its end (l->trace.error has the reason), -ENODATA if no packets
 * are chosen, or -E2BIG if they need too many columns. After -EINVAL the picture has the packets that were read, if
 * l->num_packets is not 0. The caller always frees *l by ladder_free. */
int ladder_read(struct ladder *l, FILE *f, const char *name, const struct trace_options *options, uint32_t count);

void ladder_free(struct ladder *l);

#endif
