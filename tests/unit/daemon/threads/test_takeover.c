// SPDX-License-Identifier: BSD-2-Clause
/* A thread that goes on when a system call does not return (daemon/threads/takeover.h): the calls are reads of pipes that
 * nobody writes to. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/threads/takeover.h"

#define LIMIT_MS 30
#define PAGE 4096

static struct takeover *t;
static int silent[2], answers[2]; /* pipes */
static _Atomic int restricted, entered, prepared, replaced;
static _Atomic bool may, may_last;
static char waits_in[64];
static _Atomic int asked;
static const char *result; /* NULL: the function came to its end */

static long guarded_read(int fd, char *buf, unsigned limit_ms)
{
    return takeover_syscall(t, limit_ms, SYS_read, (long[6]){fd, (long)buf, 1});
}

/* no_new_privs belongs to a thread, and is inherited. */
static void restrict_rights(void *arg)
{
    (void)arg;
    restricted += prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static void enter(void *arg)
{
    (void)arg;
    entered++;
}

static int full[2] = {-1, -1}; /* a pipe, which has room as soon as the owner was asked once */

static bool may_it_last(void *arg, const char *where)
{
    char page[PAGE];

    (void)arg;
    snprintf(waits_in, sizeof(waits_in), "%s", where);
    if (asked++ == 0 && full[0] >= 0)
        return read(full[0], page, sizeof(page)) == sizeof(page);
    return may_last;
}

static _Atomic uint64_t go_on_ns;

static bool may_it_go_on(void *arg, const char *where, uint64_t slept_ns)
{
    (void)arg;
    return (!where[0] || strstr(where, "pipe_read")) && slept_ns < go_on_ns;
}

static bool prepare(void *arg)
{
    (void)arg;
    prepared++;
    return may;
}

static void on_replaced(void *arg)
{
    (void)arg;
    replaced++;
}

static void run_it(void (*run)(void *))
{
    static struct takeover_ops ops = {
        .restrict_rights = restrict_rights,
        .enter = enter,
        .may_last = may_it_last,
        .may_go_on = may_it_go_on,
        .prepare = prepare,
        .replaced = on_replaced,
    };

    if (!takeover_supported())
        cr_skip_test("no code for this processor, or a sanitizer");
    ops.run = run;
    may = may_last = true;
    cr_assert_eq(pipe(silent), 0);
    cr_assert_eq(pipe(answers), 0);
    cr_assert_eq(takeover_start(&t, &ops, NULL, NULL), 0);
    /* If a call is not taken over, the test ends here instead of hanging. */
    alarm(20);
    takeover_join(t);
    alarm(0);
    cr_assert_null(result, "%s", result);
}

static void expect(bool good, const char *what)
{
    if (!good && !result)
        result = what;
}

static void wait_for_lost(unsigned n)
{
    for (int i = 0; i < 5000 && takeover_lost(t) != n; i++)
        poll(NULL, 0, 1);
    expect(takeover_lost(t) == n, "the number of lost threads");
}

static void calls_that_return(void *arg)
{
    char byte = 0;

    (void)arg;
    for (int i = 0; i < 1000; i++) {
        expect(write(answers[1], "x", 1) == 1 && guarded_read(answers[0], &byte, LIMIT_MS) == 1 && byte == 'x',
               "a read");
    }
    expect(guarded_read(-1, &byte, LIMIT_MS) == -EBADF, "the error of a call");
    expect(replaced == 0 && entered == 1, "nothing is taken over");
}

Test(takeover, calls_that_return_have_the_result_of_the_kernel)
{
    run_it(calls_that_return);
}

static void calls_that_are_lost(void *arg)
{
    char byte[8] = "", first = 0;
    long tid[8];
    /* Variables that live in registers or on the stack across the calls. */
    unsigned long sum = 0;

    (void)arg;
    for (unsigned i = 0; i < 5; i++) {
        sum = sum * 31 + i;
        tid[i] = syscall(SYS_gettid);
        expect(guarded_read(silent[0], &byte[i], LIMIT_MS) == -ETIMEDOUT, "a silent pipe");
        expect(syscall(SYS_gettid) != tid[i], "another thread goes on");
        expect(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "it has the restricted rights");
        expect(takeover_lost(t) == i + 1, "each thread is lost until its call returns");
        expect(write(answers[1], "y", 1) == 1 && guarded_read(answers[0], &first, LIMIT_MS) == 1 && first == 'y',
               "calls work afterwards");
    }
    expect(sum == (((0 * 31 + 1) * 31ul + 2) * 31 + 3) * 31 + 4, "the stack stays as it was");
    expect(replaced == 5 && entered == 6, "each takeover is reported");
    expect(restricted == 2, "the rights are restricted once: filters of system calls would add up");
    /* The lost calls return, while the function uses its stack. */
    expect(write(silent[1], "abcde", 5) == 5, "write");
    for (unsigned i = 0; i < 1000; i++)
        expect(write(answers[1], "z", 1) == 1 && guarded_read(answers[0], &first, LIMIT_MS) == 1, "calls go on");
    wait_for_lost(0);
    expect(strlen(byte) == 5, "the kernel finished the lost calls");
}

Test(takeover, another_thread_continues_when_a_call_does_not_return)
{
    run_it(calls_that_are_lost);
}

static void call_that_stays_lost(void *arg)
{
    char byte;

    (void)arg;
    expect(guarded_read(silent[0], &byte, LIMIT_MS) == -ETIMEDOUT, "a silent pipe");
}

Test(takeover, the_end_does_not_wait_for_lost_calls)
{
    run_it(call_that_stays_lost);
}

static void call_after_idle(void *arg)
{
    char byte;

    (void)arg;
    sleep(2); /* longer than the watching thread stays awake without calls */
    expect(guarded_read(silent[0], &byte, LIMIT_MS) == -ETIMEDOUT, "a silent pipe");
}

Test(takeover, a_call_after_an_idle_time_is_watched)
{
    run_it(call_after_idle);
}

static void call_that_may_not_be_taken(void *arg)
{
    char byte = 0;

    (void)arg;
    may = false;
    expect(guarded_read(silent[0], &byte, LIMIT_MS) == 1 && byte == 'q',
           "the call has time if it may not be taken over");
    expect(replaced == 0 && prepared > 1, "the owner is asked again and again");
}

static void *answer_late(void *arg)
{
    while (prepared < 2)
        poll(NULL, 0, 1);
    if (write(silent[1], "q", 1) != 1)
        expect(false, "write");
    return arg;
}

static void with_late_answer(void *arg)
{
    pthread_t thread;

    pthread_create(&thread, NULL, answer_late, NULL);
    call_that_may_not_be_taken(arg);
    pthread_join(thread, NULL);
}

Test(takeover, the_owner_may_refuse)
{
    run_it(with_late_answer);
}

static void calls_in_doubt(void *arg)
{
    char byte;

    (void)arg;
    expect(guarded_read(silent[0], &byte, LIMIT_MS) == -ETIMEDOUT && asked == 0, "the limit comes before the doubt");
    expect(guarded_read(silent[0], &byte, 4 * TAKEOVER_DOUBT_MS) == -ETIMEDOUT && asked == 1,
           "it may last, asked once");
    expect(!waits_in[0] || strstr(waits_in, "pipe_read"), "the kernel's function that waits");
    may_last = false;
    expect(guarded_read(silent[0], &byte, 1000 * TAKEOVER_DOUBT_MS) == -ETIMEDOUT && asked == 2, "it may not last");
}

Test(takeover, the_owner_may_end_a_call_before_its_limit)
{
    run_it(calls_in_doubt);
}

static char *absent; /* a page of a userfaultfd that nobody reads */

/* Waits for room in a pipe, and then for the page. */
static void call_with_two_waits(void *arg)
{
    (void)arg;
    may_last = false;
    long n = takeover_syscall(t, 1000 * TAKEOVER_DOUBT_MS, SYS_write, (long[6]){full[1], (long)absent, PAGE});
    expect(n == -ETIMEDOUT && asked == 2, "asked again in another function");
    expect(strncmp(waits_in, "handle_userfault", 16) == 0, "the function of the second wait");
}

Test(takeover, the_owner_is_asked_for_each_wait)
{
    struct uffdio_api api = {.api = UFFD_API};
    int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    FILE *wchan = fopen("/proc/self/wchan", "r");

    absent = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register r = {.range = {(uintptr_t)absent, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (!wchan || uffd < 0 || ioctl(uffd, UFFDIO_API, &api) != 0 || ioctl(uffd, UFFDIO_REGISTER, &r) != 0)
        cr_skip_test("no userfaultfd that stops the kernel's copies: not root");
    fclose(wchan);
    cr_assert(pipe(full) == 0 && fcntl(full[1], F_SETPIPE_SZ, PAGE) == PAGE);
    cr_assert_eq(write(full[1], (const char[PAGE]){0}, PAGE), PAGE);
    run_it(call_with_two_waits);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void calls_that_go_on(void *arg)
{
    char byte;
    uint64_t begin = now_ns();

    (void)arg;
    go_on_ns = 300000000;
    expect(guarded_read(silent[0], &byte, LIMIT_MS) == -ETIMEDOUT, "it ends");
    expect(now_ns() - begin >= go_on_ns, "not at its limit");
    may_last = false;
    go_on_ns = UINT64_MAX;
    expect(guarded_read(silent[0], &byte, 4 * TAKEOVER_DOUBT_MS) == -ETIMEDOUT, "a call that may not last ends");
    go_on_ns = 0;
    may_last = true;
    expect(guarded_read(silent[0], &byte, 2 * TAKEOVER_DOUBT_MS) == -ETIMEDOUT, "one that may not go on ends");
}

Test(takeover, the_owner_may_let_a_call_go_on)
{
    run_it(calls_that_go_on);
}
