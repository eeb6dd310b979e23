// SPDX-License-Identifier: BSD-2-Clause
/* Tests how a thread judges a crowded machine by the time that it waited for processors (src/verbs/shim/crowd.h). */
#include "src/verbs/shim/crowd.h"

#include <criterion/criterion.h>

#define MS UINT64_C(1000000)

Test(crowd, a_thread_that_waits_for_most_of_its_time_is_in_a_crowd)
{
    struct vb_crowd_look l = {0};

    cr_expect(vb_waited_in_crowd(&l, 40 * MS, 1200 * MS));
}

Test(crowd, a_thread_that_shares_its_processor_with_two_others_is_not)
{
    struct vb_crowd_look l = {0};

    cr_expect_not(vb_waited_in_crowd(&l, 40 * MS, 90 * MS));
}

Test(crowd, only_the_time_since_the_last_judgement_counts)
{
    struct vb_crowd_look l = {0};

    cr_expect(vb_waited_in_crowd(&l, 40 * MS, 1200 * MS));
    cr_expect_not(vb_waited_in_crowd(&l, 45 * MS, 1205 * MS), "the crowd has gone");
    cr_expect(vb_waited_in_crowd(&l, 47 * MS, 1300 * MS), "it is there again");
}

Test(crowd, a_judgement_holds_until_the_thread_has_run)
{
    struct vb_crowd_look l = {0};

    cr_expect_not(vb_waited_in_crowd(&l, 40 * MS, 40 * MS));
    cr_expect_not(vb_waited_in_crowd(&l, 40 * MS + 1000, 44 * MS), "one late wakeup is no crowd");
    cr_expect(vb_waited_in_crowd(&l, 42 * MS, 140 * MS));
    cr_expect(vb_waited_in_crowd(&l, 42 * MS + 1000, 140 * MS), "the next region is registered at once");
}

Test(crowd, a_forked_child_judges_its_own_time)
{
    struct vb_crowd_look l = {0};

    cr_expect(vb_waited_in_crowd(&l, 40 * MS, 1200 * MS));
    cr_expect_not(vb_waited_in_crowd(&l, 2 * MS, 3 * MS));
}
