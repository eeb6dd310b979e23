// SPDX-License-Identifier: BSD-2-Clause
/* Extended reliable connections (IBA annex A14): what an XRC target does that a responder of RC does not.
 *
 * An XRC initiator is the requester of an RC QP, a target the responder of one; but the target has neither receive
 * requests nor a protection domain of its own. Every request packet names an SRQ (XRCETH), which must be of the target's
 * XRC domain: that SRQ gives the receive requests, its owner's protection domain is what keys are checked against, and
 * its completion queue is where completions go. */
#ifndef PUMICE_CORE_RESPONDER_XRC_H
#define PUMICE_CORE_RESPONDER_XRC_H

#include "daemon/core/responder/request.h"

/* May the request use the SRQ that it names? Asked when all that holds for RC, too, was found right. On V_OK the message
 * under way has this SRQ and its protection domain. V_ACCESS: no such SRQ, or one of another domain. V_INVALID: not the
 * one that the message began with. */
enum rx_verdict xrc_check(struct qp *qp, const struct pkt *p);

#endif
