// SPDX-License-Identifier: BSD-2-Clause
/* Common parts of the programs: options, runs with the offload on and off, and the table that shows whether the
 * device or software matched the messages. */
#ifndef PUMICE_EXAMPLES_TAGMPI_SHOW_H
#define PUMICE_EXAMPLES_TAGMPI_SHOW_H

#include <stdbool.h>

#include "examples/tagmpi/tagmpi.h"

struct show_options {
    const char *name; /* name of the program */
    const char *what; /* one line about what the program does */
    const char *size_name; /* name of an option of the program that takes a number, without "--"; NULL: none */
    unsigned size, max_size; /* its default, later the given value; and its largest value */
    unsigned ranks, min_ranks; /* default, later the given number; and the smallest number allowed */
    bool on, off; /* whether to run with the offload on, and off */
};

enum { SHOW_MODES = 2 };
extern const char *const show_mode[SHOW_MODES]; /* "offload on", "offload off" */

/* Reads --ranks, --offload on|off|both and the program's own option; usage errors end the process with exit code 2. */
void show_parse(struct show_options *o, int argc, char **argv);

/* Whether to run this mode (0: on, 1: off). */
bool show_wanted(const struct show_options *o, int mode);

/* "2 ranks on 2 hosts". The text is valid until the next call. */
const char *show_where(const struct boot *b);

/* Adds up the counts of all ranks. All ranks call it. */
struct tagmpi_counts show_sum(const struct boot *b, const struct tagmpi *t);

/* Rank 0 prints the table of matches by the device and by software, with the offload on and off. */
void show_counts(const struct show_options *o, const struct tagmpi_counts counts[SHOW_MODES]);

/* Monotonic seconds. */
double show_now(void);

#endif
