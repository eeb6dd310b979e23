// SPDX-License-Identifier: BSD-2-Clause
/* Runs the trace of a matching list again. Shows the list after each step, and checks that each decision follows the
 * rules of tag matching. To check the engine independently, this module has its own, simple implementation of the
 * rules: one array, one flag per entry. */
#ifndef PUMICE_SRC_CMD_INSPECT_TM_REPLAY_H
#define PUMICE_SRC_CMD_INSPECT_TM_REPLAY_H

#include <jansson.h>
#include <stdbool.h>

struct tm_replay_options {
    long step; /* print the list after the event with this number; -1: print all events, as a diagram */
    bool check; /* print only contradictions to the rules, and a summary */
};

/* Prints the replay of one matching list. list is an object in "lists" of the daemon's document, with all its entries
 * and events. Returns the number of contradictions, or -1 after printing that there is no such step. If the trace lacks
 * the first event, older entries get a question mark, and no decision is judged. */
int tm_replay(const json_t *list, const struct tm_replay_options *o);

#endif
