// SPDX-License-Identifier: BSD-2-Clause
/* Extended reliable connections (IBA annex A14): the difference between an XRC target and a responder of RC.
 *
 * An XRC initiator is the requester of an RC QP, and a target is the responder of one. But the target has neither
 * receive requests nor a protection domain of its own. Every request packet names an SRQ (XRCETH), which must be of the
 * target's XRC domain. The SRQ gives the receive requests, keys are checked against the protection domain of the SRQ,
 * and completions go to the SRQ's CQ. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_XRC_H
#define PUMICE_DAEMON_CORE_RESPONDER_XRC_H

#include "daemon/core/responder/request.h"

/* May the request use the SRQ that it names? To be called after the checks for RC. On V_OK the message under way has
 * this SRQ and its protection domain. V_ACCESS: there is no such SRQ, or it is of another domain. V_INVALID: the
 * message began with another SRQ. Otherwise nothing changes. */
enum rx_verdict xrc_check(struct qp *qp, const struct pkt *p);

#endif
