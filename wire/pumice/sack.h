// SPDX-License-Identifier: BSD-2-Clause
/* Encodes and decodes selective acknowledgements (SACKs) between Pumice devices. A SACK tells the requester of a reliable
 * QP which of its request packets the responder has received beyond the first missing one, and which are missing. The
 * requester then sends only those again. InfiniBand has no such packet: its NAK names the first missing packet only.
 *
 * As a probe (wire/pumice/probe.h) does, a SACK travels as a UD SEND Only packet to QP 2, which no verbs QP has. A device sends
 * it only to a peer that has said in the answer to a probe that it understands SACKs. All others would drop it.
 *
 *     0  magic "PMCS"              4  version 2   5  number of gaps
 *     6  how far the newest PSN that came is beyond `end`: 0 … 65535, which means so far or farther
 *     8  QP of the requester      12  QP of the responder
 *    16  PSN that the responder expects: everything before it has arrived
 *    20  end: the SACK says nothing about packets from this PSN on
 *    24  number of request packets that have come twice, modulo 2^32
 *    28  gaps, 6 bytes each: distance from the expected PSN (24 bits), number of missing PSNs (24 bits)
 *
 * All fields are in network byte order. The first gap has distance 0. The gaps are in order, and do not touch each other.
 * Everything between two gaps has arrived, and everything from the last gap to `end`. The last gap may reach up to `end`:
 * the responder had no room for packets that came. If there are more gaps than fit, `end` is before the next one. */
#ifndef PUMICE_WIRE_PUMICE_SACK_H
#define PUMICE_WIRE_PUMICE_SACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SACK_GAPS_MOST 32u /* so that a SACK fits into the smallest path MTU, 256 bytes */
#define SACK_HEAD 28u /* bytes before the gaps */
#define SACK_GAP 6u /* bytes of a gap */
#define SACK_BEYOND_MOST 0xffffu
#define SACK_LEN_MOST (SACK_HEAD + SACK_GAPS_MOST * SACK_GAP)

struct sack_gap { /* missing PSNs [start, end) */
    uint32_t start, end;
};
struct sack {
    uint32_t requester, responder; /* numbers of the two QPs */
    uint32_t expected; /* PSN */
    uint32_t end; /* PSN */
    uint32_t newest; /* PSN: no packet has come from this one on. Not before `end` */
    uint32_t twice; /* number of request packets that have come twice so far */
    uint32_t gaps; /* 1 … SACK_GAPS_MOST */
    struct sack_gap gap[SACK_GAPS_MOST];
};

/* Does the payload begin as a SACK of this version does? The rest may be wrong. */
bool sack_is_named(const uint8_t *payload, uint32_t len);
/* Returns false if the payload is no SACK, has another version or a wrong length, or breaks a rule above. */
bool sack_decode(const uint8_t *payload, uint32_t len, struct sack *out);
/* The SACK in the packet pkt[0 … len), which begins with the BTH. False: it has none. The ICRC need not be there. */
bool sack_of_packet(const uint8_t *pkt, size_t len, struct sack *out);
/* Bytes of the payload. */
static inline uint32_t sack_len(const struct sack *s)
{
    return SACK_HEAD + s->gaps * SACK_GAP;
}
/* Is the newest PSN so far beyond `end` that the SACK can't say how far? */
bool sack_is_far(const struct sack *s);
/* Writes sack_len(s) bytes. */
void sack_encode(const struct sack *s, uint8_t *dst);

#endif
