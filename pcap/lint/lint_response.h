// SPDX-License-Identifier: BSD-2-Clause
/* Checks the rules for responses. A response answers a request, and its kind fits the request. Its MSN counts the
 * completed messages. */
#ifndef PUMICE_PCAP_LINT_LINT_RESPONSE_H
#define PUMICE_PCAP_LINT_LINT_RESPONSE_H

#include "pcap/lint/base/lint_state.h"

/* Judges the response in a record of this flow. */
void lint_response(struct lint *l, struct flow *responder, uint32_t number);

/* At the end of the capture: reports the requests of this flow that were acknowledged without all their responses. */
void lint_unanswered(struct lint *l, struct flow *requester);

#endif
