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

static struct iovec somewhere;

/* Loses a call that slept in this function of the kernel, as the watching thread does. */
static void lose(enum copier_loss loss, const char *waits_in, unsigned limit_ms, unsigned lock_limit_ms)
{
    struct copier *c = &f.device->copier;

    c->now.remote = loss == COPIER_LOST_CALL ? NULL : &somewhere;
    c->now.served = loss == COPIER_LOST_SERVED_COPY;
    c->now.limit_ms = limit_ms;
    c->now.lock_limit_ms = lock_limit_ms;
    copier_may_go_on(c, waits_in, 3600 * NS_PER_S);
    cr_assert(copier_prepare(c));
    copier_replaced(c);
}

/* The line about it. */
static const char *line(enum copier_loss loss, const char *waits_in)
{
    static char text[1024];
    char path[] = "/tmp/test_stuck_memory.XXXXXX";
    struct ucred cred = {.pid = 4711, .uid = 12345};
    int fd = mkstemp(path), err = dup(STDERR_FILENO);

    cr_assert(fd >= 0 && err >= 0);
    unlink(path);
    dup2(fd, STDERR_FILENO);
    lose(loss, waits_in, 3000, 60000);
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
                                        "rwsem_down_read_slowpath", "__gup_longterm_locked"};
    const char *text;

    for (unsigned i = 0; i < sizeof(those) / sizeof(those[0]); i++) {
        text = line(COPIER_LOST_COPY, those[i]);
        cr_expect_not_null(strstr(text, "Another thread held the lock of its mappings for that time"), "%s", text);
        cr_expect_not_null(strstr(text, "within 60000 ms"), "%s", text);
    }
    text = line(COPIER_LOST_CALL, "rwsem_down_read_slowpath");
    cr_expect_not_null(strstr(text, "reads its events into that memory"), "%s", text);
    cr_expect_not_null(strstr(text, "within 3000 ms"), "%s", text);
}

Test(stuck_memory, a_kernel_that_does_not_tell)
{
    const char *text = line(COPIER_LOST_COPY, "");

    cr_expect_not_null(strstr(text, "(the kernel waited in an unknown function)"), "%s", text);
}

Test(stuck_memory, memory_of_a_server)
{
    const char *text = line(COPIER_LOST_SERVED_COPY, "request_wait_answer");

    cr_expect_not_null(strstr(text, "within 50 ms (the kernel waited in request_wait_answer)"), "%s", text);
    cr_expect_not_null(strstr(text, "A file system in user space"), "%s", text);
}

/* A later call that is slow does not change what is said of the one that was lost. */
Test(stuck_memory, the_loss_is_remembered)
{
    const struct copier *c = &f.device->copier;

    lose(COPIER_LOST_COPY, "process_vm_rw_core", 100, 2000);
    copier_may_go_on(&f.device->copier, "folio_wait_bit_common", 0);
    cr_expect_str_eq(c->loss.waits_in, "process_vm_rw_core");
    cr_expect(copier_lost_by_lock(c));
    cr_expect_eq(c->loss.limit_ms, 2000);
    lose(COPIER_LOST_COPY, "folio_wait_bit_common", 100, 2000);
    cr_expect_not(copier_lost_by_lock(c));
    cr_expect_eq(c->loss.limit_ms, 100);
}

/* How long copies of a session of this process may last. */
static void limits(const struct session *s, unsigned limit_ms, unsigned lock_limit_ms)
{
    struct ucred cred = {.pid = 4711, .uid = geteuid()};

    cr_expect_eq(s->client_mem->limit_ms, limit_ms);
    cr_expect_eq(s->client_mem->lock_limit_ms, lock_limit_ms);
    lose(COPIER_LOST_COPY, "folio_wait_bit_common", limit_ms, lock_limit_ms);
    stuck_memory_strike(f.device, &cred, "perf");
    cr_expect_eq(s->client_mem->limit_ms, limit_ms / 2);
    cr_expect_eq(s->client_mem->lock_limit_ms, lock_limit_ms / 2);
}

Test(stuck_memory, a_private_daemon_waits_longer_for_the_lock)
{
    limits(fixture_session(&f), 3000, 60000);
}

/* One program must not keep the others waiting. */
Test(stuck_memory, a_daemon_of_a_group_does_not)
{
    snprintf(f.settings.group, sizeof(f.settings.group), "users");
    limits(fixture_session(&f), 3000, 3000);
}
