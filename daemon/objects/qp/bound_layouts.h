// SPDX-License-Identifier: BSD-2-Clause
/* Copies the layouts that bind requests refer to. A layout is a description in the client's memory. The engine uses the
 * daemon's private copy until the request is done. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_BOUND_LAYOUTS_H
#define PUMICE_DAEMON_OBJECTS_QP_BOUND_LAYOUTS_H

#include <stdbool.h>
#include <sys/queue.h>

#include "daemon/core/base/types.h"
#include "daemon/core/memory/layout.h"
#include "daemon/objects/qp/qp.h"

/* Entries of all layouts whose bind requests are not done, per session. */
#define SESSION_LAYOUT_ENTRIES (1u << 16)

struct held_layout {
    TAILQ_ENTRY(held_layout) link;
    uint32_t index; /* of the request in the send ring */
    struct layout_desc desc;
    struct layout_entry_desc entry[]; /* [desc.count] */
};

enum layouts_verdict {
    LAYOUTS_OK,
    /* Try again later: the session has too many entries waiting, or there is no memory. */
    LAYOUTS_LATER,
    LAYOUTS_BAD, /* the client's memory does not hold the layout that the request describes */
};
/* Copies the layout of the request at the ring's head, and lets bind->layout point to the copy. Frees the copies of
 * requests that are done. */
enum layouts_verdict layouts_take(struct client_qp *q, struct mw_bind *bind);
/* To be called if the request could not be posted. */
void layouts_put_back(struct client_qp *q);
/* Frees all copies. The engine no longer has requests of the QP. */
void layouts_free(struct client_qp *q);

#endif
