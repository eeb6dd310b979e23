// SPDX-License-Identifier: BSD-2-Clause
/* Events of IDs with and without owner. */
#include <criterion/criterion.h>

#include "daemon/core/cm/event_list.h"

#define SIZE 4

static struct queued_event pool[SIZE];
static struct event_list list;
static struct list_node one, two;

static void setup(void)
{
    event_list_init(&list, pool, SIZE);
    list_init(&one);
    list_init(&two);
}
TestSuite(event_list, .init = setup);

static bool add(struct list_node *id, bool owned, uint8_t type)
{
    struct cm_event ev = {.type = type};
    return event_list_add(&list, id, owned, &ev);
}
static int pop(void)
{
    struct cm_event ev;
    return event_list_pop(&list, &ev) ? ev.type : -1;
}

Test(event_list, order_is_that_of_events)
{
    add(&one, true, 1);
    add(&two, true, 2);
    add(&one, true, 3);
    cr_assert_eq(pop(), 1);
    cr_assert_eq(pop(), 2);
    cr_assert_eq(pop(), 3);
    cr_assert_eq(pop(), -1);
}

Test(event_list, without_owner_they_wait)
{
    add(&one, false, 1);
    add(&two, true, 2);
    add(&one, false, 3);
    cr_assert_eq(pop(), 2);
    cr_assert_eq(pop(), -1);
    event_list_release(&list, &one);
    event_list_release(&list, &one);
    cr_assert_eq(pop(), 1);
    cr_assert_eq(pop(), 3);
    cr_assert_eq(pop(), -1);
}

Test(event_list, dropped_ones_make_room)
{
    struct cm_event ev;
    for (uint8_t i = 0; i < SIZE; i++)
        cr_assert(add(i % 2 ? &one : &two, i < 2, i));
    cr_assert_not(add(&one, true, 9));
    cr_assert(event_list_drop(&list, &one, &ev));
    cr_assert_eq(ev.type, 1);
    cr_assert(event_list_drop(&list, &one, &ev));
    cr_assert_eq(ev.type, 3);
    cr_assert_not(event_list_drop(&list, &one, &ev));
    cr_assert(add(&one, true, 9));
    cr_assert_eq(pop(), 0);
    cr_assert_eq(pop(), 9);
    cr_assert_eq(list.used, 1);
}
