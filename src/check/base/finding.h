// SPDX-License-Identifier: BSD-2-Clause
/* Findings: what a program did against a rule, once per place in the program, and counted.
 *
 * Each finding is written when it happens first, so that it is not lost if the process is killed. With $PUMICE_CHECK_DIR, it
 * goes to the file of report.h, with a count of 1. At the end of the process, a second line has the whole count. Without
 * that directory, lines for people go to standard error. */
#ifndef PUMICE_SRC_CHECK_BASE_FINDING_H
#define PUMICE_SRC_CHECK_BASE_FINDING_H

#include "src/check/base/rule.h"
#include "src/check/base/trace.h"

/* Where it happened. A place is the innermost FINDING_FRAMES calls. */
struct finding_place {
    const struct trace *where;
    const struct trace *other; /* of the other party; NULL: none */
    unsigned other_pid, other_id; /* or a backtrace in the file of another process; 0: none */
    const char *whose; /* what the other one is: "the earlier request". A string constant */
};

#define FINDING_FRAMES 4u

/* The rule is on. The text is one sentence without an end of line. Thread-safe. */
void finding_add(enum rule rule, const struct finding_place *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Without another party. */
#define FINDING_AT(trace) (&(const struct finding_place){.where = (trace)})

/* The process ends. */
void finding_end(void);
/* This process is a new child, whose parent reports what it has found. */
void finding_forget(void);

#endif
