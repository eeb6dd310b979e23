// SPDX-License-Identifier: BSD-2-Clause
/* Pages of shared memory that can't be had. A file that is too short stands for memory that the machine does not have,
 * because the tests can't take all memory, and the seals of real segments prevent that they become shorter. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/objects/cq.h"
#include "daemon/session/segment.h"
#include "tests/unit/daemon/daemon_fixture.h"

static void setup(void)
{
    segment_guard_install();
}
TestSuite(segment_guard, .init = setup);

/* The next access to the pages at p raises SIGBUS. */
static void lose(void *p, size_t size)
{
    int fd = memfd_create("short", 0);

    cr_assert_eq(mmap(p, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), p);
    close(fd);
}

Test(segment_guard, a_lost_page_reads_as_zeros)
{
    struct segment s, other;
    atomic_bool lost = false, other_lost = false;
    unsigned before = segment_guard_losses();

    cr_assert_eq(segment_create(&s, NULL, "test", 3 * 4096, NULL), 0);
    cr_assert_eq(segment_create(&other, NULL, "test", 4096, NULL), 0);
    segment_guard(&s, &lost);
    segment_guard(&other, &other_lost);
    memset(s.p, 1, s.size);
    memset(other.p, 2, other.size);
    lose((uint8_t *)s.p + 4096, 4096);
    cr_expect_not(lost);
    cr_expect_eq(((volatile uint8_t *)s.p)[5000], 0);
    cr_expect(lost);
    cr_expect_eq(segment_guard_losses(), before + 1);
    memset(s.p, 3, s.size);
    cr_expect_eq(segment_guard_losses(), before + 1, "all pages were replaced at once");
    cr_expect_not(other_lost);
    cr_expect_eq(((volatile uint8_t *)other.p)[0], 2);
    segment_destroy(&s);
    segment_destroy(&other);
}

Test(segment_guard, other_memory_is_not_guarded, .signal = SIGBUS)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    lose(p, 4096);
    *(volatile char *)p = 1;
}

Test(segment_guard, memory_is_no_longer_guarded_when_it_is_unmapped, .signal = SIGBUS)
{
    struct segment s;
    atomic_bool lost = false;

    cr_assert_eq(segment_create(&s, NULL, "test", 4096, NULL), 0);
    segment_guard(&s, &lost);
    void *p = s.p;
    segment_destroy(&s);
    cr_assert_eq(mmap(p, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), p);
    lose(p, 4096);
    *(volatile char *)p = 1;
}

static struct fixture f;

/* A session with a connection; its other end is *peer. */
static struct session *connected(int *peer)
{
    struct session *s = fixture_session(&f);
    int ends[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    s->sock = ends[0];
    *peer = ends[1];
    return s;
}

static bool is_over(int peer)
{
    char byte;

    return recv(peer, &byte, 1, MSG_DONTWAIT) == 0;
}

/* The page with the doorbells of one session. */
Test(segment_guard, a_session_that_loses_its_page_ends_and_others_go_on)
{
    int hostile_end, end;
    struct fixture_cq cq;
    struct fixture_qp qp; /* with a doorbell, so that the loop looks at the page */

    cr_assert(fixture_start(&f));
    struct session *hostile = connected(&hostile_end), *s = connected(&end);
    cr_assert_eq(fixture_cq(&f, hostile, 4, 0, &cq), 0);
    cr_assert_eq(fixture_qp(&f, hostile, fixture_pd(&f, hostile), cq.rep.handle, 4, &qp), 0);
    lose(hostile->page, sizeof(*hostile->page));
    device_pass(f.device, clock_ns());
    cr_expect(is_over(hostile_end));
    cr_expect_not(is_over(end));
    device_pass(f.device, clock_ns());
    cr_expect_neq(fixture_pd(&f, s), 0);
    hostile->sock = s->sock = -1;
    fixture_end(&f);
}

/* Queues: a completion queue and a queue pair of one session. */
Test(segment_guard, a_session_that_loses_a_queue_ends_and_others_go_on)
{
    static uint8_t memory[4096];
    int hostile_end, end;
    struct fixture_cq cq[2];
    struct fixture_qp a[2], b[2];
    struct session *s[2];
    struct pm_cqe e;

    cr_assert(fixture_start(&f));
    s[0] = connected(&hostile_end);
    s[1] = connected(&end);
    for (unsigned i = 0; i < 2; i++) {
        uint32_t pd = fixture_pd(&f, s[i]);

        uint32_t key = fixture_mr(&f, s[i], pd, memory, sizeof(memory), ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE);
        cr_assert_eq(fixture_cq(&f, s[i], 4, 0, &cq[i]), 0);
        cr_assert_eq(fixture_qp(&f, s[i], pd, cq[i].rep.handle, 4, &a[i]), 0);
        cr_assert_eq(fixture_qp(&f, s[i], pd, cq[i].rep.handle, 4, &b[i]), 0);
        cr_assert_eq(fixture_connect_both(&f, s[i], &a[i], &b[i]), 0);
        fixture_wqe(&a[i], WR_RDMA_WRITE, key, memory, memory + 2048, 64);
        if (i == 0) {
            struct cq *lost = handles_get(&s[0]->cqs, cq[0].rep.handle);
            lose(lost->segment.p, lost->segment.size);
        }
        fixture_post_send(s[i], &a[i]);
    }
    fixture_run(&f);
    cr_expect(is_over(hostile_end));
    cr_expect_not(is_over(end));
    cr_expect(fixture_poll(&cq[1], &e));
    cr_expect_eq(e.status, WC_SUCCESS);
    s[0]->sock = s[1]->sock = -1;
    fixture_end(&f);
}
