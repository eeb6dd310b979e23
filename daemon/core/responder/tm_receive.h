// SPDX-License-Identifier: BSD-2-Clause
/* Messages that come to a QP whose SRQ matches tags. The responder hands over each packet of a SEND. The first packet
 * decides (tm/match.h). Then a matched eager message goes to its entry, without its header. A matched rendezvous goes
 * on in requester/rendezvous.h, or its request goes to the entry as it is. Any other message goes as a whole to an
 * untagged request of the SRQ, as without tag matching. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_TM_RECEIVE_H
#define PUMICE_DAEMON_CORE_RESPONDER_TM_RECEIVE_H

#include "daemon/core/responder/request.h"

/* Carries out a packet of a SEND that came to a QP whose SRQ matches tags. */
enum rx_verdict tm_receive(struct qp *qp, const struct pkt *p, uint64_t now);

#endif
