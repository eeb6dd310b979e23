// SPDX-License-Identifier: BSD-2-Clause
/* A walk over the objects of all sessions of a device, in slices (base/slice.h). Between two slices, the device's thread
 * carries packets and control operations, so objects and whole sessions may come and go.
 *
 * The report of the walk is therefore no picture of one moment. It holds: each object that exists during the whole walk
 * is reported once, no object is reported twice, and what is reported of one object is of one moment. An object may name
 * another one that the walk does not report, because that one was destroyed before its turn. A picture of one moment
 * would need a copy of all objects at once, which is the long pause that the slices avoid.
 *
 * A device has one walk at a time, because each table of handles has one: see object_walk_lock. */
#ifndef PUMICE_DAEMON_STATUS_OBJECT_WALK_H
#define PUMICE_DAEMON_STATUS_OBJECT_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/slice.h"
#include "daemon/base/user.h"
#include "daemon/device/device.h"

enum walk_table {
    WALK_PDS,
    WALK_QPS,
    WALK_SRQS,
    WALK_CQS,
    WALK_COMP_CNTRS,
    WALK_MRS,
    WALK_MWS,
    WALK_XRCDS, /* handles of XRC domains: struct xrcd_open */
    WALK_TABLES, /* their number */
};

struct object_walk {
    /* The function that is called, in the device's thread. Set by the caller. */
    void (*on_session)(void *ctx, const struct session *s); /* before the session's objects; may be NULL */
    /* Returns false if there is no room for another object in this slice. */
    bool (*on_object)(void *ctx, const struct session *s, enum walk_table table, void *obj);
    void *ctx;
    struct user user; /* who asks: the walk leaves out sessions that this user may not see */
    unsigned tables; /* those to walk: bits 1 << enum walk_table */

    /* Where the walk is. Zero at its beginning. */
    uint32_t session; /* number of the session; numbers grow, and the device's list is in their order */
    enum walk_table table;
    bool inside; /* in that session, and not behind it */
};

/* How long the thread that asks waits for one slice. */
#define WALK_WAIT_NS (2 * NS_PER_S)

/* Taken by a thread that asks, for the whole walk. In a pause the thread has it already. */
void object_walk_lock(void);
void object_walk_unlock(void);

/* A long walk can hold up the requests of other users. So the thread that asks may answer some between two slices, in a
 * pause. Walks of two users who are not administrators meet different sessions, and so different tables. Therefore only
 * the walk over sessions pauses, only for a user who is no administrator, and the answers must be for others of that
 * kind.
 *
 * Sets the function that the calling thread calls in each pause. NULL: none. In a pause there are no further pauses. */
void object_walk_set_pause(void (*fn)(void *ctx), void *ctx);
/* Called by the thread that asks, between two slices of a walk. */
void object_walk_pause(const struct object_walk *w);

/* Is the device's thread known to be stuck? Then nobody needs to wait for it. */
bool object_walk_is_hopeless(const struct device *d);

/* Goes on until the slice is over or the caller has no room. True: the walk has ended. */
bool object_walk_slice(struct object_walk *w, struct device *d, const struct slice *slice);

#endif
