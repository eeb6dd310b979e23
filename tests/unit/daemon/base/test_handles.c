// SPDX-License-Identifier: BSD-2-Clause
/* Tables of handles. */
#include <criterion/criterion.h>
#include <errno.h>

#include "daemon/base/handles.h"

Test(handles, numbers_find_only_their_object)
{
    struct handles t = {.limit = 3};
    int a, b, c, d;
    uint32_t ha, hb, hc, hd;

    cr_assert_eq(handles_add(&t, &a, &ha), 0);
    cr_assert_eq(handles_add(&t, &b, &hb), 0);
    cr_assert_eq(handles_add_at(&t, &c, 0xffffffff), 0);
    cr_assert_neq(ha, 0);
    cr_assert_neq(ha, hb);
    cr_assert_eq(handles_get(&t, ha), &a);
    cr_assert_eq(handles_get(&t, 0xffffffff), &c);
    cr_assert_null(handles_get(&t, 0));
    cr_assert_null(handles_get(&t, hb + 1));
    cr_assert_eq(handles_add(&t, &d, &hd), -ENOSPC);
    cr_assert_eq(handles_add_at(&t, &d, ha), -EEXIST);
    handles_remove(&t, ha);
    handles_remove(&t, ha);
    cr_assert_eq(t.count, 2);
    cr_assert_null(handles_get(&t, ha));
    cr_assert_eq(handles_add(&t, &d, &hc), 0);
    cr_assert_neq(hc, ha, "a number that was just freed comes back late");
    while (handles_any(&t))
        handles_remove(&t, handles_any(&t) == &c ? 0xffffffff : handles_any(&t) == &b ? hb : hc);
    cr_assert_eq(t.count, 0);
}

Test(handles, handles_wrap_and_skip_used_numbers)
{
    struct handles t = {.next = 0xfffffe};
    int a, b;
    uint32_t h;

    handles_add_at(&t, &a, 1);
    cr_assert_eq(handles_add(&t, &b, &h), 0);
    cr_assert_eq(h, 0xffffff, "the last that clients take");
    cr_assert_eq(handles_add(&t, &b, &h), 0);
    cr_assert_eq(h, 2, "neither 0 nor 1");
    handles_remove(&t, 1);
    handles_remove(&t, 2);
    handles_remove(&t, 0xffffff);
    cr_assert_null(t.hash);
}

/* Handles stay small numbers, however often objects are created and destroyed. */
Test(handles, handles_are_about_as_large_as_the_limit)
{
    struct handles t = {.limit = 4};
    int a[3], b;
    uint32_t h, first, last = 0;

    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(handles_add(&t, &a[i], &h), 0);
    cr_assert_eq(handles_add(&t, &b, &first), 0);
    for (unsigned i = 0; i < 1000; i++) {
        handles_remove(&t, last ? last : first);
        cr_assert_eq(handles_add(&t, &b, &last), 0);
        cr_assert(last > 3 && last <= 4 * HANDLES_SPREAD);
        cr_assert(i >= 4 * HANDLES_SPREAD - 4 || last != first, "it comes back late");
    }
    cr_assert_eq(handles_add(&t, &b, &h), -ENOSPC);
    handles_remove(&t, last);
    for (h = 1; h <= 3; h++)
        handles_remove(&t, h);
    cr_assert_null(t.hash);
}

/* The order, with objects that go and come between two steps. */
Test(handles, a_walk_may_pause)
{
    struct handles t = {0};
    int object[6];

    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(handles_add_at(&t, &object[i], 10 + i), 0);
    handles_walk_begin(&t);
    cr_assert_eq(handles_walk_next(&t), &object[0]);
    handles_remove(&t, 10); /* behind the walk */
    handles_remove(&t, 11); /* the next one */
    handles_remove(&t, 13); /* the last one */
    cr_assert_eq(handles_add_at(&t, &object[4], 11), 0);
    cr_assert_eq(handles_walk_next(&t), &object[2]);
    cr_assert_eq(handles_walk_next(&t), &object[4], "entered during the walk");
    cr_assert_null(handles_walk_next(&t));
    cr_assert_eq(handles_add_at(&t, &object[5], 15), 0);
    cr_assert_null(handles_walk_next(&t), "the walk has ended");
    handles_walk_begin(&t);
    cr_assert_eq(handles_walk_next(&t), &object[2]);
    handles_walk_begin(&t);
    cr_assert_eq(handles_walk_next(&t), &object[2], "the second walk replaces the first");
    while (handles_any(&t))
        handles_remove(&t, handles_any(&t) == &object[2] ? 12 : handles_any(&t) == &object[4] ? 11 : 15);
    cr_assert_null(handles_walk_next(&t));
}
