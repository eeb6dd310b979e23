// SPDX-License-Identifier: BSD-2-Clause
/* Judges a capture of RoCEv2: which packets break which rule of the specification. The linter reads the whole capture
 * first. Then it finds which flows belong together and their path MTUs, and follows each flow.
 *
 * A capture shows what passed one place. A sender can be judged only where its packets leave. Elsewhere the network
 * may have lost, duplicated or reordered packets, so a missing packet alone is no violation. An acknowledgment of a
 * packet that the capture never saw is one. If the capture records the direction of packets, the linter can say
 * more. */
#ifndef PUMICE_PCAP_LINT_LINT_H
#define PUMICE_PCAP_LINT_LINT_H

#include <stdio.h>

#include "pcap/lint/lint_result.h"

/* Reads and judges f, and closes it. Returns 0; -EINVAL if f is no capture, or ends in the middle of something:
 * out->error then says what, and the findings are those of the part that could be read; -ENOMEM. The caller frees *out
 * by lint_free in every case. */
int lint_run(struct lint_result *out, FILE *f, const struct lint_options *options);

#endif
