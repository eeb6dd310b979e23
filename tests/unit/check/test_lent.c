// SPDX-License-Identifier: BSD-2-Clause
/* The quick answer whether a request may need some memory. */
#include "src/check/objects/lent.h"

#include <criterion/criterion.h>

Test(check_lent, memory_is_found_where_it_begins)
{
    const struct ibv_sge list[3] = {{0x10000100, 64, 0}, {0x20000000, 1 << 20, 0}, {0, 100, 0}};

    cr_assert_not(lent_any());
    lent_add(list, 3);
    cr_assert(lent_any());
    cr_assert(lent_may_begin_in(0x10000100, 0x10000140));
    cr_assert(lent_may_begin_in(0x0ffff000, 0x10000101));
    cr_assert(lent_may_begin_in(0x1ffff000, 0x20000001));
    cr_assert_not(lent_may_begin_in(0x10001000, 0x10002000), "the next page");
    cr_assert_not(lent_may_begin_in(0x0ffff000, 0x10000000));
    cr_assert_not(lent_may_begin_in(0x10000100, 0x10000100), "nothing");
    cr_assert(lent_may_begin_in(0x40000000, 0x50000000), "too long to say no");
    lent_remove(list, 3);
    cr_assert_not(lent_any());
    cr_assert_not(lent_may_begin_in(0x10000100, 0x10000140));
    cr_assert_not(lent_may_begin_in(0x40000000, 0x50000000));
}
