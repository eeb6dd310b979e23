// SPDX-License-Identifier: BSD-2-Clause
/* The file of this process for `pumice run`: PID, in the directory $PUMICE_CHECK_DIR. Each line is written at once, so it is
 * not lost if the process is killed. The first field of a line says what it is; fields are separated by tabs:
 *
 *     T id (module offset)...             a backtrace, the innermost call first; the offset is hexadecimal
 *     F count rule where pid other whose text
 *                                         a finding. where and other are backtraces, 0 for none; pid is the process of the
 *                                         other one. whose says what that is. A later line of the same rule and place has
 *                                         the whole count.
 */
#ifndef PUMICE_SRC_CHECK_BASE_REPORT_H
#define PUMICE_SRC_CHECK_BASE_REPORT_H

#include <stdbool.h>

#include "src/check/base/trace.h"

/* Is there such a file? */
bool report_wanted(void);

/* Makes sure that the file has the backtrace, and returns its number in this file. NULL: 0. */
unsigned report_trace(const struct trace *t);

/* Adds a line, which ends with an end of line. */
void report_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Does the address belong to a library with this beginning of its file name, such as "librdmacm"? */
bool report_is_of_library(const void *address, const char *name);

/* An address of the program, for people: "function in module+0x12". */
void report_describe(const void *address, char *text, unsigned long size);

/* This process is a new child, with a file of its own. */
void report_forked(void);

#endif
