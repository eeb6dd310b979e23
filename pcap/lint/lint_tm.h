// SPDX-License-Identifier: BSD-2-Clause
/* Checks the rules of tag matching. A rendezvous request offers memory. The receiver READs exactly that memory. Then it
 * sends a FIN, which is a copy of the request with another operation. */
#ifndef PUMICE_PCAP_LINT_LINT_TM_H
#define PUMICE_PCAP_LINT_LINT_TM_H

#include "pcap/lint/base/lint_state.h"

/* Finds the flows whose SENDs begin with TMHs, as the options say. The flows must be paired before. */
void lint_tm_detect(struct lint *l);

/* Judges the first packet of a SEND that is no retransmission. */
void lint_tm_send(struct lint *l, struct flow *flow, uint32_t number);

/* Judges a READ request that is no retransmission. */
void lint_tm_read(struct lint *l, struct flow *flow, uint32_t number);

/* Notes that all responses to the READ in this record have arrived. */
void lint_tm_read_done(struct lint *l, struct flow *flow, uint32_t number);

/* At the end of the capture: reports rendezvous requests without FIN. */
void lint_tm_end(struct lint *l, struct flow *flow);

#endif
