// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/tm/trace.h"

#include "daemon/core/tm/state.h"

void tm_trace_add(struct tag_list *tm, struct tm_event ev, uint64_t now)
{
    if (tm->params.trace_slots == 0)
        return;
    if (now > tm->now)
        tm->now = now;
    ev.time = tm->now;
    ev.hw_cnt = tm->hw_cnt;
    ev.sw_cnt = tm->sw_cnt;
    ev.inflight = tm->inflight;
    tm->trace[tm->trace_end++ & (tm->params.trace_slots - 1)] = ev;
}

uint64_t tm_trace_end(const struct tag_list *tm)
{
    return tm->trace_end;
}

bool tm_trace_get(const struct tag_list *tm, uint64_t n, struct tm_event *ev)
{
    if (n >= tm->trace_end || tm->trace_end - n > tm->params.trace_slots)
        return false;
    *ev = tm->trace[n & (tm->params.trace_slots - 1)];
    return true;
}

const struct tm_entry *tm_next_entry(const struct tag_list *tm, const struct tm_entry *e)
{
    const struct list_node *at = e ? e->order.next : tm->list.order.next;
    return at == &tm->list.order ? NULL : list_entry(at, const struct tm_entry, order);
}

bool tm_is_active(const struct tag_list *tm, const struct tm_entry *e)
{
    return tm_list_active(&tm->list, e);
}

void tm_info(const struct tag_list *tm, struct tm_info *info)
{
    *info = (struct tm_info){
        .hw_cnt = tm->hw_cnt,
        .sw_cnt = tm->sw_cnt,
        .inflight = tm->inflight,
        .active = tm->list.active,
        .pending = tm->list.pending,
        .consumed = tm->consumed,
        .masks = tm->list.num_classes,
        .max_num_tags = tm->params.max_num_tags,
        .max_ops = tm->params.max_ops,
        .profile = tm->params.profile,
        .in_sync = tm_in_sync(tm),
        .counters = tm->counters,
    };
}

static const char *name(const char *const *names, size_t count, uint8_t index)
{
    return index < count ? names[index] : "?";
}

const char *tm_event_name(uint8_t type)
{
    static const char *const names[TM_EVENT_COUNT] = {
#define X(id, brief) [TM_EV_##id] = brief,
        TM_EVENTS(X)
#undef X
    };
    return name(names, TM_EVENT_COUNT, type);
}

const char *tm_kind_name(uint8_t kind)
{
    static const char *const names[] = {
        [TM_KIND_NO_TAG] = "no-tag", [TM_KIND_FIN] = "fin",   [TM_KIND_GARBAGE] = "garbage",
        [TM_KIND_EAGER] = "eager",   [TM_KIND_RNDV] = "rndv",
    };
    return name(names, sizeof(names) / sizeof(*names), kind);
}

const char *tm_reason_name(uint8_t why)
{
    static const char *const names[TM_REASON_COUNT] = {
#define X(id, brief, text) [TM_WHY_##id] = brief,
        TM_REASONS(X)
#undef X
    };
    return name(names, TM_REASON_COUNT, why);
}

const char *tm_reason_text(uint8_t why)
{
    static const char *const texts[TM_REASON_COUNT] = {
#define X(id, brief, text) [TM_WHY_##id] = text,
        TM_REASONS(X)
#undef X
    };
    return name(texts, TM_REASON_COUNT, why);
}
