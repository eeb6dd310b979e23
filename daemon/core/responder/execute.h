// SPDX-License-Identifier: BSD-2-Clause
/* Checks a request packet of an RC, XRC or UC QP in the order of IBA 9.7.4, and carries it out at once. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_EXECUTE_H
#define PUMICE_DAEMON_CORE_RESPONDER_EXECUTE_H

#include "daemon/core/responder/request.h"

/* Carries out a request packet with the expected PSN. */
enum rx_verdict resp_execute(struct qp *qp, const struct pkt *p, uint64_t now);

#endif
