// SPDX-License-Identifier: BSD-2-Clause
/* A device asks its clients for a processor of its own while its messages stay inside (daemon/loop/apart.h). */
#include "daemon/loop/apart.h"

#include <criterion/criterion.h>

static struct apart a;

Test(apart, messages_within_the_device)
{
    cr_expect_not(apart_look(&a, 0, 0, 2, 2), "no message");
    cr_expect(apart_look(&a, 10, 0, 2, 2));
    cr_expect(apart_look(&a, 30, 2, 2, 2), "and few others");
    cr_expect_not(apart_look(&a, 30, 2, 2, 2), "no further one");
}

Test(apart, messages_of_others)
{
    cr_expect_not(apart_look(&a, 0, 10, 2, 2));
    cr_expect_not(apart_look(&a, 10, 20, 2, 2), "as many");
}

Test(apart, more_programs_than_processors)
{
    cr_expect(apart_look(&a, 10, 0, 8, 8));
    cr_expect_not(apart_look(&a, 20, 0, 9, 8));
}
