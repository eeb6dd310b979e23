// SPDX-License-Identifier: BSD-2-Clause
/* Messages that come to a QP whose SRQ matches tags. The responder hands over each packet of a SEND. The first packet
 * decides (tm/match.h). Then the message goes to the entry that it matched, without its header, or as a whole to an
 * untagged request of the SRQ, by the responder's ordinary way. */
#ifndef PUMICE_CORE_RESPONDER_TM_RECEIVE_H
#define PUMICE_CORE_RESPONDER_TM_RECEIVE_H

#include "daemon/core/responder/request.h"

/* Carries out a packet of a SEND that came to a QP whose SRQ matches tags. */
enum rx_verdict tm_receive(struct qp *qp, const struct pkt *p, uint64_t now);

#endif
