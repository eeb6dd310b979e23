// SPDX-License-Identifier: BSD-2-Clause
/* The pipe of a channel: bytes, readers, and a reader that holds its lock for ever. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/cm/host/cm_pipe.h"
#include "daemon/threads/takeover.h"
#include "tests/unit/skip.h"

static int unread(int fd)
{
    int n = -1;

    ioctl(fd, FIONREAD, &n);
    return n;
}

Test(cm_pipe, bytes_can_be_taken_back)
{
    struct cm_pipe p;
    int fd;

    signal(SIGPIPE, SIG_IGN); /* as in pumiced */
    cr_assert_eq(cm_pipe_init(&p, NULL, 1000, 0, &fd), 0);
    for (unsigned i = 0; i < 5; i++)
        cr_expect(cm_pipe_put(&p));
    cm_pipe_take_back(&p, 2);
    cr_expect_eq(unread(fd), 3);
    cm_pipe_take_back(&p, 10);
    cr_expect_eq(unread(fd), 0);
    cr_expect(cm_pipe_has_reader(&p));
    close(fd);
    cr_expect_not(cm_pipe_has_reader(&p), "taking back left no reader behind");
    cr_expect_not(cm_pipe_put(&p));
    cm_pipe_fini(&p);
}

Test(cm_pipe, a_full_pipe_takes_no_more)
{
    struct cm_pipe p;
    unsigned n = 0;
    int fd;

    cr_assert_eq(cm_pipe_init(&p, NULL, 1000, 0, &fd), 0);
    fcntl(fd, F_SETPIPE_SZ, 4096);
    while (cm_pipe_put(&p))
        n++;
    cr_expect_eq(n, 4096);
    cr_expect_not(p.stuck);
    close(fd);
    cm_pipe_fini(&p);
}

/* --- a reader that holds the lock of the pipe --------------------------------------------------- */

static struct cm_pipe stuck;
static struct takeover *thread;
static bool was_stuck;

/* Runs on the stack of the takeover. */
static void use_pipe(void *arg)
{
    (void)arg;
    stuck.thread = thread;
    cm_pipe_put(&stuck);
    was_stuck = stuck.stuck;
}

static void enter(void *arg)
{
    (void)arg;
}

static bool prepare(void *arg)
{
    (void)arg;
    return true;
}

static void *read_into_nothing(void *arg)
{
    int *fd = arg;
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register reg = {.range = {(unsigned long)page, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};

    if (ioctl(uffd, UFFDIO_API, &api) == 0 && ioctl(uffd, UFFDIO_REGISTER, &reg) == 0)
        (void)!read(*fd, page, 1);
    return NULL;
}

Test(cm_pipe, a_reader_whose_memory_never_answers)
{
    static const struct takeover_ops ops = {.run = use_pipe, .enter = enter, .prepare = prepare, .replaced = enter};
    int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), fd;
    pthread_t reader;

    if (uffd < 0 || !takeover_supported())
        SKIP_TEST("cm_pipe", "no userfaultfd for this user, or no takeover here");
    cr_assert_eq(cm_pipe_init(&stuck, NULL, 30, 0, &fd), 0);
    cr_assert(cm_pipe_put(&stuck));
    cr_assert_eq(pthread_create(&reader, NULL, read_into_nothing, &fd), 0);
    usleep(200000); /* until it holds the lock */
    cr_assert_eq(takeover_start(&thread, &ops, NULL, NULL), 0);
    takeover_join(thread);
    cr_expect(was_stuck);
}
