// SPDX-License-Identifier: BSD-2-Clause
/* Which two flows form a connection. A packet names only the QP that it goes to. But a response has the PSN of its
 * request, and each QP begins with a PSN of its own. So among all flows between the same two addresses, the linter
 * pairs those whose responses fit the requests of the other best. It first pairs flows that were captured at the same
 * interface. Then it pairs the rest: a capture of what each end sends has the two directions at different interfaces.
 * Where comments name the senders (note.h), they decide. */
#ifndef PUMICE_PCAP_LINT_LINT_FLOW_H
#define PUMICE_PCAP_LINT_LINT_FLOW_H

#include "pcap/lint/lint_state.h"

#define FAR_PSNS 65536 /* a larger jump of PSNs begins a new connection */

/* The flow of a packet, made if it is new; NULL without memory. If the key has no src_qpn, this is the newest flow with
 * the same other fields and a src_qpn, if there is one: it belongs to a packet that was captured as it left, and is
 * captured again as it arrives. */
struct flow *lint_flow(struct lint *l, const struct flow_key *key);

/* Frees a flow and all that it holds. */
void lint_flow_free(struct flow *flow);

/* True if the addresses of the flows allow them to be the two directions of a connection. */
bool lint_may_pair(const struct flow *a, const struct flow *b);

/* True if both were captured at the same interface. */
bool lint_same_interface(const struct flow *a, const struct flow *b);

/* Pairs the flows, and finds their path MTUs. */
void lint_pair(struct lint *l);

/* Finds another flow towards the requesters of this flow that has sent psn before record number `before`; NULL: none.
 * */
struct flow *lint_find_requester(struct lint *l, const struct flow *flow, uint32_t psn, uint32_t before);

/* Number of response packets to a READ of len bytes; 0 if it is not known. */
uint32_t lint_span(const struct flow *flow, uint32_t len);

#endif
