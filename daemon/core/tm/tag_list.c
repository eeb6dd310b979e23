// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/tm/tag_list.h"

#include <string.h>

#include "daemon/core/tm/state.h"
#include "daemon/core/tm/sync.h"

/* clang-format off */
static const struct tm_profile profiles[TM_PROFILES] = {
    /*                        name        max_num_tags  max_ops     max_sge     max_rndv_hdr     min_buffers  owns sq */
    [TM_PROFILE_GENEROUS] = {"generous", TM_MAX_TAGS,  TM_MAX_OPS, TM_MAX_SGE, TM_MAX_RNDV_HDR, 0,           false},
    [TM_PROFILE_MLX5]     = {"mlx5",     127,          TM_MAX_OPS, 1,          64,              33,          true},
};
/* clang-format on */

const struct tm_profile *tm_profile(enum tm_profile_id id)
{
    return (unsigned)id < TM_PROFILES ? &profiles[id] : NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

/* Offsets of the parts in the memory. */
struct parts {
    size_t entries, sges, classes, buckets, trace, size;
    uint32_t num_buckets;
};

static size_t part(size_t *at, size_t size)
{
    size_t start = *at;
    *at += (size + 63) & ~(size_t)63;
    return start;
}

static bool lay_out(const struct tm_params *p, struct parts *l)
{
    const struct tm_profile *profile = tm_profile(p->profile);
    if (!profile || p->max_num_tags == 0 || p->max_num_tags > profile->max_num_tags || p->max_ops == 0 ||
        p->max_ops > profile->max_ops || p->trace_slots > 1u << 20 || (p->trace_slots & (p->trace_slots - 1)))
        return false;
    size_t n = p->max_num_tags, at = 0;
    l->num_buckets = 64;
    while (l->num_buckets < 2 * n)
        l->num_buckets *= 2;
    part(&at, sizeof(struct tag_list));
    l->entries = part(&at, n * sizeof(struct tm_entry));
    l->sges = part(&at, n * profile->max_sge * sizeof(struct sge));
    l->classes = part(&at, n * sizeof(struct mask_class));
    l->buckets = part(&at, l->num_buckets * sizeof(struct list_node));
    l->trace = part(&at, p->trace_slots * sizeof(struct tm_event));
    l->size = at;
    return true;
}

size_t tm_size(const struct tm_params *p)
{
    struct parts l;
    return lay_out(p, &l) ? l.size : 0;
}

struct tag_list *tm_init(void *mem, const struct tm_params *p)
{
    struct parts l;
    if (!lay_out(p, &l))
        return NULL;
    struct tag_list *tm = mem;
    uint8_t *base = mem;
    tm->params = *p;
    tm->profile = tm_profile(p->profile);
    tm->entries = (struct tm_entry *)(void *)(base + l.entries);
    struct sge *sges = (struct sge *)(void *)(base + l.sges);
    for (uint32_t i = 0; i < p->max_num_tags; i++) {
        list_init(&tm->entries[i].order);
        list_init(&tm->entries[i].chain);
        list_init(&tm->entries[i].job);
        tm->entries[i].state = TM_FREE;
        tm->entries[i].handle = TM_NO_HANDLE;
        tm->entries[i].sge = sges + (size_t)i * tm->profile->max_sge;
    }
    tm_list_init(&tm->list, (struct list_node *)(void *)(base + l.buckets), l.num_buckets,
                 (struct mask_class *)(void *)(base + l.classes), p->max_num_tags);
    tm->hw_cnt = tm->sw_cnt = 0;
    tm->inflight = tm->consumed = 0;
    tm->buffers = tm->version = 0;
    memset(&tm->counters, 0, sizeof(tm->counters));
    tm->trace = (struct tm_event *)(void *)(base + l.trace);
    tm->trace_end = 0;
    return tm;
}

const struct tm_profile *tm_profile_of(const struct tag_list *tm)
{
    return tm->profile;
}

/* --- synchronization -------------------------------------------------------------------------- */

/* Takes any reported count as it is. True: a correct program can't send it; this is counted in odd_counts. */
static bool report(struct tag_list *tm, uint32_t unexpected_cnt, uint64_t now)
{
    uint16_t cnt = (uint16_t)unexpected_cnt;
    bool backwards = (uint16_t)(cnt - tm->sw_cnt) >= 0x8000;
    bool ahead = (uint16_t)(tm->hw_cnt - cnt) >= 0x8000;
    if (backwards || ahead)
        tm->counters.odd_counts++;
    tm->sw_cnt = cnt;
    tm_settle(tm, now);
    return backwards || ahead;
}

/* --- operations ------------------------------------------------------------------------------- */

static uint32_t capacity(const struct tm_op *op)
{
    uint64_t total = 0;
    for (unsigned i = 0; i < op->num_sge; i++)
        total += op->sge[i].length;
    return total > ENGINE_MAX_MSG ? ENGINE_MAX_MSG : (uint32_t)total;
}

static enum tm_reason add(struct tag_list *tm, const struct tm_op *op, uint64_t now)
{
    if (TM_SLOT(op->handle) >= tm->params.max_num_tags)
        return TM_WHY_BAD_SLOT;
    if (op->num_sge > tm->profile->max_sge)
        return TM_WHY_BAD_SGE;
    struct tm_entry *e = &tm->entries[TM_SLOT(op->handle)];
    if (e->state != TM_FREE)
        return TM_WHY_SLOT_TAKEN;
    e->state = TM_LISTED;
    e->handle = op->handle;
    e->tag = op->tag;
    e->mask = op->mask;
    e->recv_wr_id = op->recv_wr_id;
    e->posted = now;
    e->num_sge = op->num_sge;
    e->capacity = capacity(op);
    if (op->num_sge)
        memcpy(e->sge, op->sge, op->num_sge * sizeof(*op->sge));
    tm_list_append(&tm->list, e, tm_in_sync(tm));
    tm->counters.list_add++;
    return TM_WHY_NONE;
}

static enum tm_reason del(struct tag_list *tm, const struct tm_op *op)
{
    if (TM_SLOT(op->handle) >= tm->params.max_num_tags)
        return TM_WHY_STALE;
    struct tm_entry *e = &tm->entries[TM_SLOT(op->handle)];
    if (e->state == TM_FREE || e->handle != op->handle)
        return TM_WHY_STALE;
    if (e->state == TM_CONSUMED)
        return TM_WHY_CONSUMED;
    tm_list_remove(&tm->list, e);
    e->state = TM_FREE;
    tm->counters.list_del++;
    return TM_WHY_NONE;
}

/* For each operation: the opcode of its completion and its event. */
/* clang-format off */
static const struct {
    uint8_t wc_opcode, event;
} op_table[] = {
    [TM_ADD]  = {WC_TM_ADD,  TM_EV_ADD},
    [TM_DEL]  = {WC_TM_DEL,  TM_EV_DEL},
    [TM_SYNC] = {WC_TM_SYNC, TM_EV_SYNC},
};
/* clang-format on */

static enum tm_reason carry_out(struct tag_list *tm, const struct tm_op *op, uint64_t now)
{
    switch (op->opcode) {
    case TM_ADD:
        return add(tm, op, now);
    case TM_DEL:
        return del(tm, op);
    case TM_SYNC:
        tm->counters.list_sync++;
        return TM_WHY_NONE;
    default:
        return TM_WHY_BAD_OP;
    }
}

static void trace_op(struct tag_list *tm, const struct tm_op *op, bool refused, enum tm_reason why, uint64_t now)
{
    bool adds = op->opcode == TM_ADD;
    struct tm_event ev = {
        .type = refused ? TM_EV_REFUSED_OP : op_table[op->opcode].event,
        .why = (uint8_t)why,
        .flags = op->flags,
        .handle = op->opcode == TM_SYNC ? TM_NO_HANDLE : op->handle,
        .tag = adds ? op->tag : 0,
        .mask = adds ? op->mask : 0,
        .active = adds && !refused && tm_list_active(&tm->list, &tm->entries[TM_SLOT(op->handle)]),
    };
    tm_trace_add(tm, ev, now);
}

void tm_op(struct tag_list *tm, const struct tm_op *op, struct tm_op_result *result, uint64_t now)
{
    bool known = op->opcode <= TM_SYNC;
    bool reports = op->opcode == TM_SYNC || op->flags & TM_OP_SYNC;
    result->odd_count = reports && report(tm, op->unexpected_cnt, now);
    enum tm_reason why = carry_out(tm, op, now);
    tm->version++;
    bool refused = why != TM_WHY_NONE && op->opcode != TM_DEL;
    if (refused)
        tm->counters.list_refused++;
    else if (why != TM_WHY_NONE)
        tm->counters.list_del_late++;
    trace_op(tm, op, refused, why, now);

    result->complete = op->flags & TM_OP_SIGNALED || refused;
    result->status = why == TM_WHY_NONE ? WC_SUCCESS : WC_TM_ERR;
    result->opcode = known ? op_table[op->opcode].wc_opcode : WC_TM_SYNC;
    result->flags = tm_in_sync(tm) ? 0 : WC_TM_SYNC_REQ;
    result->why = (uint8_t)why;
    if (result->complete && result->flags)
        tm->counters.sync_req++;
}

void tm_buffers_posted(struct tag_list *tm, uint32_t n)
{
    if (tm->buffers < tm->profile->min_buffers)
        tm->version++; /* a decision to wait is no longer right */
    tm->buffers += n;
}
