// SPDX-License-Identifier: BSD-2-Clause
/* The device's matching list, and how the program and the device keep in sync.
 *
 * Both the device and the program match, and this can break the order of messages. Say a message comes before its
 * receive. The device finds no entry and gives the message to the program, as *unexpected*. Before the program sees
 * it, it posts the receive. If the device used the new entry at once, the next message of the sender with the same
 * tag could get it. It would overtake the first.
 *
 * Counts solve this. The device counts the unexpected messages that it has delivered. The program counts those that
 * it has handled, and reports its count with every ADD. If the counts are equal, program and device are *in sync*:
 * no unexpected message is under way, and the new entry is active at once. Otherwise the entry is pending: it is in
 * the list but does not match, until the program reports an equal count. Therefore the program follows these rules:
 *
 *   - For a new receive, it searches the queue of unexpected messages first. Only then it adds the receive to the
 *     device's list.
 *   - For an unexpected message, it searches the posted receives first. The receive that matches is certainly pending.
 *     So the program can take it out of the device's list (DEL) without a check whether that succeeded.
 *   - When the program has handled all arrivals and entries may be pending, it reports the count (SYNC).
 *
 * The device's list is finite. Receives that do not fit wait in the program. The device must not prefer later
 * receives to them. So the device's list is always the first part of the program's list. */
#ifndef PUMICE_EXAMPLES_TAGMPI_OFFLOAD_H
#define PUMICE_EXAMPLES_TAGMPI_OFFLOAD_H

#include "examples/tagmpi/device.h"
#include "examples/tagmpi/match.h"

struct offload {
    struct device *d;
    uint16_t count; /* unexpected messages that the program has handled, modulo 2^16 */
    uint16_t reported; /* the last count that the device was told */
    bool asked; /* the device asks for a report: many messages are unexpected */
    uint32_t listed; /* entries of the device's list that are in use */
    uint64_t posted, finished; /* operations */
    uint64_t adds, dels, syncs;
};

/* The caller owns d, and keeps it as long as it uses o. */
void offload_init(struct offload *o, struct device *d);

/* Puts a receive at the end of the device's list. False: there is no room now. */
bool offload_add(struct offload *o, struct tagmpi_request *r);

/* Takes a receive out of the device's list after software has matched it. */
void offload_del(struct offload *o, struct tagmpi_request *r);

/* Counts an unexpected message that the program has handled. */
void offload_count(struct offload *o);

/* Reports the count if entries may be pending. Call it when all arrivals are handled. */
void offload_sync(struct offload *o);

/* Frees an entry whose receive is complete. */
void offload_release(struct offload *o);

/* Handles the completion of an operation. */
void offload_finished(struct offload *o, const struct arrival *a);

#endif
