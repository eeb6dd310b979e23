// SPDX-License-Identifier: BSD-2-Clause
/* What one rank has posted and got: which receives may be posted so that every one of them will be completed, and whether in
 * the end every message was received once, by a receive that it may go to. */
#ifndef LEDGER_H
#define LEDGER_H

#include "examples/tagmpi/tagmpi.h"
#include "tests/tagmpi/plan.h"

enum { LEDGER_NO_NUMBER = UINT32_MAX };

/* What a receive asks for; TAGMPI_ANY_SOURCE, TAGMPI_ANY_TAG. */
struct wish {
    unsigned comm;
    int source, tag;
};

/* A receive, in the order in which they were posted. */
struct entry {
    struct wish wish;
    struct tagmpi_status got;
    bool done;
    uint32_t number; /* of the message, read from its content; LEDGER_NO_NUMBER: too short */
    uint8_t start[PLAN_NUMBER]; /* of such a short message */
};

struct ledger {
    const struct plan *plan;
    unsigned rank;
    uint32_t expected, completed; /* receives */
    uint32_t left[BOOT_MAX_RANKS][PLAN_COMMS][PLAN_TAGS]; /* messages for us that no completed receive got */
    struct entry *entry; /* `expected` of them */
    uint32_t posted; /* how many are used */
};

/* Prints seed, rank and the text, and ends the process. */
void ledger_fail(const struct ledger *l, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

void ledger_init(struct ledger *l, const struct plan *plan, unsigned rank);
void ledger_fini(struct ledger *l);

/* Would a receive like that, and all that are open (their numbers), get a message for certain, in whatever order messages
 * come? A wildcard may take what another receive needs; so each must have more messages left than rivals. */
bool ledger_safe(const struct ledger *l, const struct wish *w, const uint32_t *open, unsigned count);

/* Posts one: its number. */
uint32_t ledger_post(struct ledger *l, const struct wish *w);

/* A receive is complete; checks the content. */
void ledger_complete(struct ledger *l, uint32_t number, const struct tagmpi_status *got, const uint8_t *data);

/* All are: checks that each message came once, in the order of MPI. */
void ledger_check(const struct ledger *l);

#endif
