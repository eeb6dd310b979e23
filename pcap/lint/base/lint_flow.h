// SPDX-License-Identifier: BSD-2-Clause
/* Keeps the flows, and finds the two flows that form a connection. A packet names only its destination QP. But a
 * response has the PSN of its request, and most QPs begin with different PSNs. So among all flows between the same two
 * addresses, the linter pairs the two whose responses fit each other's requests best. It first pairs flows that were
 * captured at the same interface. Then it pairs the rest, because the two directions of a connection may be captured at
 * different interfaces: where each of them is sent. If comments name the senders (note.h), only flows that agree with
 * the comments are paired. */
#ifndef PUMICE_PCAP_LINT_BASE_LINT_FLOW_H
#define PUMICE_PCAP_LINT_BASE_LINT_FLOW_H

#include "pcap/lint/base/lint_state.h"

#define FAR_PSNS 65536 /* a larger jump of PSNs means a new connection */

/* Returns the flow of a packet, and makes it if it is new. Returns NULL without memory. A packet without src_qpn may
 * have been captured before, as it left, with src_qpn. So for a key without src_qpn, this returns the newest flow that
 * has a src_qpn and is otherwise equal, if there is one. */
struct flow *lint_flow(struct lint *l, const struct flow_key *key);

/* Frees a flow and all that it holds. */
void lint_flow_free(struct flow *flow);

/* True if the addresses of the flows allow them to be the two directions of a connection. */
bool lint_may_pair(const struct flow *a, const struct flow *b);

/* True if both were captured at the same interface. */
bool lint_same_interface(const struct flow *a, const struct flow *b);

/* Pairs the flows, and finds their path MTUs. */
void lint_pair(struct lint *l);

/* Finds a flow other than the peer that may have the requests for the responses in this flow. It has a request with
 * this psn before record number `before`. NULL: there is none. */
struct flow *lint_find_requester(struct lint *l, const struct flow *flow, uint32_t psn, uint32_t before);

/* The number of response packets to a READ of len bytes; 0: not known. */
uint32_t lint_span(const struct flow *flow, uint32_t len);

#endif
