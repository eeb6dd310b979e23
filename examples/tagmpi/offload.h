// SPDX-License-Identifier: BSD-2-Clause
/* The device's matching list, and how the program and the device keep in step.
 *
 * The trouble is that both match. Think of a message that comes before its receive: the device finds no entry and hands it
 * to the program, as *unexpected*. While that is under way the program posts the receive. If the device took the new entry
 * at once, the sender's next message with the same tag could get it, and would have overtaken the first.
 *
 * The remedy is a count. The device counts the unexpected messages that it has handed over, the program counts those that it
 * has dealt with, and says its count with every ADD. If the two are equal, program and device are *in sync*: nothing is under
 * way, and the new entry is active at once. If not, it is pending: it stands in the list but does not match, until the
 * program has reported a count that is equal. Therefore, for the program:
 *
 *   - a receive is looked for in the unexpected queue first, and only then added to the device's list;
 *   - an unexpected message is looked for among the posted receives first. The one that it matches is pending for sure, so it
 *     can be taken out of the device's list (DEL) without asking whether that succeeded;
 *   - when everything that came has been dealt with and entries may be pending, the count is reported (SYNC).
 *
 * The device's list is finite. Receives that don't fit wait in the program, and since the device must not prefer later
 * receives to them, the device's list is always the first part of the program's. */
#ifndef OFFLOAD_H
#define OFFLOAD_H

#include "examples/tagmpi/device.h"
#include "examples/tagmpi/match.h"

struct offload {
    struct device *d;
    uint16_t count; /* unexpected messages dealt with, modulo 2^16 */
    uint16_t reported; /* the count that the device knows */
    bool asked; /* the device asks for a report: many messages are unexpected */
    uint32_t listed; /* entries of the device's list that are not free for others yet */
    uint64_t posted, finished; /* operations */
    uint64_t adds, dels, syncs;
};

/* d stays the caller's, and must stay as long as o is used. */
void offload_init(struct offload *o, struct device *d);

/* Puts a receive at the end of the device's list. false: no room, now. */
bool offload_add(struct offload *o, struct tagmpi_request *r);

/* Software has matched a receive that is listed: takes it out of the device's list. */
void offload_del(struct offload *o, struct tagmpi_request *r);

/* An unexpected message has been dealt with. */
void offload_count(struct offload *o);

/* Everything that came has been dealt with: reports the count, if that may help. */
void offload_sync(struct offload *o);

/* The receive of an entry is complete, so that the entry is free. */
void offload_release(struct offload *o);

/* A completion of an operation. */
void offload_finished(struct offload *o, const struct arrival *a);

#endif
