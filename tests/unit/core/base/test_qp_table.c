// SPDX-License-Identifier: BSD-2-Clause
/* The table of QPs by number: each QP is found in every stage of the table's growth. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "daemon/core/base/permute.h"
#include "daemon/core/base/qp_table.h"

#define QPS 3000u

/* The table knows no more of QPs. */
struct qp {
    uint32_t qpn;
};

static const struct permute_secret secret = {{0x0123456789abcdef, 0xfedcba9876543210}};
static struct qp_table table;
static struct qp qps[QPS];
static uint32_t next;

static void make(uint32_t max_qp)
{
    void *slots = calloc(1, qp_table_bytes(max_qp));

    cr_assert_not_null(slots);
    qp_table_init(&table, slots, max_qp);
}

static void setup(void)
{
    next = 0;
}

static void teardown(void)
{
    free(table.slot);
}
TestSuite(qp_table, .init = setup, .fini = teardown);

static void add(struct qp *qp)
{
    qp_table_grow(&table);
    do {
        qp->qpn = permute(&secret, 0, 24, next++);
    } while (!qp_table_is_free(&table, qp->qpn));
    qp_table_add(&table, qp->qpn, qp);
}

static void expect_found(uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        cr_assert_eq(qp_table_find(&table, qps[i].qpn), &qps[i], "QP %u of %u in %u slots", i, to, table.size);
}

Test(qp_table, finds_all_while_it_grows)
{
    make(QPS);
    for (uint32_t i = 0; i < QPS; i++) {
        uint32_t before = table.size;

        add(&qps[i]);
        cr_assert_leq(table.size - before, 2, "one QP split %u slots", table.size - before);
        cr_assert_geq(table.size, 2 * (i + 1));
        if (i % 7 == 0 || i > QPS - 10)
            expect_found(0, i + 1);
    }
    cr_expect_eq(table.count, QPS);
    cr_expect_lt(next, 4 * QPS, "%u numbers were tried", next);
}

Test(qp_table, removed_ones_are_not_found)
{
    make(QPS);
    for (uint32_t i = 0; i < QPS; i++)
        add(&qps[i]);
    for (uint32_t i = 0; i < QPS / 2; i++)
        qp_table_remove(&table, qps[i].qpn);
    expect_found(QPS / 2, QPS);
    for (uint32_t i = 0; i < QPS / 2; i++)
        cr_assert_null(qp_table_find(&table, qps[i].qpn));
    for (uint32_t i = 0; i < QPS / 2; i++)
        add(&qps[i]);
    expect_found(0, QPS);
}

/* A daemon that serves small jobs, one after the other, must not touch more and more memory. */
Test(qp_table, few_qps_use_few_slots)
{
    make(65536);
    for (uint32_t i = 0; i < 100000; i++) {
        struct qp *qp = &qps[i % 100];

        if (i >= 100)
            qp_table_remove(&table, qp->qpn);
        add(qp);
    }
    cr_expect_leq(table.size, 256);
    expect_found(0, 100);
}

Test(qp_table, is_full_with_one_qp_in_two_slots)
{
    make(1);
    add(&qps[0]);
    cr_expect_eq(table.size, 2);
    qp_table_grow(&table);
    cr_expect_eq(table.size, 2);
    expect_found(0, 1);
}
