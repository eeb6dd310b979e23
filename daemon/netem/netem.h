// SPDX-License-Identifier: BSD-2-Clause
/* The emulated network of a daemon: a plan, and the queues of its links in a file that all daemons with this plan share. */
#ifndef PUMICE_DAEMON_NETEM_NETEM_H
#define PUMICE_DAEMON_NETEM_NETEM_H

#include "daemon/base/error_text.h"
#include "daemon/netem/netem_plan.h"
#include "daemon/netem/netem_trip.h"

struct netem {
    struct netem_plan plan;
    struct netem_queue *queues; /* NETEM_QUEUES of them */
};

/* Reads the plan from a file, and maps the file with its name and the suffix ".state", which is created if it does not exist.
 * Returns 0, or -errno with why. */
int netem_open(const char *file, struct netem **out, char why[ERROR_TEXT_MAX]);
/* From now on no link loses or marks packets. They wait, however long the queue. */
void netem_keep_all(struct netem *n);
void netem_close(struct netem *n); /* n may be NULL */

/* Begins a trip between two addresses. Without links between them, trip->hops is 0. */
void netem_begin(const struct netem *n, const uint8_t src[16], const uint8_t dst[16], struct netem_trip *trip);

/* Passes the next link with a packet of len bytes, BTH to ICRC. */
struct netem_passage netem_pass(const struct netem *n, struct netem_trip *trip, uint32_t len, bool v6, uint64_t random,
                                uint64_t now);

#endif
