// SPDX-License-Identifier: BSD-2-Clause
/* Judges a capture of RoCEv2: which packets break which rule of the specification. It reads the whole capture first,
 * finds out which flows belong together and their path MTU, and then follows each flow.
 *
 * A capture is what one place has seen. What a sender did can be judged where its packets leave; elsewhere packets may
 * have been lost, doubled or reordered on the way. So a missing packet is no violation by itself; one that is acknowledged though
 * nobody ever saw it is. Where the capture says in which direction packets went, more can be said. */
#ifndef PUMICE_PCAP_LINT_LINT_H
#define PUMICE_PCAP_LINT_LINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum lint_severity {
    LINT_NOTE, /* remarkable, but not against the rules; or a limit of the capture */
    LINT_ERROR, /* against the rules */
};

/* Rules, in the order of lint_rules. */
enum lint_rule {
    /* packets */
    LINT_UDP_LENGTH,
    LINT_FRAGMENT,
    LINT_TRUNCATED,
    LINT_MERGED,
    LINT_TVER,
    LINT_OPCODE,
    LINT_PKEY,
    LINT_SHORT,
    LINT_LENGTH,
    LINT_PAD,
    LINT_ICRC,
    LINT_CNP,
    LINT_XRCETH,
    LINT_SYNDROME,
    /* requests */
    LINT_MTU,
    LINT_GAP,
    LINT_LOST,
    LINT_REPEAT,
    LINT_REPEAT_DIFFERS,
    LINT_DUPLICATE,
    LINT_SEQUENCE,
    LINT_XRC_SRQN,
    LINT_WRITE_LENGTH,
    LINT_RESTART,
    LINT_MIDWAY,
    /* responses */
    LINT_UNPAIRED,
    LINT_ACK_UNSENT,
    LINT_ACK_UNSEEN,
    LINT_ACK_BACK,
    LINT_ACK_AFTER_NAK,
    LINT_NAK,
    LINT_MSN,
    LINT_RESPONSE_KIND,
    LINT_READ_SEQUENCE,
    LINT_READ_LENGTH,
    LINT_READ_UNANSWERED,
    LINT_ATOMIC_UNANSWERED,
    /* tag matching */
    LINT_TM_SHORT,
    LINT_TM_OPCODE,
    LINT_TM_READ,
    LINT_TM_FIN_EARLY,
    LINT_TM_FIN_COPY,
    LINT_TM_FIN_UNASKED,
    LINT_TM_NO_FIN,
    LINT_RULES,
};

struct lint_rule_info {
    const char *id; /* "psn-gap": stable, for scripts */
    enum lint_severity severity;
    const char *spec; /* where the rule stands */
    const char *text; /* what it says */
};
extern const struct lint_rule_info lint_rules[LINT_RULES];

#define LINT_TM_QPS_MAX 64

struct lint_options {
    bool incomplete; /* packets may be missing from the capture itself: what that would explain is a note */
    bool
        faulty; /* the network was made to damage packets: a wrong ICRC is a note; and to lose packets, maybe before the
                  * place of the capture: a sender's packets need not be complete even where they leave */
    enum {
        LINT_TM_AUTO, /* QPs on which a rendezvous is followed by its READ or FIN have tag matching */
        LINT_TM_OFF,
        LINT_TM_LISTED, /* SENDs to tm_qps begin with a TMH, others don't */
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
    size_t errors, notes; /* n is their sum */
    uint32_t frames; /* in the file */
    uint32_t packets; /* of RoCEv2 in them */
    uint32_t connections; /* pairs of flows */
    uint64_t lost; /* packets that the capture itself says it has lost */
    char error[256]; /* why the file, or the rest of it, couldn't be read; or "" */
};

/* Reads and judges f, which is closed. 0; -EINVAL: it isn't a capture or ends in the middle of something, and
 * out->error says what (findings are those of what could be read); -ENOMEM. *out is to be freed by lint_free in any
 * case. */
int lint_run(struct lint_result *out, FILE *f, const struct lint_options *options);

void lint_free(struct lint_result *r);

#endif
