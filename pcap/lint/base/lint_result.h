// SPDX-License-Identifier: BSD-2-Clause
/* The options that the caller of the linter chooses, and the result: a list of findings. */
#ifndef PUMICE_PCAP_LINT_BASE_LINT_RESULT_H
#define PUMICE_PCAP_LINT_BASE_LINT_RESULT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pcap/lint/base/lint_rules.h"

#define LINT_TM_QPS_MAX 64

struct lint_options {
    /* The capture itself may lack packets. If lost packets would explain a finding, the finding becomes a note. */
    bool incomplete;
    /* The network damages and loses packets on purpose (fault injection). A wrong ICRC becomes a note. Packets may be
     * lost before the place of the capture, so a gap where packets leave is no violation. */
    bool faulty;
    enum {
        LINT_TM_AUTO, /* a QP has tag matching if a READ or FIN follows one of its rendezvous requests */
        LINT_TM_OFF,
        LINT_TM_LISTED, /* SENDs to tm_qps begin with a TMH, other SENDs do not */
    } tm;
    uint32_t tm_qps[LINT_TM_QPS_MAX];
    unsigned num_tm_qps;
};

struct lint_finding {
    enum lint_rule rule;
    enum lint_severity severity; /* that of the rule, or a lower one */
    uint32_t frame; /* from 1 */
    char text[160]; /* what is wrong, with numbers */
};

struct lint_result {
    struct lint_finding *findings; /* in the order of frames */
    size_t n;
    size_t cap; /* number of findings that fit into the memory at `findings` */
    size_t errors, notes; /* n is their sum */
    uint32_t frames; /* number of frames in the file */
    uint32_t packets; /* number of RoCEv2 packets in these frames */
    uint32_t connections; /* pairs of flows */
    uint64_t lost; /* packets that the capture itself has lost, from its statistics */
    uint64_t faults; /* packets that injected faults lost before the capture, as the capture says */
    char error[256]; /* the reason why the file, or the rest of it, can't be read; or "" */
};

/* Appends a finding. Returns 0 or -ENOMEM. */
int lint_result_add(struct lint_result *r, enum lint_rule rule, enum lint_severity severity, uint32_t frame,
                    const char *format, va_list ap);

/* Sorts the findings by frame, then by rule. */
void lint_result_sort(struct lint_result *r);

/* Frees the findings and clears the result. */
void lint_free(struct lint_result *r);

#endif
