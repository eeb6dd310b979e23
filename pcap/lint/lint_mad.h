// SPDX-License-Identifier: BSD-2-Clause
/* The linter's rules for single packets to QP 1: management datagrams, and the messages of connection management. */
#ifndef PUMICE_PCAP_LINT_LINT_MAD_H
#define PUMICE_PCAP_LINT_LINT_MAD_H

#include "pcap/lint/base/lint_state.h"
#include "wire/pkt.h"

/* Judges a packet to QP 1 whose ICRC is right. */
void lint_mad(struct lint *l, uint32_t frame, const struct pkt *p);

/* If the packet is a message of connection management of which `there` bytes of payload were captured, keeps it for
 * lint_cm. Returns its index in l->mads plus one, or 0. */
uint32_t lint_mad_keep(struct lint *l, const struct pkt *p, size_t there);

#endif
