// SPDX-License-Identifier: BSD-2-Clause
/* The options that the caller of the linter chooses, and the result: a list of findings. */
#ifndef PUMICE_PCAP_LINT_LINT_RESULT_H
#define PUMICE_PCAP_LINT_LINT_RESULT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pcap/lint/lint_rules.h"

#define LINT_TM_QPS_MAX 64

struct lint_options {
    /* The capture itself may lack packets. A finding that lost packets would explain becomes a note. */
    bool incomplete;
    /* The network was made to damage and lose packets. A wrong ICRC becomes a note. Packets may be lost before the
     * place of the capture, so even the packets that leave a sender need not be complete. */
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
    enum lint_severity severity; /* the rule's, or less */
    uint32_t frame; /* from 1 */
    char text[160]; /* what is wrong, with numbers */
};

struct lint_result {
    struct lint_finding *findings; /* in the order of frames */
    size_t n;
    size_t cap; /* findings that there is memory for */
    size_t errors, notes; /* n is their sum */
    uint32_t frames; /* in the file */
    uint32_t packets; /* of RoCEv2 in them */
    uint32_t connections; /* pairs of flows */
    uint64_t lost; /* packets that the capture itself has lost, by its statistics */
    char error[256]; /* why the file, or the rest of it, can't be read; or "" */
};

/* Appends a finding. Returns 0 or -ENOMEM. */
int lint_result_add(struct lint_result *r, enum lint_rule rule, enum lint_severity severity, uint32_t frame,
                    const char *format, va_list ap);

/* Sorts the findings by frame, then by rule. */
void lint_result_sort(struct lint_result *r);

/* Frees the findings and clears the result. */
void lint_free(struct lint_result *r);

#endif
