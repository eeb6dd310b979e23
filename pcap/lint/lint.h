// SPDX-License-Identifier: BSD-2-Clause
/* Judges a capture of RoCEv2: finds the packets that break a rule of the specification. The linter reads the whole
 * capture first. Then it pairs the flows that form a connection, finds their path MTUs, and follows each flow.
 *
 * A capture shows the packets that passed one place. Before that place, the network may have lost, duplicated or
 * reordered packets, so a missing packet alone is no violation. It is a violation if a packet is acknowledged that the
 * capture does not have. If the capture records directions, the linter judges packets that leave an interface more
 * strictly: no packet was lost before that place. */
#ifndef PUMICE_PCAP_LINT_LINT_H
#define PUMICE_PCAP_LINT_LINT_H

#include <stdio.h>

#include "pcap/lint/base/lint_result.h"

/* Reads and judges f, and closes it. Returns 0, -ENOMEM, or -EINVAL if f is no capture or can't be read to its end. On
 * -EINVAL, out->error has the reason, and the findings are those of the part that was read. The caller always frees
 * *out by lint_free. */
int lint_run(struct lint_result *out, FILE *f, const struct lint_options *options);

#endif
