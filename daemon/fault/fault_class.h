// SPDX-License-Identifier: BSD-2-Clause
/* The classes of packets in fault specifications (only=CLASS).
 *
 *     any                                          all packets
 *     request, response, ack, send, write, read, atomic
 *     nak, rnr-nak                                 by the syndrome of an ACK; nak includes rnr-nak
 *     rc, uc, ud, xrc                              by the transport service
 *     cm                                           all messages of connection management, or one of them: REQ, MRA, REJ,
 *                                                  REP, RTU, DREQ, DREP, SIDR_REQ, SIDR_REP, LAP, APR
 *     tm, tm-eager, tm-rndv, tm-fin, tm-no-tag     SENDs that begin with a tag matching header (TMH)
 *     OPCODE, SERVICE-OPCODE                       one opcode, such as send-first, read-request, write-last-with-immediate,
 *                                                  ud-send-only, cnp: a name of wire/opcode.h without RDMA, in lower case,
 *                                                  with - between the words
 *
 * A sender does not know whether the queue of its peer matches tags. So the tm classes take the first bytes of every SEND
 * for a TMH. */
#ifndef PUMICE_DAEMON_FAULT_FAULT_CLASS_H
#define PUMICE_DAEMON_FAULT_FAULT_CLASS_H

#include "daemon/fault/fault_rule.h"
#include "daemon/fault/fault_text.h"

/* For error messages. */
#define FAULT_A_CLASS                                                                                                  \
    "a class of packets, such as request, send, read-request, nak, tm-fin, cm or REP (all: pumice-fault(1)), or the "  \
    "Nth of them, such as REP#1"

/* Sets the class of a rule. False: there is no such class. */
bool fault_class_parse(struct str s, struct fault_rule *r);

/* The packet that a rule may be for. */
struct fault_pkt;
bool fault_class_has(const struct fault_rule *r, const struct fault_pkt *p);

#endif
