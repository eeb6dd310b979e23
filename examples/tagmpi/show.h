// SPDX-License-Identifier: BSD-2-Clause
/* What the programs have in common: their options, running with the offload on and off, and the table of who matched what. */
#ifndef SHOW_H
#define SHOW_H

#include <stdbool.h>

#include "examples/tagmpi/tagmpi.h"

struct show_options {
    const char *name; /* of the program */
    const char *what; /* one line that says what it does */
    const char *size_name; /* an option of the program that is a number, without "--"; NULL: none */
    unsigned size, max_size; /* its default, and the largest value; then what was given */
    unsigned ranks, min_ranks; /* default, then what was given; fewest that make sense */
    bool on, off; /* which ways to run */
};

enum { SHOW_MODES = 2 };
extern const char *const show_mode[SHOW_MODES]; /* "offload on", "offload off" */

/* Reads --ranks, --offload on|off|both and the program's own option; usage errors end the process with exit code 2. */
void show_parse(struct show_options *o, int argc, char **argv);

/* Is mode (0: on, 1: off) to be run? */
bool show_wanted(const struct show_options *o, int mode);

/* "2 ranks on 2 hosts", good until the next call. */
const char *show_where(const struct boot *b);

/* Adds up the counts of all ranks; all call it. */
struct tagmpi_counts show_sum(const struct boot *b, const struct tagmpi *t);

/* Rank 0 prints the table: who matched what, with the offload on and off. */
void show_counts(const struct show_options *o, const struct tagmpi_counts counts[SHOW_MODES]);

/* Monotonic seconds. */
double show_now(void);

#endif
