// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/qp/bound_layouts.h"

#include <stdlib.h>

#include "daemon/core/engine.h"
#include "daemon/session/session.h"

/* The entries of the client have the form of the engine's. */
_Static_assert(sizeof(struct pm_layout_entry) == sizeof(struct layout_entry_desc) &&
                   offsetof(struct pm_layout_entry, key) == offsetof(struct layout_entry_desc, object) &&
                   offsetof(struct pm_layout_entry, ndim) == offsetof(struct layout_entry_desc, ndim) &&
                   offsetof(struct pm_layout_entry, addr) == offsetof(struct layout_entry_desc, addr) &&
                   offsetof(struct pm_layout_entry, length) == offsetof(struct layout_entry_desc, length) &&
                   offsetof(struct pm_layout_entry, repeat) == offsetof(struct layout_entry_desc, repeat) &&
                   offsetof(struct pm_layout_entry, dim) == offsetof(struct layout_entry_desc, dim),
               "struct pm_layout_entry");
_Static_assert(PM_LAYOUT_ENTRIES == LAYOUT_MAX_ENTRIES && PM_LAYOUT_DIMS == LAYOUT_MAX_DIMS &&
                   PM_LAYOUT_DEPTH == LAYOUT_MAX_DEPTH,
               "what clients are told");

static void drop(struct client_qp *q, struct held_layout *h)
{
    TAILQ_REMOVE(&q->layouts, h, link);
    q->session->layout_entries -= h->desc.count;
    free(h);
}

/* Requests complete in order. So all requests before those that the engine still has are done. */
static void drop_done(struct client_qp *q)
{
    uint32_t oldest = q->sq.head - (q->caps.max_send_wr - qp_send_room(q->qp));
    struct held_layout *h;

    while ((h = TAILQ_FIRST(&q->layouts)) != NULL && (int32_t)(h->index - oldest) < 0)
        drop(q, h);
}

enum layouts_verdict layouts_take(struct client_qp *q, struct mw_bind *bind)
{
    /* Bytes of the entries. If the length is too short, it wraps to a huge number, which the check below refuses. */
    uint64_t bytes = bind->length - sizeof(struct pm_layout);
    uint64_t count = bytes / sizeof(struct pm_layout_entry);
    struct pm_layout head;
    struct held_layout *h;

    if (count == 0 || count > PM_LAYOUT_ENTRIES || bytes % sizeof(struct pm_layout_entry))
        return LAYOUTS_BAD;
    drop_done(q);
    if (q->session->layout_entries + count > SESSION_LAYOUT_ENTRIES)
        return LAYOUTS_LATER;
    h = malloc(sizeof(*h) + bytes);
    if (!h)
        return LAYOUTS_LATER;
    struct iovec local[] = {{&head, sizeof(head)}, {h->entry, bytes}};
    struct iovec remote = {(void *)(uintptr_t)bind->addr, bind->length};
    if (client_mem_read_all(q->session->client_mem, local, 2, &remote, 1, bind->length) != CLIENT_MEM_DONE ||
        head.count != count) {
        free(h);
        return LAYOUTS_BAD;
    }
    h->index = q->sq.head;
    h->desc = (struct layout_desc){.type = head.type, .count = head.count, .entry = h->entry};
    q->session->layout_entries += head.count;
    TAILQ_INSERT_TAIL(&q->layouts, h, link);
    bind->layout = &h->desc;
    bind->access &= ~PM_BIND_LAYOUT;
    return LAYOUTS_OK;
}

void layouts_put_back(struct client_qp *q)
{
    drop(q, TAILQ_LAST(&q->layouts, held_list));
}

void layouts_free(struct client_qp *q)
{
    struct held_layout *h;

    while ((h = TAILQ_FIRST(&q->layouts)) != NULL)
        drop(q, h);
}
