// SPDX-License-Identifier: BSD-2-Clause
/* From a captured frame to the RoCEv2 packet in it: link layer, IP, UDP. Pure. */
#ifndef PUMICE_PCAP_DECAP_H
#define PUMICE_PCAP_DECAP_H

#include "pcap/capread.h"

enum decap_verdict {
    DECAP_ROCE, /* a UDP datagram to port 4791 */
    DECAP_OTHER, /* something else, of no concern */
    DECAP_SHORT, /* so little was captured that it can't be told, or the headers of RoCEv2 are cut off */
    DECAP_FRAGMENT, /* a fragment of an IP datagram to port 4791, or one that can't be told */
    DECAP_LENGTH, /* UDP or IP lengths that contradict each other or the frame */
    DECAP_LINKTYPE, /* a link layer that is not known */
};

struct decap {
    uint8_t src[16], dst[16]; /* IPv4 addresses as ::ffff:a.b.c.d */
    const uint8_t *ip; /* IP header with options, ip_len bytes */
    size_t ip_len;
    const uint8_t *udp; /* eight bytes */
    const uint8_t *payload; /* the UDP payload as far as it was captured */
    size_t len; /* bytes of the UDP payload as it was sent */
    size_t caplen; /* bytes of it that are there */
    bool is_v6;
    uint32_t ifindex; /* of the interface, where the link layer says it (SLL2); else 0 */
    enum pcapng_direction direction; /* from the link layer, if the file itself doesn't know */
};

/* On DECAP_ROCE all of *out is set, pointing into the frame; on DECAP_LENGTH and DECAP_FRAGMENT the addresses. */
enum decap_verdict decap_frame(const struct capread_frame *frame, struct decap *out);

/* The ICRC that the packet pkt[0 ... len) (len without ICRC; at least a BTH) would have if it were a datagram of its own with
 * these headers; ip_id_add is added to the identification of IPv4. Since the headers are there, nothing is guessed. */
uint32_t decap_icrc(const struct decap *d, uint16_t ip_id_add, const uint8_t *pkt, size_t len);

#endif
