// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/verbs/event_verbs.h"

#include "src/check/base/finding.h"
#include "src/check/base/next.h"
#include "src/check/base/trace.h"
#include "src/check/objects/async_events.h"
#include "src/check/objects/records.h"
#include "src/check/verbs/export.h"

struct wait {
    const struct ibv_comp_channel *channel;
    const struct trace *where;
};

static void check_wait(void *record, void *arg)
{
    const struct cq_record *r = record;
    const struct wait *w = arg;

    if (r->cq->channel == w->channel && r->armed && r->unsafe)
        finding_add(RULE_LOST_EVENT,
                    &(const struct finding_place){.where = w->where, .other = r->armed_at, .whose = "the CQ was armed"},
                    "the program waits for an event of a CQ that it did not poll since it armed it: a completion that "
                    "came before "
                    "makes no event");
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    struct wait w = {channel, TRACE_HERE};

    records_lock();
    if (rule_is_on(RULE_LOST_EVENT))
        records_each(KIND_CQ, check_wait, &w);
    records_unlock();
    int rc = NEXT(ibv_get_cq_event, channel, cq, cq_context);
    if (rc)
        return rc;
    records_lock();
    struct cq_record *r = record_find(KIND_CQ, *cq, __builtin_return_address(0));
    if (r) {
        r->events++;
        r->event_at = w.where;
        r->armed = false;
    }
    records_unlock();
    return 0;
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    const struct trace *where = TRACE_HERE;
    int rc = NEXT(ibv_get_async_event, context, event);

    if (rc == 0) {
        records_lock();
        async_events_taken(event, where);
        records_unlock();
    }
    return rc;
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    records_lock();
    async_events_acknowledged(event);
    records_unlock();
    NEXT(ibv_ack_async_event, event);
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
    records_lock();
    struct cq_record *r = record_find(KIND_CQ, cq, __builtin_return_address(0));
    if (r)
        r->acked += n;
    records_unlock();
    NEXT(ibv_ack_cq_events, cq, n);
}
