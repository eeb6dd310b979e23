// SPDX-License-Identifier: BSD-2-Clause
/* Runs the trace of a matching list again: shows the list after each step, and checks that each decision follows the
 * rules of tag matching. This module has its own implementation of the rules, as simple as possible (one array, one
 * flag per entry), so that it can judge the engine independently. */
#ifndef PUMICE_SRC_CMD_INSPECT_TM_REPLAY_H
#define PUMICE_SRC_CMD_INSPECT_TM_REPLAY_H

#include <jansson.h>
#include <stdbool.h>

struct tm_replay_options {
    long step; /* print the list after the event with this number; -1: print all events, as a diagram */
    bool check; /* print only contradictions to the rules, and a summary */
};

/* Prints the replay of one matching list: an object in "lists" of the daemon's document, with all its entries and
 * events. Returns the number of contradictions, or -1 after printing that there is no such step. If the trace does not
 * reach back to the first event, older entries are printed with a question mark, and nothing is judged. */
int tm_replay(const json_t *list, const struct tm_replay_options *o);

#endif
