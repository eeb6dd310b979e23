// SPDX-License-Identifier: BSD-2-Clause
/* Makes the Ethernet, IP and UDP headers that a UDP payload would have on a network. Captures need these headers, but
 * the daemon sees only payloads, and the simulator has no network. */
#ifndef PUMICE_PCAP_FRAME_H
#define PUMICE_PCAP_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEAD_MAX (14 + 40 + 8)
#define FRAME_PAYLOAD_MAX (65535 - 20 - 8) /* the longest UDP payload over IPv4; over IPv6 it is longer */

struct frame_flow {
    uint8_t src[16]; /* GIDs; if both are IPv4-mapped, the frame is IPv4 */
    uint8_t dst[16];
    uint16_t src_port;
    uint16_t dst_port;
    uint16_t ip_id; /* IPv4 identification; DF is set */
    uint8_t tos; /* IPv4 TOS or IPv6 traffic class */
    /* Number of bytes at the end of the payload that were not captured. All lengths in the headers count them. If it is
     * not 0, the UDP checksum is 0. */
    uint16_t cut;
};

/* Writes the headers for payload[0 ... len) to dst, which must have room for FRAME_HEAD_MAX bytes. Returns the number
 * of bytes written (42 or 62), or 0 if len plus cut is more than FRAME_PAYLOAD_MAX. All checksums are right. The MAC
 * addresses are locally administered and made from the IP addresses. TTL or hop limit is 64, the flow label is 0. */
size_t frame_head(uint8_t *dst, const struct frame_flow *flow, const uint8_t *payload, size_t len);

/* Writes the ICRC for the headers of the flow into the last four bytes of the RoCEv2 packet payload[0 ... len). len is
 * at least 16. */
void frame_icrc(const struct frame_flow *flow, uint8_t *payload, size_t len);

#endif
