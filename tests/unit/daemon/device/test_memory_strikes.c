// SPDX-License-Identifier: BSD-2-Clause
/* The time that copies of client memory may take, for each user (daemon/device/memory_strikes.h). */
#include <criterion/criterion.h>

#include "daemon/base/clock.h"
#include "daemon/device/memory_strikes.h"

#define NOW (100 * NS_PER_S)

static struct memory_strikes m;

Test(memory_strikes, each_one_halves_the_time_of_its_user)
{
    cr_assert_eq(memory_strikes_limit(&m, 7, 1000, NOW), 1000);
    memory_strikes_add(&m, 7, NOW);
    cr_assert_eq(memory_strikes_limit(&m, 7, 1000, NOW), 500);
    memory_strikes_add(&m, 7, NOW);
    cr_assert_eq(memory_strikes_limit(&m, 7, 1000, NOW), 250);
    cr_assert_eq(memory_strikes_limit(&m, 8, 1000, NOW), 1000, "another user");
    for (int i = 0; i < 100; i++)
        memory_strikes_add(&m, 7, NOW);
    cr_assert_eq(memory_strikes_limit(&m, 7, 1000, NOW), MEMORY_LIMIT_MIN_MS);
}

Test(memory_strikes, are_forgotten_after_ten_minutes)
{
    memory_strikes_add(&m, 7, NOW);
    memory_strikes_add(&m, 7, NOW + 300 * NS_PER_S);
    cr_assert_eq(memory_strikes_limit(&m, 7, 1000, NOW + 899 * NS_PER_S), 250);
    cr_assert_eq(memory_strikes_limit(&m, 7, 1000, NOW + 901 * NS_PER_S), 1000);
    memory_strikes_add(&m, 7, NOW + 901 * NS_PER_S);
    cr_assert_eq(memory_strikes_limit(&m, 7, 1000, NOW + 901 * NS_PER_S), 500, "it begins again");
}

Test(memory_strikes, a_user_with_many_waits)
{
    for (unsigned i = 1; i < MEMORY_STRIKES_MAX; i++)
        memory_strikes_add(&m, 7, NOW);
    cr_assert_eq(memory_strikes_wait(&m, 7, NOW), 0);
    memory_strikes_add(&m, 7, NOW);
    cr_assert_eq(memory_strikes_wait(&m, 7, NOW), 600);
    cr_assert_eq(memory_strikes_wait(&m, 8, NOW), 0, "another user");
    cr_assert_eq(memory_strikes_wait(&m, 7, NOW + 600 * NS_PER_S - 1), 1);
    cr_assert_eq(memory_strikes_wait(&m, 7, NOW + 600 * NS_PER_S), 0);
}

Test(memory_strikes, of_the_user_whose_last_one_is_oldest_make_room)
{
    for (uid_t uid = 0; uid < MEMORY_STRIKES_USERS; uid++)
        memory_strikes_add(&m, uid, NOW + uid);
    memory_strikes_add(&m, 0, NOW + 100);
    memory_strikes_add(&m, 1000, NOW + 101);
    cr_assert_eq(memory_strikes_limit(&m, 0, 1000, NOW + 101), 250);
    cr_assert_eq(memory_strikes_limit(&m, 1, 1000, NOW + 101), 1000, "the oldest");
    cr_assert_eq(memory_strikes_limit(&m, 1000, 1000, NOW + 101), 500);
}
