// SPDX-License-Identifier: BSD-2-Clause
/* Findings: what a program did against a rule, once per place in the program, and counted.
 *
 * Each finding is written when it happens first, so that it is not lost if the process is killed. With $PUMICE_CHECK_DIR, a
 * line goes to the file PID of that directory, for `pumice run`. Its fields are separated by tabs: count, rule, module,
 * offset in the module, text. The count is 1 at first. At the end of the process, a second line has the whole count.
 * Without that directory, a line for people goes to standard error. */
#ifndef PUMICE_SRC_CHECK_FINDING_H
#define PUMICE_SRC_CHECK_FINDING_H

#include "src/check/rule.h"

/* The rule is on. where: a return address in the program. The text is one sentence without an end of line. Thread-safe. */
void finding_add(enum rule rule, const void *where, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The process ends. */
void finding_end(void);
/* This process is a new child, whose parent reports what it has found. */
void finding_forget(void);

#endif
