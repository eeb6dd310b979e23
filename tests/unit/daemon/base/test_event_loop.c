// SPDX-License-Identifier: BSD-2-Clause
/* Event loops without memory, and watchers that the kernel refuses. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/event_loop.h"
#include "tests/unit/skip.h"

static unsigned calls;

static void on_readable(struct ev_loop *loop, ev_io *w, int revents)
{
    (void)loop;
    (void)w;
    (void)revents;
    calls++;
}

/* Bytes that the process has mapped. */
static rlim_t mapped(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    cr_assert(f && fscanf(f, "%lu", &pages) == 1);
    fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* Takes all memory that malloc can give in blocks of 4 KiB and more. The blocks stay allocated. */
static void exhaust_memory(struct rlimit *was)
{
    cr_assert(getrlimit(RLIMIT_AS, was) == 0);
    cr_assert(setrlimit(RLIMIT_AS, &(struct rlimit){mapped() + (1 << 20), was->rlim_max}) == 0);
    for (size_t size = 1 << 20; size >= 4096; size /= 2) {
        while (malloc(size)) {
        }
    }
}

static void watch(struct ev_loop *loop, ev_io *w, int from, int fd)
{
    ev_io_stop(loop, w);
    cr_assert(dup2(from, fd) == fd);
    ev_io_set(w, fd, EV_READ);
    ev_io_start(loop, w);
    ev_run(loop, EVRUN_NOWAIT);
}

/* For a descriptor with a high number, libev needs an array of many kilobytes. */
Test(event_loop, without_memory_a_loop_takes_the_reserve)
{
    struct rlimit files, memory;
    int ends[2];
    ev_io w;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SKIP_TEST("event_loop", "a sanitizer needs all the address space");
#endif
    cr_assert(getrlimit(RLIMIT_NOFILE, &files) == 0);
    if (files.rlim_max < 4096)
        SKIP_TEST("event_loop", "this process may not have 4,096 descriptors");
    files.rlim_cur = 4096;
    cr_assert(setrlimit(RLIMIT_NOFILE, &files) == 0);
    event_loop_guard();
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    cr_assert(loop && pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
    ev_io_init(&w, on_readable, ends[0], EV_READ);
    exhaust_memory(&memory);
    watch(loop, &w, ends[0], 1000); /* from malloc's memory to the reserve */
    watch(loop, &w, ends[0], 3000); /* within the reserve */
    cr_assert_eq(calls, 2);
    cr_assert(setrlimit(RLIMIT_AS, &memory) == 0);
    watch(loop, &w, ends[0], 4090); /* back */
    cr_assert_eq(calls, 3);
    ev_loop_destroy(loop);
}

static void on_refused(struct ev_loop *loop, ev_io *w, int revents)
{
    calls += event_loop_rewatch(loop, w, revents) ? 100 : 1;
}

/* libev reports a refused watcher by EV_ERROR. */
Test(event_loop, a_refused_watcher_is_started_again)
{
    int ends[2];
    ev_io w;

    event_loop_guard();
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    cr_assert(loop && pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
    ev_io_init(&w, on_refused, ends[0], EV_READ);
    ev_io_start(loop, &w);
    ev_invoke(loop, &w, EV_ERROR | EV_READ); /* as libev does it */
    cr_assert_eq(calls, 100);
    cr_assert(ev_is_active(&w));
    ev_run(loop, EVRUN_NOWAIT);
    cr_assert_eq(calls, 101);
    ev_io_stop(loop, &w);
    ev_loop_destroy(loop);
}

/* libev calls this one. */
static bool refuses;

int epoll_ctl(int ep, int op, int fd, struct epoll_event *e)
{
    if (refuses && op != EPOLL_CTL_DEL) {
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, ep, op, fd, e);
}

static bool refused;

static void on_bad(struct ev_loop *loop, ev_io *w, int revents)
{
    (void)loop;
    (void)w;
    refused = revents & EV_ERROR;
}

/* libev tells it after the wait, and nothing else ends this one. */
Test(event_loop, a_refusal_is_reported_soon, .timeout = 20)
{
    struct wait_limit limit;
    int ends[2];
    ev_io w;

    event_loop_guard();
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    cr_assert(loop);
    wait_limit_start(&limit, loop);
    cr_assert(pipe(ends) == 0);
    ev_io_init(&w, on_bad, ends[0], EV_READ);
    ev_io_start(loop, &w);
    refuses = true;
    for (unsigned i = 0; i < 3 && !refused; i++)
        ev_run(loop, EVRUN_ONCE);
    cr_expect(refused);
    wait_limit_stop(&limit, loop);
    ev_loop_destroy(loop);
}

Test(event_loop, only_a_wait_after_work_has_a_limit, .timeout = 20)
{
    struct wait_limit limit;
    int ends[2];
    ev_io w;

    event_loop_guard();
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV | EVBACKEND_EPOLL);
    cr_assert(loop && pipe(ends) == 0);
    wait_limit_start(&limit, loop);
    ev_io_init(&w, on_readable, ends[0], EV_READ);
    ev_io_start(loop, &w);
    ev_run(loop, EVRUN_ONCE);
    cr_expect(limit.idle, "the limit has ended the wait");
    ev_run(loop, EVRUN_NOWAIT);
    cr_expect(!ev_is_active(&limit.timer), "this turn has no limit");
    cr_assert(write(ends[1], "x", 1) == 1);
    ev_run(loop, EVRUN_ONCE);
    cr_expect_not(limit.idle);
    ev_run(loop, EVRUN_NOWAIT);
    cr_expect(ev_is_active(&limit.timer));
    limit.idle = true;
    wait_limit_worked(&limit);
    cr_expect_not(limit.idle);
    ev_io_stop(loop, &w);
    wait_limit_stop(&limit, loop);
    ev_loop_destroy(loop);
}
