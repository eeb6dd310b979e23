// SPDX-License-Identifier: BSD-2-Clause
/* How the reordering window of a destination grows, follows and ends. */
#include <criterion/criterion.h>

#include "daemon/core/path/reordering.h"

#define US 1000u
#define RTT (100 * US)

static struct reordering r;
static uint64_t now;

static void setup(void)
{
    r = (struct reordering){0};
    now = 1000 * US;
}
TestSuite(reordering, .init = setup);

/* Packets came twice, in so many round trips. */
static void twice(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        now += RTT;
        reordering_unneeded(&r, RTT, now);
    }
}

static uint64_t window(void)
{
    return reordering_window(&r, RTT);
}

Test(reordering, a_path_that_keeps_the_order_has_no_window)
{
    for (unsigned i = 0; i < 100; i++)
        reordering_loss(&r);
    reordering_late(&r, 30 * US);
    cr_expect_eq(window(), 0);
}

Test(reordering, the_window_grows_once_in_a_round_trip)
{
    twice(1);
    cr_expect_eq(window(), RTT / 4);
    reordering_unneeded(&r, RTT, now + RTT / 2);
    cr_expect_eq(window(), RTT / 4);
    twice(2);
    cr_expect_eq(window(), 3 * RTT / 4);
}

Test(reordering, the_window_is_at_most_a_round_trip)
{
    twice(10);
    cr_expect_eq(window(), RTT);
    cr_expect_eq(reordering_window(&r, RTT / 3), RTT / 3, "the present round trip counts");
}

Test(reordering, the_window_follows_the_packets_that_are_late)
{
    twice(1);
    reordering_late(&r, 40 * US);
    cr_expect_eq(window(), 50 * US, "longer at once");
    for (unsigned i = 0; i < 1000; i++)
        reordering_late(&r, 8 * US);
    cr_expect(window() < 11 * US && window() >= 10 * US, "shorter slowly: %lu", (unsigned long)window());
}

Test(reordering, losses_without_late_packets_end_it)
{
    twice(2);
    for (unsigned i = 0; i < 100; i++) {
        reordering_loss(&r);
        if (i % 10 == 0)
            reordering_late(&r, 10 * US);
    }
    cr_expect_gt(window(), 0);
    for (unsigned i = 0; i < 16; i++)
        reordering_loss(&r);
    cr_expect_eq(window(), 0);
    twice(1);
    cr_expect_eq(window(), RTT / 4);
}

Test(reordering, a_round_trip_in_vain_ends_it_for_a_while)
{
    twice(4);
    cr_expect_eq(window(), RTT);
    twice(15);
    cr_expect_eq(window(), RTT);
    reordering_late(&r, 90 * US);
    twice(1);
    cr_expect_eq(window(), RTT, "some packets came within it");
    twice(1);
    cr_expect_eq(window(), 0);
    twice(1000);
    cr_expect_eq(window(), 0);
    twice(25);
    cr_expect_gt(window(), 0);
}

Test(reordering, no_room_ends_it_for_a_while)
{
    reordering_no_room(&r, RTT, now);
    twice(1);
    cr_expect_eq(window(), RTT / 4, "without a window, there is nothing to end");
    reordering_no_room(&r, RTT, now);
    cr_expect_eq(window(), 0);
    twice(1000);
    cr_expect_eq(window(), 0);
    twice(25);
    cr_expect_gt(window(), 0);
}
