// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/base/qp_table.h"

#include "daemon/core/base/wqe_queue.h"

#define FIRST_SLOTS 256u /* a page */

size_t qp_table_bytes(uint32_t max_qp)
{
    return (size_t)2 * pow2_at_least(max_qp) * sizeof(struct qp_table_slot);
}

void qp_table_init(struct qp_table *t, void *slots, uint32_t max_qp)
{
    uint32_t max = 2 * pow2_at_least(max_qp), size = max < FIRST_SLOTS ? max : FIRST_SLOTS;

    *t = (struct qp_table){.slot = slots, .size = size, .mask = size - 1, .max = max};
}

/* The new slot takes its share of the slot that had its numbers so far. */
static void split_one(struct qp_table *t)
{
    if (t->size > t->mask)
        t->mask = 2 * t->mask + 1;

    uint32_t new = t->size++, old = new & t->mask >> 1;
    struct qp_table_slot *s = &t->slot[old];

    if (!s->qp || (s->qpn & t->mask) != new)
        return;
    t->slot[new] = *s;
    *s = (struct qp_table_slot){.qp = NULL};
}

/* Two slots for each QP, and for the next one. */
void qp_table_grow(struct qp_table *t)
{
    while (t->size < t->max && t->size < 2 * (t->count + 1))
        split_one(t);
}

bool qp_table_is_free(const struct qp_table *t, uint32_t qpn)
{
    return t->slot[qp_table_index(t, qpn)].qp == NULL;
}

void qp_table_add(struct qp_table *t, uint32_t qpn, struct qp *qp)
{
    t->slot[qp_table_index(t, qpn)] = (struct qp_table_slot){.qp = qp, .qpn = qpn};
    t->count++;
}

void qp_table_remove(struct qp_table *t, uint32_t qpn)
{
    t->slot[qp_table_index(t, qpn)] = (struct qp_table_slot){.qp = NULL};
    t->count--;
}
