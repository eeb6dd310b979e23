// SPDX-License-Identifier: BSD-2-Clause
/* The texts of a ladder about a packet or an exchange, in plain text. */
#ifndef PUMICE_PCAP_PICTURE_PACKET_TEXT_H
#define PUMICE_PCAP_PICTURE_PACKET_TEXT_H

#include "pcap/trace/exchange.h"
#include "pcap/trace/message.h"
#include "pcap/trace/trace.h"

#define PACKET_TEXT_MAX 200 /* bytes of a label or remark, with the end */
#define PACKET_DETAILS_MAX 1024

/* Groups of opcodes that a ladder tells apart by colour. */
enum packet_class {
    PACKET_SEND,
    PACKET_WRITE,
    PACKET_READ,
    PACKET_ATOMIC,
    PACKET_ACK,
    PACKET_NAK, /* also RNR NAKs */
    PACKET_CM,
    PACKET_DATAGRAM,
    PACKET_CNP,
    PACKET_CLASSES,
};
enum packet_class packet_class(const struct trace_packet *p);
/* The name of the class in style sheets: "send", "write" … */
const char *packet_class_name(enum packet_class c);

/* Writes what stands at the arrow: opcode and PSN; of a NAK its meaning; of connection management the message. */
void packet_label(char text[PACKET_TEXT_MAX], const struct trace *t, const struct trace_packet *p);

/* Writes what stands beside the arrow: the message, and what an ACK acknowledges. */
void packet_message(char text[PACKET_TEXT_MAX], const struct trace *t, const struct messages *m, uint32_t index);

/* Writes what is unusual about the packet: lost, retransmission …; "" if nothing is. */
void packet_remark(char text[PACKET_TEXT_MAX], const struct trace *t, uint32_t index);

/* Writes all that is known, in several lines. */
void packet_details(char text[PACKET_DETAILS_MAX], const struct trace *t, const struct messages *m, uint32_t index);

/* Writes the title of an exchange: "READ of 20,000 bytes". */
void exchange_title(char text[PACKET_TEXT_MAX], const struct trace *t, const struct messages *m,
                    const struct exchange *x);

#endif
