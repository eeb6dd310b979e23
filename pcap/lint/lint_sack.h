// SPDX-License-Identifier: BSD-2-Clause
/* Checks the rules for selective acknowledgements between Pumice devices (wire/pumice/sack.h). A SACK goes to QP 2 and
 * names the two QPs, so the linter finds their requests by these numbers. Everything that a SACK reports as received
 * must be in the capture. */
#ifndef PUMICE_PCAP_LINT_LINT_SACK_H
#define PUMICE_PCAP_LINT_LINT_SACK_H

#include "pcap/lint/base/lint_state.h"
#include "wire/pkt.h"

/* Judges the form of a packet whose ICRC is right, if it claims to be a SACK. */
void lint_sack_form(struct lint *l, uint32_t frame, const struct pkt *p);

/* If the packet is a SACK of which all bytes were captured, keeps it for lint_sack. `there` bytes of its payload were
 * captured. Returns its index in l->sacks plus one, or 0. */
uint32_t lint_sack_keep(struct lint *l, const struct pkt *p, size_t there);

/* Judges the SACK in a record of this flow by the requests that it reports. */
void lint_sack(struct lint *l, struct flow *flow, uint32_t number);

#endif
