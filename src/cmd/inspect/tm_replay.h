// SPDX-License-Identifier: BSD-2-Clause
/* The trace of a matching list, run again: what the list was after each step, and whether each decision follows from the
 * rules of tag matching. The rules are written down here once more, as simply as they can be (one array, one flag per
 * entry), so that this judges the engine and does not repeat it. */
#ifndef PUMICE_SRC_CMD_INSPECT_TM_REPLAY_H
#define PUMICE_SRC_CMD_INSPECT_TM_REPLAY_H

#include <jansson.h>
#include <stdbool.h>

struct tm_replay_options {
    long step; /* number of the event whose list is shown in full; -1: all events, as a diagram */
    bool check; /* print only what contradicts the rules, and a summary */
};

/* Prints the replay of one matching list, an object of "lists" of the daemon's document with all of its entries and
 * events. Returns how many contradictions there were; -1 after saying that there is no such step. If the trace does not
 * reach back to the first event, entries from before are shown with a question mark, and nothing is judged. */
int tm_replay(const json_t *list, const struct tm_replay_options *o);

#endif
