// SPDX-License-Identifier: BSD-2-Clause
/* The memory with the decisions about packets, which `pumice run --record` and `pumice replay` share with the daemon,
 * and the names of the packets that a device sends (pumice/abi_decisions.h). */
#ifndef PUMICE_DAEMON_LOOP_DECISION_MEMORY_H
#define PUMICE_DAEMON_LOOP_DECISION_MEMORY_H

#include "daemon/base/error_text.h"
#include "daemon/device/device.h"

/* Maps the memory that settings->decisions_fd names, if there is one, for d->decisions. Returns 0, or -errno with
 * why. */
int decision_memory_open(struct device *d, char why[ERROR_TEXT_MAX]);
void decision_memory_close(struct device *d);

/* Decides about one packet, as fault_decide does. A planned decision comes before the rules. bth: the packet. made: the
 * decision. It is not written down yet, because an emulated network may still lose or mark the packet. Only while
 * decisions_on. */
void decision_memory_decide(struct device *d, const struct tx_pkt *t, const uint8_t *bth, const struct fault_pkt *fp,
                            uint64_t now, struct fault_verdict *v, struct pm_decision *made);
/* The same for a packet that arrives, as fault_refuses does. */
bool decision_memory_refuses(struct device *d, const struct fault_pkt *fp, uint64_t now);

#endif
