// SPDX-License-Identifier: BSD-2-Clause
/* Copies that may never return (daemon/client_mem/copier.h): a lost copy that is finished later touches nothing. The
 * memory that does not answer is a range of the test itself, with a userfaultfd, which needs root. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/client_mem/copier.h"
#include "daemon/threads/takeover.h"

#define PAGE 4096u

static struct copier c;
static struct takeover *thread;
static char *buffer; /* of the copier */
static char *memory; /* two pages, of which the second does not answer */
static int uffd;
static bool writes;
static unsigned limit_ms = 40;
static enum copier_loss loss; /* of the lost copy */
static int maps_fd = -1;

static struct copier_target own(void)
{
    return (struct copier_target){.fd = -1, .pid = getpid(), .maps_fd = maps_fd, .limit_ms = limit_ms};
}

static void make_memory(void)
{
    struct uffdio_api api = {.api = UFFD_API};

    memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 'm', PAGE);
    uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_register r = {.range = {(uintptr_t)memory + PAGE, PAGE}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) != 0 || ioctl(uffd, UFFDIO_REGISTER, &r) != 0)
        cr_skip_test("no userfaultfd that stops the kernel's copies: not root");
}

/* The page is there at last: full of s. */
static void answer(void)
{
    static char page[PAGE];
    struct uffdio_copy copy = {.dst = (uintptr_t)memory + PAGE, .src = (uintptr_t)page, .len = PAGE};

    memset(page, 's', sizeof(page));
    cr_assert_eq(ioctl(uffd, UFFDIO_COPY, &copy), 0);
    for (int i = 0; i < 5000 && takeover_lost(thread); i++)
        poll(NULL, 0, 1);
    cr_assert_eq(takeover_lost(thread), 0, "the lost copy has ended");
}

static bool only(const char *p, char byte, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (p[i] != byte)
            return false;
    }
    return true;
}

static int64_t copy(char *local, size_t len, char *remote)
{
    struct copier_target to = own();
    struct iovec l = {local, len}, r = {remote, len};

    return writes ? copier_write(&c, &to, &l, 1, &r, 1) : copier_read(&c, &to, &l, 1, &r, 1);
}

static void lose_a_copy(void *arg)
{
    char other[100];

    (void)arg;
    c.thread = thread;
    memset(buffer, 'b', 3 * PAGE);
    cr_assert_eq(copy(buffer + 100, PAGE, memory + PAGE), -ETIMEDOUT);
    loss = c.loss.what;
    /* The buffer now has the packets of others. */
    memset(buffer, 'x', 3 * PAGE);
    answer();
    cr_assert(only(buffer, 'x', 3 * PAGE), "the lost copy wrote to the buffers");
    cr_assert(only(memory + PAGE, 's', PAGE), "the lost copy showed the buffers");
    /* Copies go on, in the buffers and elsewhere. */
    memset(other, 'o', sizeof(other));
    cr_assert_eq(copy(buffer + 5, 100, memory), 100);
    cr_assert_eq(copy(other, sizeof(other), memory + 200), 100);
    cr_assert(writes ? only(memory, 'x', 100) && only(memory + 200, 'o', 100) && only(memory + 300, 'm', 100)
                     : only(buffer + 5, 'm', 100) && only(other, 'm', sizeof(other)));
}

static void enter(void *arg)
{
    (void)arg;
}

static bool prepare(void *arg)
{
    (void)arg;
    return copier_prepare(&c);
}

static void replaced(void *arg)
{
    (void)arg;
    copier_replaced(&c);
}

static bool may_last(void *arg, const char *waits_in)
{
    (void)arg;
    return copier_may_last(&c, waits_in);
}

static void run_it(void (*run)(void *))
{
    static struct takeover_ops ops = {.enter = enter, .may_last = may_last, .prepare = prepare, .replaced = replaced};

    if (!takeover_supported())
        cr_skip_test("no code for this processor, or a sanitizer");
    ops.run = run;
    cr_assert_eq(copier_init(&c, 4 * PAGE), 0);
    buffer = copier_alloc(&c, 3 * PAGE);
    cr_assert(buffer && copier_alloc(&c, PAGE) && !copier_alloc(&c, 1));
    cr_assert_eq(takeover_start(&thread, &ops, NULL, NULL), 0);
    alarm(20);
    takeover_join(thread);
    alarm(0);
    copier_fini(&c);
}

Test(copier, a_lost_read_that_is_finished_later_changes_no_buffer)
{
    make_memory();
    run_it(lose_a_copy);
}

Test(copier, a_lost_write_that_is_finished_later_shows_no_buffer)
{
    make_memory();
    writes = true;
    run_it(lose_a_copy);
}

/* The mappings of the process do not show the userfaultfd. */
Test(copier, a_page_of_a_userfaultfd_is_not_waited_for_until_the_limit)
{
    make_memory();
    limit_ms = 3600000;
    maps_fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    run_it(lose_a_copy);
    cr_expect_eq(loss, COPIER_LOST_SERVED_COPY);
}

/* Longer than the detour, and not in the buffers. */
static void much_elsewhere(void *arg)
{
    static char big[2 * COPIER_DETOUR_BYTES], elsewhere[2 * COPIER_DETOUR_BYTES];
    struct copier_target to = own();
    struct iovec l[2] = {{big, 1000}, {big + 1000, sizeof(big) - 1000}}, r = {elsewhere, sizeof(elsewhere)};

    (void)arg;
    c.thread = thread;
    memset(big, 'b', sizeof(big));
    cr_assert_eq(copier_write(&c, &to, l, 2, &r, 1), COPIER_DETOUR_BYTES, "the detour has no room for more");
    cr_assert(only(elsewhere, 'b', COPIER_DETOUR_BYTES) && elsewhere[COPIER_DETOUR_BYTES] == 0);
    memset(big, 0, sizeof(big));
    cr_assert_eq(copier_read(&c, &to, l, 2, &r, 1), COPIER_DETOUR_BYTES);
    cr_assert(only(big, 'b', COPIER_DETOUR_BYTES) && big[COPIER_DETOUR_BYTES] == 0);
}

Test(copier, memory_outside_of_the_buffers_takes_a_detour)
{
    run_it(much_elsewhere);
}

/* A copy that waits for the lock of the mappings has more time than one that waits for a page, if its target has. */
Test(copier, a_wait_for_the_lock_may_go_on)
{
    struct iovec remote = {NULL, 0};
    struct copier k = {.now = {.remote = &remote, .n = 1, .lock_limit_ms = 100}};

    cr_expect(copier_may_go_on(&k, "process_vm_rw_core.constprop.0", 99 * NS_PER_MS));
    cr_expect(copier_may_go_on(&k, "__access_remote_vm", 99 * NS_PER_MS));
    cr_expect_not(copier_may_go_on(&k, "process_vm_rw_core.constprop.0", 100 * NS_PER_MS));
    cr_expect_not(copier_may_go_on(&k, "folio_wait_bit_common", 99 * NS_PER_MS));
    cr_expect_not(copier_may_go_on(&k, "handle_userfault", 99 * NS_PER_MS));
    cr_expect_not(copier_may_go_on(&k, "", 99 * NS_PER_MS));
    k.now.lock_limit_ms = 0;
    cr_expect_not(copier_may_go_on(&k, "process_vm_rw_core", 0), "a limit of zero");
    k.now.lock_limit_ms = 100;
    k.now.remote = NULL;
    cr_expect_not(copier_may_go_on(&k, "process_vm_rw_core", 0), "no copy");
}

/* It waits for no page, and to read the mappings would need the same lock. */
Test(copier, a_copy_that_waits_for_the_lock_is_not_served)
{
    struct iovec remote = {NULL, 0};
    struct copier k = {.now = {.remote = &remote, .n = 1, .maps_fd = -1}};

    cr_expect(copier_may_last(&k, "process_vm_rw_core.constprop.0"));
    cr_expect_not(copier_may_last(&k, "folio_wait_bit_common"), "no mappings to look at");
}

/* The target's limit for the lock comes to the question of the watching thread. */
static void ask_during_a_copy(void *arg)
{
    struct copier_target to = own();
    struct iovec l = {buffer, 1}, r = {memory, 1};

    (void)arg;
    c.thread = thread;
    to.lock_limit_ms = 500;
    cr_assert_eq(copier_read(&c, &to, &l, 1, &r, 1), 1);
    cr_assert(copier_may_go_on(&c, "process_vm_rw_core", 499 * NS_PER_MS));
    cr_assert_not(copier_may_go_on(&c, "process_vm_rw_core", 500 * NS_PER_MS));
}

Test(copier, a_target_has_a_limit_for_the_lock)
{
    memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    run_it(ask_during_a_copy);
}
