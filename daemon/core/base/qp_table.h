// SPDX-License-Identifier: BSD-2-Clause
/* The table of a device's QPs by their numbers. The numbers are spread over 24 bits, so the table is a hash table. It
 * grows by one slot at a time (linear hashing), for two reasons: few QPs touch few pages of the memory that is reserved
 * for many, and a new QP moves two others at most. It does not shrink.
 *
 * A slot holds one QP. The owner chooses numbers whose slots are free (qp_table_is_free); about half of them are. */
#ifndef PUMICE_DAEMON_CORE_BASE_QP_TABLE_H
#define PUMICE_DAEMON_CORE_BASE_QP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qp;

struct qp_table_slot {
    struct qp *qp; /* NULL: the slot is free */
    uint32_t qpn;
};

struct qp_table {
    struct qp_table_slot *slot; /* [max]; those from `size` on are free */
    uint32_t size; /* slots in use */
    uint32_t mask; /* the least power of two that is not below size, minus 1 */
    uint32_t max, count;
};

/* Bytes of the slots for up to max_qp QPs. */
size_t qp_table_bytes(uint32_t max_qp);
/* slots: qp_table_bytes bytes, all 0. */
void qp_table_init(struct qp_table *t, void *slots, uint32_t max_qp);

/* The index of a number's slot. */
static inline uint32_t qp_table_index(const struct qp_table *t, uint32_t qpn)
{
    uint32_t i = qpn & t->mask;

    return i < t->size ? i : i & t->mask >> 1; /* not split yet */
}

/* NULL: there is no QP of this number. */
static inline struct qp *qp_table_find(const struct qp_table *t, uint32_t qpn)
{
    const struct qp_table_slot *s = &t->slot[qp_table_index(t, qpn)];

    return s->qpn == qpn ? s->qp : NULL;
}

/* Makes room for one more QP. Called before a number is chosen. */
void qp_table_grow(struct qp_table *t);
bool qp_table_is_free(const struct qp_table *t, uint32_t qpn);
void qp_table_add(struct qp_table *t, uint32_t qpn, struct qp *qp);
void qp_table_remove(struct qp_table *t, uint32_t qpn);

#endif
