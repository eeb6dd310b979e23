// SPDX-License-Identifier: BSD-2-Clause
/* Shared by the random histories of tag matching: the choice of operations, the results of the reference, and the
 * comparison of the list with the reference's list. */
#ifndef PUMICE_TESTS_UNIT_CORE_TM_HISTORY_H
#define PUMICE_TESTS_UNIT_CORE_TM_HISTORY_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/core/tm/tag_list.h"
#include "tests/unit/core/tm_model.h"

#define MAX_TAGS 24u
#define HISTORIES 100000
#define NO_SLOT UINT32_MAX
#define EVERY_BIT UINT64_MAX

struct history {
    uint64_t random;
    struct tag_list *tm;
    uint32_t tags;
    struct model model;
    uint32_t generation[MAX_TAGS];
    bool in_use[MAX_TAGS]; /* listed or consumed */
    char *log; /* text of all events, or NULL */
    size_t log_len;
    char wrong[256]; /* the first difference; empty: none */
};

/* Begins the history of a seed. The caller makes the list. */
static inline void history_begin(struct history *h, uint64_t seed)
{
    memset(h, 0, offsetof(struct history, log));
    h->wrong[0] = 0;
    h->log_len = 0;
    h->random = seed;
}

static inline uint64_t next_random(struct history *h)
{
    uint64_t z = (h->random += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
static inline uint32_t below(struct history *h, uint32_t n)
{
    return (uint32_t)(next_random(h) % n);
}
static inline bool chance(struct history *h, uint32_t percent)
{
    return below(h, 100) < percent;
}

#define LOG_SIZE (1u << 20)
__attribute__((format(printf, 2, 3))) static inline void note(struct history *h, const char *format, ...)
{
    if (!h->log)
        return;
    va_list args;
    va_start(args, format);
    h->log_len += (size_t)vsnprintf(h->log + h->log_len, LOG_SIZE - h->log_len, format, args);
    va_end(args);
    if (h->log_len > LOG_SIZE - 256)
        h->log_len = LOG_SIZE - 256;
}
__attribute__((format(printf, 2, 3))) static inline void differ(struct history *h, const char *format, ...)
{
    if (h->wrong[0])
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(h->wrong, sizeof(h->wrong), format, args);
    va_end(args);
    note(h, "  <-- %s\n", h->wrong);
}
#define SAME(h, what, got, want)                                                                                       \
    do {                                                                                                               \
        if ((long long)(got) != (long long)(want))                                                                     \
            differ(h, "%s is %lld, not %lld", what, (long long)(got), (long long)(want));                              \
    } while (0)

/* --- operations */

static inline uint64_t random_tag(struct history *h)
{
    return below(h, 4) | (chance(h, 10) ? 1ull << 63 : 0);
}
static inline uint64_t random_mask(struct history *h)
{
    static const uint64_t masks[] = {EVERY_BIT, EVERY_BIT, EVERY_BIT,      EVERY_BIT,  0,
                                     1,         2,         EVERY_BIT >> 1, 1ull << 63, 3};
    return masks[below(h, sizeof(masks) / sizeof(*masks))];
}
/* Usually the count that an honest program would send. */
static inline uint32_t random_count(struct history *h)
{
    uint32_t kind = below(h, 10);
    if (kind < 6)
        return h->model.hw + (chance(h, 20) ? below(h, 8) << 16 : 0);
    return kind < 9 ? h->model.hw - below(h, 3) : (uint32_t)next_random(h);
}
/* A handle of an earlier use, of the current use, or of no use. */
static inline uint32_t random_handle(struct history *h)
{
    uint32_t slot = below(h, h->tags);
    if (chance(h, 3))
        return (uint32_t)next_random(h);
    return (h->generation[slot] - (chance(h, 15) ? 1 + below(h, 2) : 0)) << TM_SLOT_BITS | slot;
}

static inline void choose_op(struct history *h, struct tm_op *op)
{
    static const uint8_t opcodes[] = {TM_ADD, TM_ADD, TM_ADD, TM_DEL, TM_DEL, TM_SYNC};
    op->opcode = opcodes[below(h, sizeof(opcodes))];
    op->flags = (uint8_t)(below(h, 2) * TM_OP_SIGNALED + (chance(h, 60) ? TM_OP_SYNC : 0));
    op->unexpected_cnt = random_count(h);
    op->handle = random_handle(h);
    if (op->opcode != TM_ADD)
        return;
    op->tag = random_tag(h);
    op->mask = random_mask(h);
    op->tag &= chance(h, 95) ? op->mask : EVERY_BIT;
    uint32_t slot = TM_SLOT(op->handle);
    if (slot < h->tags && !h->in_use[slot])
        op->handle = ++h->generation[slot] << TM_SLOT_BITS | slot;
}

/* The result of the reference for an operation. */
static inline struct tm_op_result foretell_op(struct history *h, const struct tm_op *op)
{
    uint32_t slot = TM_SLOT(op->handle);
    int index = model_index(&h->model, op->handle);
    bool refused = false, late = op->opcode == TM_DEL && index < 0;
    if (op->opcode == TM_SYNC || op->flags & TM_OP_SYNC)
        model_report(&h->model, op->unexpected_cnt);
    if (op->opcode == TM_ADD) {
        refused = slot >= h->tags || h->in_use[slot];
        if (!refused) {
            model_add(&h->model, op->handle, op->tag, op->mask);
            h->in_use[slot] = true;
        }
    } else if (op->opcode == TM_DEL && !late) {
        model_remove(&h->model, index);
        h->in_use[slot] = false;
    }
    static const char *const names[] = {"ADD", "DEL", "SYNC"};
    note(h, "%s %x tag %" PRIx64 " mask %" PRIx64 " flags %u count %u\n", names[op->opcode], op->handle, op->tag,
         op->mask, op->flags, op->unexpected_cnt);
    return (struct tm_op_result){.complete = refused || op->flags & TM_OP_SIGNALED,
                                 .status = refused || late ? WC_TM_ERR : WC_SUCCESS,
                                 .opcode = (uint8_t)(WC_TM_ADD + op->opcode),
                                 .flags = model_in_sync(&h->model) ? 0 : WC_TM_SYNC_REQ};
}

/* --- comparing */

static inline void compare(struct history *h)
{
    struct tm_info info;
    tm_info(h->tm, &info);
    const struct model *m = &h->model;
    SAME(h, "hw_cnt", info.hw_cnt, m->hw);
    SAME(h, "sw_cnt", info.sw_cnt, m->sw);
    SAME(h, "inflight", info.inflight, m->inflight);
    SAME(h, "entries", info.active + info.pending, m->n);
    SAME(h, "in_sync", info.in_sync, model_in_sync(m));
    const struct tm_entry *e = NULL;
    uint32_t active = 0;
    for (int i = 0; i < m->n; i++) {
        e = tm_next_entry(h->tm, e);
        if (!e || e->handle != m->list[i].handle || tm_is_active(h->tm, e) != m->list[i].active) {
            differ(h, "entry %d is another one", i);
            return;
        }
        active += m->list[i].active;
        if (m->list[i].active && active != (uint32_t)i + 1)
            differ(h, "active entries are not a prefix");
    }
    SAME(h, "active", info.active, active);
}

static inline uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

#endif
