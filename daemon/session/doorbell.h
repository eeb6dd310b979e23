// SPDX-License-Identifier: BSD-2-Clause
/* The doorbells of a session. A client writes to a ring, then sets a bit of the session page (struct pm_session_page).
 * The loop calls the owner of that bit. Posting makes no system call, unless the loop sleeps. */
#ifndef PUMICE_DAEMON_SESSION_DOORBELL_H
#define PUMICE_DAEMON_SESSION_DOORBELL_H

#include <stdbool.h>
#include <stdint.h>

#include "pumice/abi.h"

#define DOORBELL_NONE UINT32_MAX /* means: no doorbell */

struct doorbell {
    void (*rang)(void *owner, uint64_t now); /* NULL: the slot is free */
    union {
        void *owner;
        uint32_t next_free; /* of a free slot: the next one, or DOORBELL_NONE */
    };
};

struct doorbells {
    struct pm_session_page *page; /* shared with the client, which may write anything to it */
    struct doorbell *slot;
    uint32_t end; /* slots from here on were never used */
    uint32_t free; /* the first slot that is free again; DOORBELL_NONE: none */
    uint32_t cap; /* allocated slots; at most PM_DOORBELLS */
};

/* page must stay valid until doorbells_fini. */
void doorbells_init(struct doorbells *d, struct pm_session_page *page);
void doorbells_fini(struct doorbells *d);

/* Takes a free slot. From then on, rang(owner) is called whenever the client sets this doorbell. Returns the slot's
 * number, or -ENOSPC. */
int doorbells_take(struct doorbells *d, void (*rang)(void *owner, uint64_t now), void *owner);
void doorbells_release(struct doorbells *d, uint32_t doorbell);

/* Clears the doorbells that are set and calls their owners. Returns how many were set. */
unsigned doorbells_scan(struct doorbells *d, uint64_t now);
/* True if a doorbell is set. */
bool doorbells_pending(const struct doorbells *d);
/* Announces in the session page that the loop is about to sleep, or that it is awake. */
void doorbells_set_sleeping(struct doorbells *d, bool sleeping);

#endif
