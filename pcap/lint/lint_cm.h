// SPDX-License-Identifier: BSD-2-Clause
/* Follows connection management: each message belongs to a connection, answers come after their requests, repeated
 * messages are equal, and the data of a connection have the queue pairs and PSNs that REQ and REP name. */
#ifndef PUMICE_PCAP_LINT_LINT_CM_H
#define PUMICE_PCAP_LINT_LINT_CM_H

#include "pcap/lint/base/lint_state.h"

/* Judges the message in record number `record`, which has one. Call it for all of them, in the order of the capture. */
void lint_cm_message(struct lint *l, const struct flow *flow, uint32_t record);

/* Judges a request packet of RC, UC or XRC. Call it in the same order, before lint_request. True: it is the first one of a
 * new connection. */
bool lint_cm_data(struct lint *l, const struct flow *flow, uint32_t record);

#endif
