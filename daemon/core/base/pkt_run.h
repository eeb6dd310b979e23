// SPDX-License-Identifier: BSD-2-Clause
/* A run: consecutive packets of one message that stay within their device, where nobody wants to see packets. Nothing is
 * encoded, and the payload lies in one piece. The packets exist as numbers only: a run counts as its packets for windows,
 * PSNs, counters and turns. So a QP does with a run what it would have done with the packets. */
#ifndef PUMICE_DAEMON_CORE_BASE_PKT_RUN_H
#define PUMICE_DAEMON_CORE_BASE_PKT_RUN_H

#include "wire/pkt.h"

struct pkt_run {
    struct pkt first, last; /* their headers; those of one packet, if n is 1 */
    uint8_t middle; /* opcode of the packets between them */
    uint32_t n; /* packets */
    uint32_t mtu; /* bytes of payload of each packet but the last */
    const uint8_t *payload; /* of all packets */
    uint32_t payload_len;
};

/* Makes packet i of the run. It is the packet that the engine would have encoded. */
void pkt_run_packet(const struct pkt_run *r, uint32_t i, struct pkt *out);
/* Bytes of packet i's payload. */
uint32_t pkt_run_payload_len(const struct pkt_run *r, uint32_t i);
/* The opcode of packet i. */
uint8_t pkt_run_opcode(const struct pkt_run *r, uint32_t i);

#endif
