// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/objects/lent.h"

#include <stdatomic.h>

#define PAGE_SHIFT 12
#define PAGES 16384u /* counters; a power of two */
#define PAGES_LOOKED 64u /* for longer memory, the answer is yes */

static _Atomic uint32_t begins[PAGES]; /* memory that begins in a page */
static _Atomic uint32_t total;

static void count(const struct ibv_sge *list, unsigned n, uint32_t by)
{
    for (unsigned i = 0; i < n; i++) {
        if (!list[i].addr || !list[i].length)
            continue;
        _Atomic uint32_t *page = &begins[(list[i].addr >> PAGE_SHIFT) % PAGES];

        /* Only one thread counts at a time, so these need not be atomic as a whole. */
        atomic_store_explicit(page, atomic_load_explicit(page, memory_order_relaxed) + by, memory_order_relaxed);
        atomic_store_explicit(&total, atomic_load_explicit(&total, memory_order_relaxed) + by, memory_order_relaxed);
    }
}

void lent_add(const struct ibv_sge *list, unsigned n)
{
    count(list, n, 1);
}

void lent_remove(const struct ibv_sge *list, unsigned n)
{
    count(list, n, UINT32_MAX);
}

bool lent_any(void)
{
    return atomic_load_explicit(&total, memory_order_relaxed) > 0;
}

bool lent_may_begin_in(uint64_t from, uint64_t to)
{
    if (!lent_any() || from >= to)
        return false;
    if (to - from > (uint64_t)PAGES_LOOKED << PAGE_SHIFT)
        return true;
    for (uint64_t page = from >> PAGE_SHIFT; page <= (to - 1) >> PAGE_SHIFT; page++) {
        if (atomic_load_explicit(&begins[page % PAGES], memory_order_relaxed))
            return true;
    }
    return false;
}
