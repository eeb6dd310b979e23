// SPDX-License-Identifier: BSD-2-Clause
/* The invariant CRC of RoCEv2 (IBA A17.3.3): CRC-32 over eight bytes of ones, the IP and UDP headers and the packet
 * up to the ICRC, with all fields that routers may change read as ones. Stored little-endian. */
#ifndef PUMICE_WIRE_ICRC_H
#define PUMICE_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What of the IP and UDP headers enters the CRC. */
struct icrc_flow {
    uint8_t src[16]; /* IPv6 address, or IPv4 in the last four bytes if !is_v6 */
    uint8_t dst[16];
    uint16_t src_port;
    uint16_t dst_port;
    bool is_v6;
};

/* A flow made ready: the CRC state over everything that is the same for each packet of the flow can be kept here, so
 * that a packet costs its own bytes and little more. Caller-owned; no fini. */
struct icrc_ctx {
    struct icrc_flow flow;
    uint8_t head[8 + 40 + 8]; /* ones, masked IP header, masked UDP header; lengths and ID zero */
    uint8_t head_len; /* 36 for IPv4, 56 for IPv6 */
};
void icrc_ctx_init(struct icrc_ctx *ctx, const struct icrc_flow *flow);

/* The ICRC of the packet pkt[0 ... len), len without the four bytes of the ICRC itself and at least BTH_LEN. ip_id
 * is the IPv4 identification (0 for what leaves an unconnected DF socket; the segment's index within a GSO batch);
 * DF is taken as set. Ignored for IPv6. */
uint32_t icrc_compute(const struct icrc_ctx *ctx, uint16_t ip_id, const uint8_t *pkt, size_t len);

/* Writes crc to p[0 ... 4) as it stands on the wire. */
void icrc_store(uint8_t *p, uint32_t crc);
uint32_t icrc_load(const uint8_t *p);

/* True if the ICRC at the end of pkt[0 ... len) (len with ICRC) is right for the given IP ID. */
bool icrc_check(const struct icrc_ctx *ctx, uint16_t ip_id, const uint8_t *pkt, size_t len);

/* As icrc_check for a receiver that can't see the IP ID: true if there is an ID for which the ICRC is right, which
 * is then stored in *ip_id. The map from ID to CRC difference is injective for a given length, so the check keeps 16
 * bits of strength. Tries hint first; what else it costs doesn't depend on the ID and little on len. IPv6: as
 * icrc_check, *ip_id is hint then. false, as from icrc_check, if len can't be a packet's. */
bool icrc_check_any_id(const struct icrc_ctx *ctx, uint16_t hint, const uint8_t *pkt, size_t len, uint16_t *ip_id);

#endif
