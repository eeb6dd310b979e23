// SPDX-License-Identifier: BSD-2-Clause
/* The layouts that bind requests bring: descriptions in the client's memory, of which the daemon makes private copies that
 * the engine can use until the requests are done. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_BOUND_LAYOUTS_H
#define PUMICE_DAEMON_OBJECTS_QP_BOUND_LAYOUTS_H

#include <stdbool.h>
#include <sys/queue.h>

#include "daemon/core/base/types.h"
#include "daemon/core/memory/layout.h"
#include "daemon/objects/qp/qp.h"

#define SESSION_LAYOUT_ENTRIES (1u << 16) /* of layouts that wait to be bound, in all requests of a session */

struct held_layout {
    TAILQ_ENTRY(held_layout) link;
    uint32_t index; /* of the request in the send ring */
    struct layout_desc desc;
    struct layout_entry_desc entry[]; /* [desc.count] */
};

enum layouts_verdict {
    LAYOUTS_OK,
    LAYOUTS_LATER, /* the session has too much waiting */
    LAYOUTS_BAD, /* the client's memory does not hold what it says */
};
/* Copies the layout of the request at the ring's head, and lets bind->layout point to the copy. Those of requests that are done are
 * freed. */
enum layouts_verdict layouts_take(struct client_qp *q, struct mw_bind *bind);
/* The request was not posted after all. */
void layouts_put_back(struct client_qp *q);
/* Frees all; the engine has forgotten the queue pair's requests. */
void layouts_free(struct client_qp *q);

#endif
