// SPDX-License-Identifier: BSD-2-Clause
/* Makes up the Ethernet, IP and UDP headers that a UDP payload would have had on a network, for captures of what
 * never had them (the daemon sees payloads only, the simulator has no network at all). */
#ifndef PUMICE_PCAP_FRAME_H
#define PUMICE_PCAP_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEAD_MAX (14 + 40 + 8)
#define FRAME_PAYLOAD_MAX (65535 - 20 - 8) /* the longest UDP payload of IPv4, the smaller of the two */

struct frame_flow {
    uint8_t src[16]; /* IPv6 addresses; if both are ::ffff:a.b.c.d, the frame is IPv4 */
    uint8_t dst[16];
    uint16_t src_port;
    uint16_t dst_port;
    uint16_t ip_id; /* IPv4 identification; DF is set */
    uint8_t tos; /* IPv4 TOS or IPv6 traffic class */
    uint16_t
        cut; /* bytes of payload that follow on those that are at hand: all lengths count them, and the UDP checksum
                   * is then 0, not computed */
};

/* Writes the headers for payload[0 ... len) to dst, of which there must be FRAME_HEAD_MAX bytes; returns how many
 * were written (42 or 62), or 0 if len and cut are more than FRAME_PAYLOAD_MAX. All checksums are right. The MAC addresses
 * are locally administered ones made from the IP addresses, TTL or hop limit is 64, the flow label 0. */
size_t frame_head(uint8_t *dst, const struct frame_flow *flow, const uint8_t *payload, size_t len);

/* Fills in the ICRC, the last four bytes, of the RoCEv2 packet payload[0 ... len), len at least 16, as the flow's headers want it. */
void frame_icrc(const struct frame_flow *flow, uint8_t *payload, size_t len);

#endif
