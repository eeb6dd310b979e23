// SPDX-License-Identifier: BSD-2-Clause
/* Finds the RoCEv2 packet in a captured frame: link layer, IP, UDP. Pure: no state, no I/O. */
#ifndef PUMICE_PCAP_DECAP_H
#define PUMICE_PCAP_DECAP_H

#include "pcap/capread.h"

enum decap_verdict {
    DECAP_ROCE, /* a UDP datagram to port 4791 */
    DECAP_OTHER, /* not RoCEv2 */
    DECAP_SHORT, /* too few bytes were captured to find the port */
    DECAP_FRAGMENT, /* a fragment of an IP datagram to port 4791, or a fragment whose port is not known */
    DECAP_LENGTH, /* the lengths in UDP, IP and the frame contradict each other */
    DECAP_LINKTYPE, /* unknown link layer */
};

struct decap {
    uint8_t src[16], dst[16]; /* IPv4 addresses as ::ffff:a.b.c.d */
    const uint8_t *ip; /* IP header with options, ip_len bytes */
    size_t ip_len;
    const uint8_t *udp; /* eight bytes */
    const uint8_t *payload; /* the UDP payload; caplen bytes */
    size_t len; /* bytes of the UDP payload as it was sent */
    size_t caplen; /* bytes of it that were captured */
    bool is_v6;
    uint32_t ifindex; /* Linux's number of the interface, if the link layer has it (SLL2); else 0 */
    enum pcapng_direction direction; /* from the file; if the file does not say, from the link layer */
};

/* Decodes the headers of a frame. On DECAP_ROCE all of *out is set, and its pointers point into the frame. On other
 * verdicts *out is set only in part. */
enum decap_verdict decap_frame(const struct capread_frame *frame, struct decap *out);

/* Computes the ICRC that the packet pkt[0 ... len) would have if it were the only packet in a datagram with these
 * headers. len does not count the ICRC, and is at least BTH_LEN. The function adds ip_id_add to the identification of
 * IPv4. */
uint32_t decap_icrc(const struct decap *d, uint16_t ip_id_add, const uint8_t *pkt, size_t len);

#endif
