// SPDX-License-Identifier: BSD-2-Clause
/* Records what one rank has posted and received. It decides which receives may be posted so that every one of them
 * will complete. At the end it checks that every message was received once, by a receive that matches it. */
#ifndef PUMICE_TESTS_TAGMPI_LEDGER_H
#define PUMICE_TESTS_TAGMPI_LEDGER_H

#include "examples/tagmpi/tagmpi.h"
#include "tests/tagmpi/plan.h"

enum { LEDGER_NO_NUMBER = UINT32_MAX };

/* The arguments of a receive, with TAGMPI_ANY_SOURCE and TAGMPI_ANY_TAG. */
struct wish {
    unsigned comm;
    int source, tag;
};

/* A receive, in the order of posting. */
struct entry {
    struct wish wish;
    struct tagmpi_status got;
    bool done;
    uint32_t number; /* number of the message, read from its content; LEDGER_NO_NUMBER: the message is too short */
    uint8_t start[PLAN_NUMBER]; /* content of such a short message */
};

struct ledger {
    const struct plan *plan;
    unsigned rank;
    uint32_t expected, completed; /* numbers of receives */
    /* Messages for this rank that no completed receive got. */
    uint32_t left[BOOT_MAX_RANKS][PLAN_COMMS][PLAN_TAGS];
    struct entry *entry; /* [expected] */
    uint32_t posted; /* number of entries in use */
};

/* Prints seed, rank and the text, and ends the process. */
void ledger_fail(const struct ledger *l, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));

void ledger_init(struct ledger *l, const struct plan *plan, unsigned rank);
void ledger_fini(struct ledger *l);

/* Would this receive, and all open ones (given by their numbers), certainly get a message, in whatever order
 * messages come? A wildcard may take the message of another receive. So each receive must have more messages left
 * than rivals. */
bool ledger_safe(const struct ledger *l, const struct wish *w, const uint32_t *open, unsigned count);

/* Records a posted receive and returns its number. */
uint32_t ledger_post(struct ledger *l, const struct wish *w);

/* Records that a receive is complete, and checks its content. */
void ledger_complete(struct ledger *l, uint32_t number, const struct tagmpi_status *got, const uint8_t *data);

/* Call it when all receives are complete. Checks that each message came once, in the order that MPI demands. */
void ledger_check(const struct ledger *l);

#endif
