// SPDX-License-Identifier: BSD-2-Clause
/* The rules of the checker: their names, and which of them are asked for. docs/checks.md explains each with a wrong and a
 * right program. */
#ifndef PUMICE_SRC_CHECK_BASE_RULE_H
#define PUMICE_SRC_CHECK_BASE_RULE_H

#include <stdbool.h>

enum rule {
    RULE_SEND_BUFFER, /* the buffer of a SEND or WRITE changed before its completion */
    RULE_OVERLAP, /* two targets of outstanding requests overlap */
    RULE_TOUCH, /* the program touches a target before its completion; only if it is named */
    RULE_DEREG, /* a region was deregistered while requests with its key were outstanding */
    RULE_FREED, /* memory was given back that outstanding requests need */
    RULE_DEAD_KEY, /* a request has the key of a region that was deregistered */
    RULE_ACCESS, /* a region does not allow what a request does with it */
    RULE_READ_FENCE, /* a request sends a buffer that an earlier READ still fills, without a fence */
    RULE_GRH, /* an address or a datagram buffer without a GRH */
    RULE_GID_INDEX, /* a GID index that nobody has chosen */
    RULE_MISMATCH, /* the two ends of a connection have attributes that do not fit */
    RULE_MTU, /* a path MTU that the port does not have, or may not have */
    RULE_TIMEOUT, /* a QP that gives up too early, or never */
    RULE_LATE_RECEIVE, /* a receive request came after its message */
    RULE_LOST_EVENT, /* the program waits for an event without a poll after it armed the CQ */
    RULE_UNACKED, /* events were not acknowledged: to destroy their object takes for ever */
    RULE_THREAD, /* two threads use a thread domain at the same time */
    RULE_UNSIGNALED, /* the send queue is full of requests without completions */
    RULE_CQ_SIZE, /* more completions may come than the CQ has room for */
    RULE_AFTER_ERROR, /* the program posts although the QP is in its error state */
    RULE_BUSY, /* a destroy call failed with EBUSY and was not repeated */
    RULE_LEFT, /* objects are left at the end of the process */
    RULE_FORK, /* a child uses an object that its parent made */
    RULES
};

/* As users write it: "send-buffer". */
const char *rule_name(enum rule rule);
/* Says in a few words which mistake the rule finds. */
const char *rule_what(enum rule rule);

/* Chooses rules: names separated by commas, or "all", which leaves out those that take long (touch). False: a name is unknown; *bad points at it. */
bool rule_choose(const char *names, const char **bad);
bool rule_is_on(enum rule rule);

#endif
