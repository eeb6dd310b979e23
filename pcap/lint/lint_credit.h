// SPDX-License-Identifier: BSD-2-Clause
/* Judges whether a requester keeps to the end-to-end credits of its responder (IBA 9.7.7.2). */
#ifndef PUMICE_PCAP_LINT_LINT_CREDIT_H
#define PUMICE_PCAP_LINT_LINT_CREDIT_H

#include "pcap/lint/base/lint_state.h"

/* A new request, not damaged, was appended to its flow. */
void lint_credit_request(struct lint *l, struct flow *flow, const struct record *r);
/* A response with an AETH came, after its acknowledgment was counted (flow.acked_receives). */
void lint_credit_response(struct flow *requester, const struct record *r);
/* Does a message that takes a receive request end with this request? */
bool lint_ends_receive(const struct lint *l, const struct request *s);

#endif
