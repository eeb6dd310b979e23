// SPDX-License-Identifier: BSD-2-Clause
/* Backtraces of the program: the calls that led to a verb. Equal ones are kept once, for ever.
 *
 * To unwind a stack takes microseconds, too long for each post. So a thread remembers the words of its stack that held the
 * return addresses. If a later call comes from the same place, and these words are unchanged, its backtrace is the same. */
#ifndef PUMICE_SRC_CHECK_BASE_TRACE_H
#define PUMICE_SRC_CHECK_BASE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_DEPTH 8u

struct trace {
    unsigned id; /* in this process, from 1 */
    unsigned n; /* at least 1 */
    const void *at[TRACE_DEPTH]; /* return addresses, the innermost first */
};

/* The backtrace that begins with this return address. frame: the frame of the function that returns there; NULL: not known,
 * which takes longer. NULL: no memory. Thread-safe. */
const struct trace *trace_of(const void *caller, const void *frame);

/* The backtrace of an access that a signal interrupted: at its instruction, or behind it. NULL: no memory. Thread-safe. */
const struct trace *trace_at(const void *instruction);
const struct trace *trace_behind(const void *instruction);

/* This process is a new child. */
void trace_forked(void);

/* That of the function that uses it. */
#define TRACE_HERE trace_of(__builtin_return_address(0), __builtin_frame_address(0))

#endif
