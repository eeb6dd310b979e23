// SPDX-License-Identifier: BSD-2-Clause
/* Invariants of connection management. Test builds (PUMICE_CHECK) assert them at the exit of each call. */
#include <assert.h>

#include "daemon/core/cm/cm_id.h"

#define WALK_MAX 64u /* IDs that are checked; more would take too long at each call */

static void check_listener(const struct cm_id *id)
{
    uint32_t waiting = 0, unowned = 0;
    for (const struct list_node *n = id->children.next; n != &id->children; n = n->next) {
        const struct cm_id *child = list_entry(n, const struct cm_id, sibling);
        assert(child->listener == id);
        assert(child->state == CM_ID_REQ_RECEIVED);
        waiting++;
        unowned += child->owner ? 0 : 1;
    }
    assert(waiting == id->waiting);
    assert(unowned == id->unowned);
    assert(waiting == 0 || id->state == CM_ID_LISTEN);
}

/* A message without an answer is repeated, and time wait ends. */
static void check_timer(const struct cm_id *id)
{
    assert((id->timer_use == CM_TIMER_NONE) == (id->timer.when == NEVER));
    switch (id->state) {
    case CM_ID_REQ_SENT:
    case CM_ID_REP_SENT:
    case CM_ID_DREQ_SENT:
        assert(id->timer_use == CM_TIMER_RETRY);
        assert(id->has_kept);
        assert(id->timer.when <= id->give_up);
        break;
    case CM_ID_TIME_WAIT:
        assert(id->timer_use == CM_TIMER_TIME_WAIT);
        break;
    case CM_ID_DISCONNECTED:
        assert(id->timer_use == CM_TIMER_NONE || id->timer_use == CM_TIMER_FORGET);
        break;
    case CM_ID_ESTABLISHED:
        assert(id->timer_use == CM_TIMER_NONE || (id->timer_use == CM_TIMER_FORGET && id->qp_type == QPT_UD));
        break;
    default:
        assert(id->timer_use == CM_TIMER_NONE);
        break;
    }
}

static void check_tables(const struct cm_id *id)
{
    assert(id->has_comm == (id->by_local.key.kind == COMM_LOCAL));
    if (id->has_comm)
        assert(id->local_comm_id != 0 && cm_id_by_local(id->cm, id->local_comm_id) == id);
    else
        assert(!id->by_remote.key.kind && !id->by_remote_qp.key.kind);
    if (id->by_remote_qp.key.kind) {
        assert(id->by_remote.key.kind == COMM_REMOTE);
        assert(id->state == CM_ID_REQ_RECEIVED || id->state == CM_ID_REP_SENT || id->state == CM_ID_REP_RECEIVED ||
               id->state == CM_ID_ESTABLISHED || id->state == CM_ID_DREQ_SENT || id->state == CM_ID_DREQ_RECEIVED);
    }
}

void cm_id_check(const struct cm_id *id)
{
    assert(id->cm);
    check_timer(id);
    check_tables(id);
    check_listener(id);
    assert(id->bind.listening == (id->state == CM_ID_LISTEN));
    assert(list_empty(&id->sibling) == (id->listener == NULL));
    assert(list_empty(&id->ending) == !id->is_ending);
    if (id->is_ending) /* its timer will free it */
        assert(id->timer_use != CM_TIMER_NONE && !id->owner && list_empty(&id->events) && !id->bind.link);
    assert(!id->disconnected || id->state == CM_ID_DREQ_RECEIVED || id->state == CM_ID_TIME_WAIT ||
           id->state == CM_ID_DISCONNECTED);
    assert(!id->may_delay || id->state == CM_ID_REQ_RECEIVED || id->state == CM_ID_REP_RECEIVED);
}

void cm_check(const struct cm *cm)
{
    uint32_t n = 0, nodes = 0, timers = 0;
    for (const struct list_node *l = cm->ids.next; l != &cm->ids && n <= WALK_MAX; l = l->next) {
        const struct cm_id *id = list_entry(l, const struct cm_id, all);
        cm_id_check(id);
        n++;
        nodes += (id->by_local.key.kind ? 1u : 0u) + (id->by_remote.key.kind ? 1u : 0u) +
                 (id->by_remote_qp.key.kind ? 1u : 0u);
        timers += id->timer_use ? 1u : 0u;
    }
    assert(cm->out_tail - cm->out_head <= CM_OUT_SLOTS);
    if (cm->count > WALK_MAX)
        return;
    assert(n == cm->count);
    assert(nodes == cm->comm.used);
    assert(timers == cm->timers.count);
}
