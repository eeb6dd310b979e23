// SPDX-License-Identifier: BSD-2-Clause
/* The memory of a program did not answer, so its session ends: the line of the log about it, and how long a copy may wait
 * for the lock of the mappings. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/client_mem/copier.h"
#include "daemon/session/stuck_memory.h"
#include "tests/unit/daemon/daemon_fixture.h"

static struct fixture f;

static void begin(void)
{
    cr_assert(fixture_start(&f));
}

static void end(void)
{
    fixture_end(&f);
}

TestSuite(stuck_memory, .init = begin, .fini = end, .timeout = 30);

/* The line about a call that slept in this function of the kernel. */
static const char *line(enum copier_loss loss, const char *waits_in)
{
    static char text[1024];
    char path[] = "/tmp/test_stuck_memory.XXXXXX";
    struct ucred cred = {.pid = 4711, .uid = 12345};
    int fd = mkstemp(path), err = dup(STDERR_FILENO);

    cr_assert(fd >= 0 && err >= 0);
    unlink(path);
    dup2(fd, STDERR_FILENO);
    copier_may_last(&f.device->copier, waits_in);
    f.device->copier.latest_loss = loss;
    stuck_memory_strike(f.device, &cred, "perf");
    dup2(err, STDERR_FILENO);
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = 0;
    close(fd);
    close(err);
    return text;
}

Test(stuck_memory, the_log_says_where_the_kernel_waited)
{
    const char *text = line(COPIER_LOST_COPY, "folio_wait_bit_common");

    cr_expect_not_null(strstr(text, "perf, pid 4711, uid 12345: its memory did not answer within"), "%s", text);
    cr_expect_not_null(strstr(text, "(the kernel waited in folio_wait_bit_common)"), "%s", text);
    cr_expect_not_null(strstr(text, "a slow disk"), "%s", text);
}

Test(stuck_memory, the_lock_of_the_mappings)
{
    static const char *const those[] = {"process_vm_rw_core.constprop.0", "__access_remote_vm",
                                        "rwsem_down_read_slowpath"};
    const char *text;

    for (unsigned i = 0; i < 3; i++) {
        text = line(COPIER_LOST_COPY, those[i]);
        cr_expect_not_null(strstr(text, "The lock of its mappings was held for so long"), "%s", text);
    }
    text = line(COPIER_LOST_CALL, "rwsem_down_read_slowpath");
    cr_expect_not_null(strstr(text, "reads its events into that memory"), "%s", text);
}

Test(stuck_memory, a_kernel_that_does_not_tell)
{
    const char *text = line(COPIER_LOST_COPY, "");

    cr_expect_not_null(strstr(text, "(the kernel waited in an unknown function)"), "%s", text);
}

/* Of a daemon that a group uses, one program must not keep the others waiting. */
Test(stuck_memory, only_a_private_daemon_waits_longer_for_the_lock)
{
    cr_assert_eq(f.device->settings->memory_timeout_ms, 3000);
    cr_expect_not_null(strstr(line(COPIER_LOST_COPY, "process_vm_rw_core"), "within 60000 ms"));
    snprintf(f.settings.group, sizeof(f.settings.group), "users");
    cr_expect_not_null(strstr(line(COPIER_LOST_COPY, "process_vm_rw_core"), "within 1500 ms"), "its second time");
}
