// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/cm/host/cm_failures.h"

#include <stdbool.h>
#include <stddef.h>

static bool is_failure(uint8_t event)
{
    switch (event) {
    case CM_EVENT_ADDR_ERROR:
    case CM_EVENT_ROUTE_ERROR:
    case CM_EVENT_CONNECT_ERROR:
    case CM_EVENT_UNREACHABLE:
    case CM_EVENT_REJECTED:
    case CM_EVENT_MULTICAST_ERROR:
        return true;
    default:
        return false;
    }
}

void cm_failures_note(struct cm_failures *f, const struct cm_event *ev, uid_t uid, pid_t pid, uint64_t now)
{
    if (!is_failure(ev->type))
        return;
    struct cm_failure *e = &f->entry[f->n++ % CM_FAILURES];
    *e = (struct cm_failure){.at = now, .event = ev->type, .status = ev->status, .uid = uid, .pid = pid};
    cm_id_query(ev->id, &e->id);
}

const struct cm_failure *cm_failures_latest(const struct cm_failures *f, unsigned i)
{
    if (i >= f->n || i >= CM_FAILURES)
        return NULL;
    return &f->entry[(f->n - 1 - i) % CM_FAILURES];
}
