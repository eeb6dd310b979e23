// SPDX-License-Identifier: BSD-2-Clause
/* Computes and checks the invariant CRC (ICRC) of RoCEv2 (IBA A17.3.3). It is the CRC-32 over eight bytes of ones, the
 * IP and UDP headers, and the packet up to the ICRC. All fields that routers may change count as ones. The ICRC is
 * stored in little-endian order. */
#ifndef PUMICE_WIRE_ICRC_H
#define PUMICE_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The fields of the IP and UDP headers that the CRC covers. */
struct icrc_flow {
    uint8_t src[16]; /* IPv6 address, or IPv4 in the last four bytes if !is_v6 */
    uint8_t dst[16];
    uint16_t src_port;
    uint16_t dst_port;
    bool is_v6;
};

/* The prepared headers that are equal for all packets of a flow. With them, the ICRC of a packet takes little more time
 * than the CRC of the packet's own bytes. The caller owns the struct; there is nothing to release. */
struct icrc_ctx {
    struct icrc_flow flow;
    uint8_t head[8 + 40 + 8]; /* ones, masked IP header, masked UDP header; lengths and ID zero */
    uint8_t head_len; /* 36 for IPv4, 56 for IPv6 */
};
void icrc_ctx_init(struct icrc_ctx *ctx, const struct icrc_flow *flow);

/* Computes the ICRC of the packet pkt[0 ... len). len does not count the four bytes of the ICRC and is at least
 * BTH_LEN. ip_id is the IPv4 identification: 0 for packets from an unconnected socket with DF, and the segment's index
 * within a GSO batch. DF counts as set. IPv6 ignores ip_id. */
uint32_t icrc_compute(const struct icrc_ctx *ctx, uint16_t ip_id, const uint8_t *pkt, size_t len);

/* Writes crc to p[0 ... 4), or reads it from there, in the byte order of the wire. */
void icrc_store(uint8_t *p, uint32_t crc);
uint32_t icrc_load(const uint8_t *p);

/* True if the ICRC at the end of pkt[0 ... len) is right for the given IP ID. len counts the ICRC. */
bool icrc_check(const struct icrc_ctx *ctx, uint16_t ip_id, const uint8_t *pkt, size_t len);

/* Like icrc_check, for a receiver that can't see the IP ID. True if the ICRC is right for some ID; that ID is then
 * stored in *ip_id. For a given length, different IDs always give different CRCs, so 16 of the 32 bits still
 * detect errors. The function tries hint first. The time to find another ID does not depend on the ID, and depends only
 * little on len. IPv6 has no ID: the function does the same as icrc_check, and sets *ip_id to hint. False if no packet
 * can have this length. */
bool icrc_check_any_id(const struct icrc_ctx *ctx, uint16_t hint, const uint8_t *pkt, size_t len, uint16_t *ip_id);

#endif
