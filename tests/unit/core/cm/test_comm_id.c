// SPDX-License-Identifier: BSD-2-Clause
/* The table of communication IDs. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/cm/comm_id.h"

static struct comm_table table;
static void *mem;

static void setup(void)
{
    struct permute_secret secret = {{1, 2}};
    mem = calloc(1, comm_table_size(100));
    comm_table_init(&table, mem, 100, &secret);
}
static void teardown(void)
{
    free(mem);
}
TestSuite(comm_id, .init = setup, .fini = teardown);

Test(comm_id, each_part_of_a_key_counts)
{
    struct comm_key key = {1, 2, 3, COMM_SIDR};
    struct comm_node n = {0}, other = {0};
    cr_assert(comm_table_insert(&table, &n, &key));
    cr_assert_eq(comm_table_find(&table, &key), &n);
    cr_assert_not(comm_table_insert(&table, &other, &key));
    for (int i = 0; i < 4; i++) {
        struct comm_key wrong = key;
        if (i == 0)
            wrong.a++;
        else if (i == 1)
            wrong.b++;
        else if (i == 2)
            wrong.number++;
        else
            wrong.kind = COMM_REMOTE;
        cr_assert_null(comm_table_find(&table, &wrong));
    }
    comm_table_remove(&table, &other); /* is not in it */
    comm_table_remove(&table, &n);
    cr_assert_null(comm_table_find(&table, &key));
    cr_assert_eq(table.used, 0);
}

Test(comm_id, many)
{
    static struct comm_node n[1000];
    memset(n, 0, sizeof(n));
    for (uint32_t i = 0; i < 1000; i++)
        cr_assert(comm_table_insert(&table, &n[i], &(struct comm_key){7, 0, i, COMM_REMOTE}));
    for (uint32_t i = 0; i < 1000; i += 2)
        comm_table_remove(&table, &n[i]);
    for (uint32_t i = 0; i < 1000; i++) {
        struct comm_node *found = comm_table_find(&table, &(struct comm_key){7, 0, i, COMM_REMOTE});
        cr_assert_eq(found, i % 2 ? &n[i] : NULL);
    }
}

Test(comm_id, new_ids_are_unique_and_in_no_order)
{
    static struct comm_node n[1000];
    uint32_t before = 0, near = 0;
    memset(n, 0, sizeof(n));
    table.next_id = 0xfffe0c; /* the upper bits change on the way */
    for (unsigned i = 0; i < 1000; i++) {
        uint32_t id = comm_table_new_id(&table);
        cr_assert_neq(id, 0);
        near += id - before < 0x10000;
        before = id;
        cr_assert(comm_table_insert(&table, &n[i], &(struct comm_key){0, 0, id, COMM_LOCAL}));
    }
    cr_assert_lt(near, 30);
    /* After all numbers were used once, those that are in use are skipped. */
    table.next_id = 0xfffe0c;
    uint32_t id = comm_table_new_id(&table);
    cr_assert_null(comm_table_find(&table, &(struct comm_key){0, 0, id, COMM_LOCAL}));
}
