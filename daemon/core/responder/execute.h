// SPDX-License-Identifier: BSD-2-Clause
/* Checks a request packet of an RC, XRC or UC QP in the order of IBA 9.7.4, and carries it out at once. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_EXECUTE_H
#define PUMICE_DAEMON_CORE_RESPONDER_EXECUTE_H

#include "daemon/core/responder/request.h"

/* Carries out a request packet with the expected PSN. */
enum rx_verdict resp_execute(struct qp *qp, const struct pkt *p, uint64_t now);
/* Carries out a run of request packets that begins with the expected PSN, with the same checks as for one packet. False:
 * a check has failed, and the packets are to be carried out one by one. Then no user sees a change, and the first packet
 * overwrites what has changed in the QP. */
bool resp_execute_run(struct qp *qp, const struct pkt_run *r, uint64_t now);

#endif
