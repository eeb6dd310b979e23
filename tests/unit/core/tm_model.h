// SPDX-License-Identifier: BSD-2-Clause
/* The reference for tag matching: a plain array of entries, each with its own `active` flag, and the rules one by
 * one. */
#ifndef PUMICE_TESTS_UNIT_CORE_TM_MODEL_H
#define PUMICE_TESTS_UNIT_CORE_TM_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct model {
    struct {
        uint32_t handle;
        uint64_t tag, mask;
        bool active;
    } list[64];
    int n, inflight;
    uint16_t hw, sw;
};

static inline bool model_in_sync(const struct model *m)
{
    return m->hw == m->sw && m->inflight == 0;
}
static inline void model_settle(struct model *m)
{
    for (int i = 0; i < m->n && model_in_sync(m); i++)
        m->list[i].active = true;
}
static inline void model_remove(struct model *m, int i)
{
    memmove(&m->list[i], &m->list[i + 1], (size_t)(--m->n - i) * sizeof(m->list[0]));
}
static inline void model_report(struct model *m, uint32_t count)
{
    m->sw = (uint16_t)count;
    model_settle(m);
}
static inline void model_add(struct model *m, uint32_t handle, uint64_t tag, uint64_t mask)
{
    m->list[m->n].handle = handle;
    m->list[m->n].tag = tag;
    m->list[m->n].mask = mask;
    m->list[m->n++].active = model_in_sync(m);
}
static inline int model_index(const struct model *m, uint32_t handle)
{
    for (int i = 0; i < m->n; i++)
        if (m->list[i].handle == handle)
            return i;
    return -1;
}
static inline int model_match(const struct model *m, uint64_t tag)
{
    for (int i = 0; i < m->n; i++)
        if (m->list[i].active && (tag & m->list[i].mask) == m->list[i].tag)
            return i;
    return -1;
}
static inline void model_end(struct model *m, bool delivered)
{
    m->inflight--;
    m->hw = (uint16_t)(m->hw + delivered);
    model_settle(m);
}

#endif
