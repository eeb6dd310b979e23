// SPDX-License-Identifier: BSD-2-Clause
/* The most that the daemon can have follows the limits of the process, and leaves it a reserve. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/device/device.h"
#include "daemon/server/capacity.h"

static void limit_files(rlim_t files)
{
    struct rlimit r;

    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &r), 0);
    if (r.rlim_max < files)
        cr_skip_test("no more than %ju files may be open", (uintmax_t)r.rlim_max);
    r.rlim_cur = files;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &r), 0);
}

Test(capacity, every_kind_has_one)
{
    uint64_t capacity[QUOTA_KINDS] = {0};

    capacity_read(capacity);
    for (enum quota_kind k = 0; k < QUOTA_KINDS; k++)
        cr_expect_gt(capacity[k], 0, "%s", quota_kind_name(k));
    cr_expect_eq(capacity[QUOTA_QPS], DEVICE_MAX_QP);
}

/* The clients get what is left when the daemon has opened its own files, without the reserve. */
Test(capacity, descriptors)
{
    uint64_t before[QUOTA_KINDS], after[QUOTA_KINDS];

    limit_files(4000);
    capacity_read(before);
    cr_expect_lt(before[QUOTA_DESCRIPTORS], 4000 - CAPACITY_REFUSED);
    cr_expect_gt(before[QUOTA_DESCRIPTORS], 3000);
    for (int i = 0; i < 20; i++)
        cr_assert_geq(dup(STDIN_FILENO), 0);
    capacity_read(after);
    cr_expect_eq(after[QUOTA_DESCRIPTORS], before[QUOTA_DESCRIPTORS] - 20);
}

/* Under a limit that is smaller than the reserve, the clients still get half. */
Test(capacity, few_descriptors)
{
    uint64_t capacity[QUOTA_KINDS];

    limit_files(100);
    capacity_read(capacity);
    cr_expect_eq(capacity[QUOTA_DESCRIPTORS], 50);
}
