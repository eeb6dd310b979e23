// SPDX-License-Identifier: BSD-2-Clause
/* Event pipes, and clients that do not read them as they should. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/session/event_pipe.h"

Test(event_pipe, no_record_is_lost_or_doubled)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    struct event_record r;
    struct event_pipe p;
    unsigned sent = 0, got = 0, skipped = 0;

    cr_assert_eq(event_pipe_init(&p, loop, NULL), 0);
    fcntl(p.pipe.read_fd, F_SETFL, O_NONBLOCK);
    while (p.n < 100) /* fills the kernel's buffer first, then the daemon's */
        cr_assert(event_pipe_push(&p, ++sent, 7));
    cr_assert(event_pipe_push(&p, sent, 7), "it waits already");
    cr_assert_eq(p.n, 100);
    cr_assert_eq(event_pipe_forget(&p, (struct event_record[]){{sent - 5, 7}, {300, 7}, {301, 8}}, 3, 1), 0);
    cr_assert_eq(p.n, 98, "one was waiting, one was in the pipe and has left its place to another");
    for (int i = 0; i < 3; i++) {
        while (read(p.pipe.read_fd, &r, sizeof(r)) == sizeof(r)) {
            got++;
            skipped += got + skipped == 300 || got + skipped == sent - 5;
            cr_assert_eq(r.a, got + skipped);
            cr_assert_eq(r.b, 7);
        }
        ev_run(loop, EVRUN_NOWAIT);
    }
    cr_assert_eq(got, sent - 2);
    event_pipe_fini(&p);
    ev_loop_destroy(loop);
}

static unsigned unread(const struct event_pipe *p)
{
    int bytes = -1;

    cr_assert(ioctl(p->pipe.write_fd, FIONREAD, &bytes) == 0);
    return (unsigned)bytes / sizeof(struct event_record);
}

static const struct event_record gone = {1, 1}, stays = {2, 2};

static void push_both(struct event_pipe *p, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        cr_assert(event_pipe_push(p, gone.a, gone.b));
        cr_assert(event_pipe_push(p, stays.a, stays.b));
    }
}

/* Each of three handles has one record of each event. */
Test(event_pipe, sharers)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    struct event_record r;
    struct event_pipe p;

    cr_assert_eq(event_pipe_init(&p, loop, NULL), 0);
    push_both(&p, 6);
    event_pipe_forget(&p, &gone, 1, 3);
    cr_assert_eq(unread(&p), 10, "one of two events each");
    for (unsigned i = 0; i < 6; i++)
        cr_assert_eq(read(p.pipe.read_fd, &r, sizeof(r)), (ssize_t)sizeof(r));
    event_pipe_forget(&p, &gone, 1, 2);
    cr_assert_eq(unread(&p), 4, "whose the one is nobody knows");
    event_pipe_forget(&p, &gone, 1, 1);
    cr_assert_eq(unread(&p), 3, "the last one takes it");
    event_pipe_fini(&p);
    ev_loop_destroy(loop);
}

/* A client can do anything with its end. The daemon does not wait, and loses only this client's records. */
Test(event_pipe, hostile_reader, .timeout = 20)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    char path[64], some[5];
    struct event_pipe p;
    int fd;

    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(event_pipe_init(&p, loop, NULL), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", p.pipe.read_fd);
    cr_assert(event_pipe_forget(&p, &gone, 1, 1) == 0 && unread(&p) == 0, "an empty pipe");
    push_both(&p, 10);
    cr_assert_eq(read(p.pipe.read_fd, some, sizeof(some)), (ssize_t)sizeof(some), "half a record");
    event_pipe_forget(&p, &gone, 1, 1);
    while (unread(&p) > 0)
        cr_assert_gt(read(p.pipe.read_fd, some, 1), 0);
    fd = open(path, O_WRONLY);
    cr_assert(fd >= 0 && write(fd, some, sizeof(some)) == sizeof(some), "it writes");
    push_both(&p, 10);
    event_pipe_forget(&p, &gone, 1, 1);
    event_pipe_forget(&p, &stays, 1, 1);
    close(fd);
    cr_assert_geq(fcntl(p.pipe.read_fd, F_SETPIPE_SZ, 1 << 20), 1 << 20, "it makes it large");
    while (unread(&p) < 100000)
        cr_assert(event_pipe_push(&p, stays.a, unread(&p)));
    event_pipe_forget(&p, &gone, 1, 1);
    cr_assert_eq(unread(&p), 100000);
    cr_assert_eq(p.n, 0);
    close(event_pipe_take_read_fd(&p));
    event_pipe_forget(&p, &gone, 1, 1);
    cr_assert(event_pipe_push(&p, 3, 3), "it closes it: nobody will read this");
    event_pipe_fini(&p);
    ev_loop_destroy(loop);
}

Test(event_pipe, bounded_and_safe_without_reader)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    struct event_pipe p;
    uint32_t n = 0;

    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(event_pipe_init(&p, loop, NULL), 0);
    while (event_pipe_push(&p, n, n))
        n++;
    cr_assert_eq(p.n, EVENT_PIPE_WAITING_MAX);
    close(event_pipe_take_read_fd(&p));
    ev_run(loop, EVRUN_NOWAIT);
    cr_assert_eq(p.n, EVENT_PIPE_WAITING_MAX, "nobody will read it");
    event_pipe_fini(&p);
    ev_loop_destroy(loop);
}

/* Records that wait are found again when the pipe was drained in between, and after records were removed. */
Test(event_pipe, a_waiting_record_is_not_added_again)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);
    const struct event_record gone_one = {5, 5};
    struct event_record r[512];
    struct event_pipe p;

    cr_assert_eq(event_pipe_init(&p, loop, NULL), 0);
    while (p.n == 0)
        cr_assert(event_pipe_push(&p, 0, 0));
    for (unsigned round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 1000; i++)
            cr_assert(event_pipe_push(&p, i, i));
        cr_assert_eq(p.n, 1000, "round %u: %u wait", round, p.n);
    }
    cr_assert_eq(read(p.pipe.read_fd, r, sizeof(r)), (ssize_t)sizeof(r));
    ev_run(loop, EVRUN_NOWAIT);
    unsigned left = p.n;
    cr_assert(left < 1000 && left > 0, "%u", left);
    for (uint32_t i = 0; i < 1000; i++)
        cr_assert(event_pipe_push(&p, i, i));
    cr_assert_eq(p.n, 1000, "%u wait", p.n);
    event_pipe_forget(&p, &gone_one, 1, 1);
    cr_assert_leq(p.n, 999); /* the pipe has taken some */
    for (uint32_t i = 0; i < 1000; i++)
        cr_assert(event_pipe_push(&p, i, i));
    cr_assert_eq(p.n, 1000);
    event_pipe_fini(&p);
    ev_loop_destroy(loop);
}
