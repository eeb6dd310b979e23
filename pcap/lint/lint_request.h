// SPDX-License-Identifier: BSD-2-Clause
/* Checks the rules for requests. A requester sends each PSN once and in order. A retransmission equals the packet that
 * it repeats. The packets of a message follow each other. */
#ifndef PUMICE_PCAP_LINT_LINT_REQUEST_H
#define PUMICE_PCAP_LINT_LINT_REQUEST_H

#include "pcap/lint/base/lint_state.h"

/* Judges the request in a record, and keeps it in the flow by its PSN. */
void lint_request(struct lint *l, struct flow *flow, uint32_t number);

/* Forgets the requests of the flow: its next request begins a new connection. */
void lint_restart(struct flow *flow);

/* The request whose PSNs include psn; NULL: none. */
struct request *lint_find_request(struct flow *flow, uint64_t psn);

/* psn extended to the 64-bit number that is nearest to `near`. */
uint64_t lint_unwrap(uint32_t psn, uint64_t near);

/* True if the request is the last packet of a message. */
bool lint_ends_message(const struct lint *l, const struct request *s);

/* True if the payload of the request packet, or the length in its RETH, breaks a rule. */
bool lint_wrong_length(const struct lint *l, const struct flow *flow, const struct request *s);

#endif
