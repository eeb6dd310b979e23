// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/tm/match.h"

#include <assert.h>
#include <string.h>

#include "daemon/core/tm/state.h"
#include "daemon/core/tm/sync.h"
#include "daemon/core/tm/trace.h"

enum tm_holds {
    HOLDS_NOTHING = 0,
    HOLDS_ENTRY, /* matched */
    HOLDS_COUNT, /* unexpected; it will count, and is part of inflight */
    HOLDS_BUFFER, /* NO_TAG, FIN, garbage: holds nothing of this module */
};

/* clang-format off */
#define BOTH (WC_TM_MATCH | WC_TM_DATA_VALID)
const struct tm_wc tm_wc_table[TM_ACTIONS] = {
    /*                     opcode      status                  first        last              whole */
    [TM_ACT_WAIT]       = {0,          0,                      0,           0,                0},
    [TM_ACT_REFUSE]     = {0,          0,                      0,           0,                0},
    [TM_ACT_BUFFER]     = {WC_TM_RECV, WC_SUCCESS,             0,           0,                0},
    [TM_ACT_EAGER]      = {WC_TM_RECV, WC_SUCCESS,             WC_TM_MATCH, WC_TM_DATA_VALID, BOTH},
    [TM_ACT_OVERFLOW]   = {WC_TM_RECV, WC_LOC_LEN_ERR,         WC_TM_MATCH, 0,                0},
    [TM_ACT_READ]       = {WC_TM_RECV, WC_SUCCESS,             WC_TM_MATCH, WC_TM_DATA_VALID, BOTH},
    [TM_ACT_FIN]        = {WC_TM_RECV, WC_SUCCESS,             0,           0,                BOTH},
    [TM_ACT_INCOMPLETE] = {WC_TM_RECV, WC_TM_RNDV_INCOMPLETE,  0,           0,                BOTH},
};

/* The requirements of a TMH's operation. */
static const struct kind_info {
    uint8_t kind; /* enum tm_kind */
    uint8_t why; /* enum tm_reason why it is not matched; TM_WHY_NONE: it is matched */
    uint8_t headers; /* bytes that must be present */
} kinds[] = {
    [TMH_NO_TAG] = {TM_KIND_NO_TAG, TM_WHY_NO_TAG, 1},
    [TMH_RNDV]   = {TM_KIND_RNDV,   TM_WHY_NONE,   TMH_LEN + RVH_LEN},
    [TMH_FIN]    = {TM_KIND_FIN,    TM_WHY_FIN,    1},
    [TMH_EAGER]  = {TM_KIND_EAGER,  TM_WHY_NONE,   TMH_LEN},
};
/* clang-format on */

uint8_t tm_wc_opcode(uint8_t action, uint8_t kind)
{
    if (action == TM_ACT_BUFFER && kind != TM_KIND_EAGER && kind != TM_KIND_RNDV)
        return WC_TM_NO_TAG;
    return tm_wc_table[action].opcode;
}

/* --- deciding --------------------------------------------------------------------------------- */

/* Sets kind, why, tmh and rvh. True: the message must be matched. */
static bool classify(const struct tag_list *tm, const struct tm_msg *m, struct tm_decision *d)
{
    static const struct kind_info empty = {TM_KIND_NO_TAG, TM_WHY_EMPTY, 0};
    static const struct kind_info unknown = {TM_KIND_GARBAGE, TM_WHY_UNKNOWN_OP, 1};
    const struct kind_info *k = &empty;
    if (m->len)
        k = m->data[0] < sizeof(kinds) / sizeof(*kinds) ? &kinds[m->data[0]] : &unknown;
    d->kind = k->kind;
    d->why = k->why;
    tmh_decode(m->data, m->len, &d->tmh);
    if (m->len < k->headers) {
        d->kind = TM_KIND_GARBAGE;
        d->why = TM_WHY_SHORT;
    }
    if (d->why != TM_WHY_NONE)
        return false;
    if (d->kind == TM_KIND_RNDV) {
        rvh_decode(m->data + TMH_LEN, m->len - TMH_LEN, &d->rvh);
        if (!m->whole || m->len > tm->profile->max_rndv_hdr) {
            d->action = TM_ACT_REFUSE;
            d->why = TM_WHY_HEADER_TOO_LONG;
            return false;
        }
    }
    return true;
}

/* Explains to people why there is no match. candidate: a pending entry that has the tag, or NULL. */
static void explain(const struct tag_list *tm, const struct tm_entry *candidate, struct tm_decision *d)
{
    const struct tm_entry *never;
    if (candidate) {
        d->why = tm->hw_cnt != tm->sw_cnt ? TM_WHY_PENDING : TM_WHY_PENDING_INFLIGHT;
        d->other = candidate->handle;
    } else if ((never = tm_list_find_never(&tm->list, d->tmh.tag)) != NULL) {
        d->why = TM_WHY_MASK;
        d->other = never->handle;
    } else {
        d->why = tm->list.active + tm->list.pending ? TM_WHY_NO_MATCH : TM_WHY_NO_ENTRY;
    }
}

/* Chooses the action for a message that has matched an entry. */
static void match(const struct tm_msg *m, struct tm_decision *d)
{
    uint32_t room = d->entry->capacity;
    if (d->kind == TM_KIND_EAGER) {
        bool fits = m->len - TMH_LEN <= room;
        d->action = fits ? TM_ACT_EAGER : TM_ACT_OVERFLOW;
        d->why = fits ? TM_WHY_NONE : TM_WHY_BUFFER_TOO_SHORT;
        return;
    }
    if (d->rvh.len > room)
        d->why = TM_WHY_BUFFER_TOO_SHORT;
    else if (d->rvh.len && !m->can_read)
        d->why = TM_WHY_NO_READS;
    if (d->why != TM_WHY_NONE)
        d->action = TM_ACT_INCOMPLETE;
    else
        d->action = d->rvh.len ? TM_ACT_READ : TM_ACT_FIN;
}

void tm_decide(const struct tag_list *tm, const struct tm_msg *m, struct tm_decision *d)
{
    *d = (struct tm_decision){
        .action = TM_ACT_BUFFER, .whole = m->whole, .qpn = m->qpn, .other = TM_NO_HANDLE, .version = tm->version};
    bool tagged = classify(tm, m, d);
    if (d->action != TM_ACT_REFUSE && tm->buffers < tm->profile->min_buffers) {
        d->action = TM_ACT_WAIT;
        d->why = TM_WHY_FEW_BUFFERS;
        return;
    }
    if (!tagged)
        return;
    struct tm_entry *e = tm_list_find(&tm->list, d->tmh.tag, &d->depth);
    if (e && tm_list_active(&tm->list, e)) {
        d->entry = e;
        match(m, d);
    } else {
        explain(tm, e, d);
    }
}

/* --- executing a decision --------------------------------------------------------------------- */

static void trace_decision(struct tag_list *tm, const struct tm_decision *d, enum tm_event_type type, uint64_t now)
{
    struct tm_event ev = {
        .type = (uint8_t)type,
        .why = d->why,
        .kind = d->kind,
        .action = d->action,
        .qpn = d->qpn,
        .tag = d->tmh.tag,
        .handle = d->entry ? d->entry->handle : d->other,
        .entries = d->depth,
    };
    tm_trace_add(tm, ev, now);
}

/* Is this the last event in the trace? A delayed message comes again every few microseconds and would fill the
 * trace. */
static bool waits_already(const struct tag_list *tm, const struct tm_decision *d)
{
    struct tm_event ev;
    return tm_trace_end(tm) && tm_trace_get(tm, tm_trace_end(tm) - 1, &ev) && ev.type == TM_EV_WAIT &&
           ev.qpn == d->qpn && ev.kind == d->kind && ev.tag == d->tmh.tag && ev.why == d->why;
}

void tm_refuse(struct tag_list *tm, const struct tm_decision *d, uint64_t now)
{
    bool forever = d->action == TM_ACT_REFUSE;
    if (forever)
        tm->counters.rx_refused++;
    else
        tm->counters.rx_wait++;
    if (forever || !waits_already(tm, d))
        trace_decision(tm, d, forever ? TM_EV_REFUSE : TM_EV_WAIT, now);
}

static void count_depth(struct tag_list *tm, uint32_t depth)
{
    tm->counters.depth_sum += depth;
    if (depth > tm->counters.depth_max)
        tm->counters.depth_max = depth;
}

void tm_commit(struct tag_list *tm, const struct tm_decision *d, struct tm_rx *rx, uint64_t now)
{
    assert(d->version == tm->version && d->action != TM_ACT_WAIT && d->action != TM_ACT_REFUSE);
    *rx = (struct tm_rx){
        .kind = d->kind, .action = d->action, .qpn = d->qpn, .entry = d->entry, .tmh = d->tmh, .rvh = d->rvh};
    count_depth(tm, d->depth);
    if (d->entry) {
        rx->holds = HOLDS_ENTRY;
        tm_list_remove(&tm->list, d->entry);
        d->entry->state = TM_CONSUMED;
        tm->consumed++;
    } else if (d->kind == TM_KIND_EAGER || d->kind == TM_KIND_RNDV) {
        rx->holds = HOLDS_COUNT;
        tm->inflight++;
    } else {
        rx->holds = HOLDS_BUFFER;
    }
    tm->version++;
    trace_decision(tm, d, d->entry ? TM_EV_MATCH : TM_EV_UNEXPECTED, now);
}

/* --- the end of a message --------------------------------------------------------------------- */

static void trace_end(struct tag_list *tm, const struct tm_rx *rx, enum tm_event_type type, uint8_t flags, uint64_t now)
{
    struct tm_event ev = {
        .type = (uint8_t)type,
        .kind = rx->kind,
        .action = rx->action,
        .qpn = rx->qpn,
        .tag = rx->tmh.tag,
        .handle = rx->entry ? rx->entry->handle : TM_NO_HANDLE,
        .flags = flags,
    };
    tm_trace_add(tm, ev, now);
}

static void free_entry(struct tag_list *tm, struct tm_entry *e)
{
    assert(e->state == TM_CONSUMED);
    e->state = TM_FREE;
    tm->consumed--;
}

static void count_match(struct tag_list *tm, const struct tm_rx *rx)
{
    if (rx->kind == TM_KIND_EAGER)
        tm->counters.rx_exp++;
    else
        tm->counters.rx_exp_rndv++;
    if (rx->action == TM_ACT_INCOMPLETE)
        tm->counters.sw_rndv++;
    if (rx->action == TM_ACT_READ || rx->action == TM_ACT_FIN)
        tm->counters.rndv_fin++;
}

static void count_untagged(struct tag_list *tm, const struct tm_rx *rx)
{
    tm->counters.rx_no_tag++;
    if (rx->kind == TM_KIND_FIN)
        tm->counters.rx_fin++;
    else if (rx->kind == TM_KIND_GARBAGE)
        tm->counters.rx_garbage++;
}

/* An unexpected message has arrived. From now on the program must report it. */
static uint8_t deliver(struct tag_list *tm, const struct tm_rx *rx)
{
    if (rx->kind == TM_KIND_EAGER)
        tm->counters.rx_unexp_eager++;
    else
        tm->counters.rx_unexp_rndv++;
    tm->inflight--;
    tm->hw_cnt++;
    if ((uint16_t)(tm->hw_cnt - tm->sw_cnt) <= TM_SYNC_REQ_AHEAD)
        return 0;
    tm->counters.sync_req++;
    return WC_TM_SYNC_REQ;
}

uint8_t tm_done(struct tag_list *tm, struct tm_rx *rx, uint64_t now)
{
    struct tm_rx had = *rx;
    uint8_t flags = 0;
    *rx = (struct tm_rx){0};
    switch (had.holds) {
    case HOLDS_NOTHING:
        return 0;
    case HOLDS_ENTRY:
        count_match(tm, &had);
        free_entry(tm, had.entry);
        trace_end(tm, &had, TM_EV_COMPLETE, 0, now);
        return 0;
    case HOLDS_COUNT:
        flags = deliver(tm, &had);
        break;
    default:
        count_untagged(tm, &had);
        break;
    }
    trace_end(tm, &had, TM_EV_DELIVER, flags, now);
    tm_settle(tm, now);
    return flags;
}

void tm_uncount(struct tag_list *tm, uint64_t now)
{
    tm->hw_cnt--;
    tm->counters.rx_dropped++;
    tm_trace_add(tm, (struct tm_event){.type = TM_EV_UNCOUNT, .handle = TM_NO_HANDLE}, now);
    tm_settle(tm, now);
}

void tm_drop(struct tag_list *tm, struct tm_rx *rx, uint64_t now)
{
    struct tm_rx had = *rx;
    *rx = (struct tm_rx){0};
    if (had.holds == HOLDS_NOTHING)
        return;
    tm->counters.rx_dropped++;
    if (had.holds == HOLDS_ENTRY)
        free_entry(tm, had.entry);
    else if (had.holds == HOLDS_COUNT)
        tm->inflight--;
    trace_end(tm, &had, TM_EV_DROP, 0, now);
    tm_settle(tm, now);
}
