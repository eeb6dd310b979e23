// SPDX-License-Identifier: BSD-2-Clause
/* Doorbells: their slots, the scan, and bits that a faulty client sets. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/session/doorbell.h"

static struct pm_session_page *page;
static struct doorbells bells;
static unsigned calls[3];

static void rang(void *owner, uint64_t now)
{
    cr_expect_eq(now, 77);
    ++*(unsigned *)owner;
}

static void start(void)
{
    page = calloc(1, sizeof(*page));
    doorbells_init(&bells, page);
}

static void finish(void)
{
    doorbells_fini(&bells);
    free(page);
}

TestSuite(doorbell, .init = start, .fini = finish);

/* In the order of pumice/abi.h: first the bit, then the summary. */
static void set(uint32_t number)
{
    atomic_fetch_or(&page->bits[number / 64], UINT64_C(1) << number % 64);
    atomic_fetch_or(&page->summary[number / 64 / 64], UINT64_C(1) << (number / 64 % 64));
}

Test(doorbell, only_the_owners_of_set_bits_are_called)
{
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(doorbells_take(&bells, rang, &calls[i]), i);
    cr_expect_not(doorbells_pending(&bells));
    set(0);
    set(2);
    cr_expect(doorbells_pending(&bells));
    cr_expect_eq(doorbells_scan(&bells, 77), 2);
    cr_expect(calls[0] == 1 && calls[1] == 0 && calls[2] == 1);
    cr_expect_not(doorbells_pending(&bells), "the scan clears them");
    cr_expect_eq(doorbells_scan(&bells, 77), 0);
}

Test(doorbell, a_released_slot_calls_nobody_and_is_reused)
{
    for (unsigned i = 0; i < 3; i++)
        doorbells_take(&bells, rang, &calls[i]);
    doorbells_release(&bells, 1);
    set(1);
    doorbells_scan(&bells, 77);
    cr_expect(calls[0] == 0 && calls[1] == 0 && calls[2] == 0);
    cr_expect_eq(doorbells_take(&bells, rang, &calls[1]), 1);
    doorbells_release(&bells, 2);
    doorbells_release(&bells, 1);
    doorbells_release(&bells, 0);
    for (unsigned i = 0; i < 3; i++)
        cr_expect_lt(doorbells_take(&bells, rang, &calls[i]), 3, "a free slot goes before a new one");
    cr_expect_eq(doorbells_take(&bells, rang, &calls[0]), 3);
}

/* Bits of slots without an owner, within the memory of the slots and beyond it. */
Test(doorbell, bits_without_an_owner_do_nothing)
{
    doorbells_take(&bells, rang, &calls[0]);
    set(1);
    set(63);
    set(64);
    set(PM_DOORBELLS - 1);
    doorbells_scan(&bells, 77);
    cr_expect_eq(calls[0], 0);
    set(0);
    doorbells_scan(&bells, 77);
    cr_expect_eq(calls[0], 1);
}

Test(doorbell, all_slots_can_be_used_and_no_more)
{
    for (unsigned i = 0; i < PM_DOORBELLS; i++)
        cr_assert_eq(doorbells_take(&bells, rang, &calls[0]), (int)i);
    cr_expect_eq(doorbells_take(&bells, rang, &calls[0]), -ENOSPC);
    set(PM_DOORBELLS - 1);
    doorbells_scan(&bells, 77);
    cr_expect_eq(calls[0], 1);
}
