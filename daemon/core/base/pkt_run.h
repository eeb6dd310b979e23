// SPDX-License-Identifier: BSD-2-Clause
/* A run: consecutive packets of one message from one QP of a device to another, while nothing wants to see the packets. The
 * sender does not encode them: the run has the headers of the first and the last one, and their payload in one piece. For
 * windows, PSNs, counters and turns, a run counts as its packets. So a QP does with a run the same as with the packets. */
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
