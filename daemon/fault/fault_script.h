// SPDX-License-Identifier: BSD-2-Clause
/* Scripts of faults: a timeline, one line for each thing that happens.
 *
 *     # comments and empty lines are allowed
 *     at 2s: link down for 500ms
 *     at 3s host 1: loss=5%,reorder=2% for 1s
 *     after 1000 packets of qp 0x11: drop 3
 *     message 7 of write to qp 0x11: truncate
 *     from 4s until 5s: delay of ack by 1ms
 *     at 6s: refuse 20 of send
 *     at 8s host 0: kill
 *
 *     SCRIPT := { LINE }
 *     LINE   := WHEN [host N] ':' WHAT
 *     WHEN   := at T | from T until T
 *             | after N packets { LIMIT }       the first N packets of these pass
 *             | message N { LIMIT }             the packets of the Nth message, each once
 *     WHAT   := drop | duplicate | corrupt | truncate | mark, then  [N] { LIMIT } [for T]
 *             | delay [N] { LIMIT } by T [for T]
 *             | refuse [N] { LIMIT } [for T]    messages that arrive get RNR NAK
 *             | link down [for T] | link up
 *             | kill                            the daemon dies
 *             | RULE [for T]                    a rule of daemon/fault/fault_spec.h, without blanks, times and numbers
 *             | nothing [for T]                 faults of earlier lines pause
 *     LIMIT  := of CLASS | of qp N | to qp N | to ADDRESS
 *
 * Limits stand either before the colon or behind it. `of qp` is the QP that sends, `to qp` the one that receives. With refuse,
 * `to ADDRESS` names the sender. A number N behind the verb: for the next N packets only.
 *
 * If several lines apply to a packet, the latest of them decides. Times begin when the script starts. A line without `host`
 * is for all hosts. */
#ifndef PUMICE_DAEMON_FAULT_FAULT_SCRIPT_H
#define PUMICE_DAEMON_FAULT_FAULT_SCRIPT_H

#include <stddef.h>

#include "daemon/fault/fault_spec.h"

/* Parses a script and puts the rules of a host in front of those of *spec. hosts: how many hosts the lab has, so that lines for
 * others are errors; 0: it is not known. Returns 0 or -EINVAL. On -EINVAL, *spec has no rules, and why[why_len] holds a
 * sentence with the line and the column of the wrong part. */
int fault_script_parse(const char *script, unsigned host, unsigned hosts, struct fault_spec *spec, char *why,
                       size_t why_len);

#endif
