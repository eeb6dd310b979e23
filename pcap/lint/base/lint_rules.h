// SPDX-License-Identifier: BSD-2-Clause
/* The rules of RoCEv2 that the linter checks, as one table. */
#ifndef PUMICE_PCAP_LINT_BASE_LINT_RULES_H
#define PUMICE_PCAP_LINT_BASE_LINT_RULES_H

enum lint_severity {
    LINT_NOTE, /* unusual, but within the rules; or a limit of the capture */
    LINT_ERROR, /* breaks a rule */
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
    LINT_READ_PART,
    LINT_DUPLICATE,
    LINT_SEQUENCE,
    LINT_XRC_SRQN,
    LINT_WRITE_LENGTH,
    LINT_CREDIT,
    LINT_RESTART,
    LINT_MIDWAY,
    /* responses */
    LINT_UNPAIRED,
    LINT_ACK_UNSENT,
    LINT_ACK_UNSEEN,
    LINT_ACK_BACK,
    LINT_ACK_READ,
    LINT_ACK_AFTER_NAK,
    LINT_NAK,
    LINT_NAK_CODE,
    LINT_NAK_ACKED,
    LINT_MSN,
    LINT_RESPONSE_KIND,
    LINT_READ_SEQUENCE,
    LINT_READ_LENGTH,
    LINT_READ_UNANSWERED,
    LINT_ATOMIC_UNANSWERED,
    /* selective acknowledgements */
    LINT_SACK,
    LINT_SACK_FORM,
    LINT_SACK_UNSENT,
    LINT_SACK_UNSEEN,
    LINT_SACK_BACK,
    /* tag matching */
    LINT_TM_SHORT,
    LINT_TM_OPCODE,
    LINT_TM_READ,
    LINT_TM_FIN_EARLY,
    LINT_TM_FIN_COPY,
    LINT_TM_FIN_UNASKED,
    LINT_TM_NO_FIN,
    /* packets to QP 1 */
    LINT_GSI_QKEY,
    LINT_MAD_LENGTH,
    LINT_MAD_HEADER,
    LINT_CM_VALUE,
    LINT_CM_RESERVED,
    /* connection management */
    LINT_CM_UNASKED,
    LINT_CM_IDS,
    LINT_CM_REPEAT,
    LINT_CM_REPEAT_DIFFERS,
    LINT_CM_RETRIES,
    LINT_CM_EARLY_REPEAT,
    LINT_CM_REJ,
    LINT_CM_MIDWAY,
    LINT_CM_PSN,
    LINT_CM_QPN,
    LINT_CM_BEFORE_RTU,
    LINT_CM_AFTER_DREQ,
    LINT_RULES,
};

struct lint_rule_info {
    const char *id; /* "psn-gap": stable, for scripts */
    enum lint_severity severity;
    const char *spec; /* section of the specification; "" if there is none */
    const char *text; /* what the rule says */
};
extern const struct lint_rule_info lint_rules[LINT_RULES];

#endif
