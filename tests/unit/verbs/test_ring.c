// SPDX-License-Identifier: BSD-2-Clause
/* The client's side of the rings (src/verbs/base/ring.h), with threads that act as the daemon in the way that
 * pumice/abi.h describes. It finds most under ThreadSanitizer. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "src/verbs/base/ring.h"
#include "tests/unit/core/plain.h"

#define SLOTS 8u
#define MASK (SLOTS - 1)
#define LOST_MS 5000 /* a wake-up that takes longer counts as lost */

static struct pm_cq_page cq;
static struct pm_cqe entries[SLOTS];

/* Stores one completion as the daemon does: the entry first, seq last. */
static void complete(uint32_t i, uint32_t qpn, uint64_t wr_id)
{
    struct pm_cqe *e = &entries[i & MASK];
    e->wr_id = wr_id;
    e->qpn = qpn;
    memset(e->data, (int)(i & 0xff), sizeof(e->data));
    __atomic_store_n(&e->seq, i + 1, __ATOMIC_RELEASE);
}

/* Sets up a ring whose next index is `first`. Its slots hold earlier entries. */
static void start_at(uint32_t first)
{
    memset(entries, 0, sizeof(entries));
    for (uint32_t i = first - SLOTS; i != first; i++)
        entries[i & MASK].seq = i + 1;
    atomic_store(&cq.consumer, first);
    atomic_store(&cq.arm, PM_ARM_NONE);
}

/* --- completions ------------------------------------------------------------------------------- */

#define NUM 100000u
#define FIRST (0u - NUM / 2) /* so that the indexes wrap during the test */

static void *producer(void *arg)
{
    (void)arg;
    for (uint32_t i = FIRST; i != FIRST + NUM; i++) {
        while (i - atomic_load_explicit(&cq.consumer, memory_order_acquire) >= SLOTS)
            sched_yield();
        complete(i, 1, i);
    }
    return NULL;
}

Test(ring, completions_come_whole_and_in_order)
{
    pthread_t t;
    start_at(FIRST);
    cr_assert_null(ring_cqe(entries, MASK, FIRST));
    pthread_create(&t, NULL, producer, NULL);
    for (uint32_t i = FIRST; i != FIRST + NUM; i++) {
        struct pm_cqe *e;
        while (!(e = ring_cqe(entries, MASK, i)))
            sched_yield();
        cr_assert_eq(e->wr_id, i);
        cr_assert_eq(e->data[0], (uint8_t)i);
        cr_assert_eq(e->data[63], (uint8_t)i);
        ring_consume(&cq, i + 1);
    }
    pthread_join(t, NULL);
    cr_assert_null(ring_cqe(entries, MASK, FIRST + NUM));
}

Test(ring, an_overrun_is_skipped)
{
    start_at(3);
    for (uint32_t i = 3; i < 3 + SLOTS + 2; i++)
        complete(i, 1, i);
    cr_assert_null(ring_cqe(entries, MASK, 3));
    uint32_t on = ring_overrun(entries, MASK, 3);
    cr_assert_eq(on, 3 + SLOTS);
    cr_assert_eq(ring_cqe(entries, MASK, on)->wr_id, 3 + SLOTS);
    cr_assert_eq(ring_overrun(entries, MASK, 3 + SLOTS + 2), 3 + SLOTS + 2, "an entry that is not there yet");
    memset(entries, 0, sizeof(entries));
    cr_assert_eq(ring_overrun(entries, MASK, 0), 0, "a new segment");
}

/* Compares with a plain list, for random contents and positions. */
Test(ring, purge_removes_one_qp_and_keeps_the_rest_in_order)
{
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        uint32_t first = (uint32_t)rand_r(&seed) * 2u + (uint32_t)(rand_r(&seed) & 1);
        uint32_t live = (uint32_t)rand_r(&seed) % (SLOTS + 1);
        uint64_t kept[SLOTS];
        uint32_t num = 0;
        if (round % 3 == 0)
            first = 0u - live / 2; /* across the wrap */
        start_at(first);
        for (uint32_t k = 0; k < live; k++) {
            uint32_t qpn = (uint32_t)rand_r(&seed) % 3;
            complete(first + k, qpn, k + 100);
            if (qpn != 1)
                kept[num++] = k + 100;
        }
        uint32_t now = ring_purge(entries, MASK, first, &(struct ring_match){.qpn = 1});
        cr_assert_eq(now, first + live - num);
        for (uint32_t k = 0; k < num; k++) {
            struct pm_cqe *e = ring_cqe(entries, MASK, now + k);
            cr_assert(e && e->wr_id == kept[k] && e->qpn != 1);
            cr_assert_eq(e->data[5], (uint8_t)(first + (uint32_t)(kept[k] - 100)), "inline data moved along");
        }
        cr_assert_null(ring_cqe(entries, MASK, now + num));
    }
}

/* --- events ------------------------------------------------------------------------------------ */

#define EVENTS 20000u
static int event_pipe[2];

static void *notifier(void *arg)
{
    (void)arg;
    for (uint32_t i = 0; i < EVENTS; i++) {
        while (i - atomic_load_explicit(&cq.consumer, memory_order_acquire) >= SLOTS)
            sched_yield();
        complete(i, 1, i);
        atomic_thread_fence(memory_order_seq_cst);
        if (atomic_load(&cq.arm) != PM_ARM_NONE && atomic_exchange(&cq.arm, PM_ARM_NONE) != PM_ARM_NONE)
            cr_assert_eq(write(event_pipe[1], "e", 1), 1);
    }
    return NULL;
}

Test(ring, no_event_is_lost)
{
    pthread_t t;
    uint32_t i = 0;
    start_at(0);
    memset(entries, 0, sizeof(entries));
    cr_assert_eq(pipe(event_pipe), 0);
    pthread_create(&t, NULL, notifier, NULL);
    while (i < EVENTS) {
        char c;
        ring_request_notify(&cq, false);
        if (!ring_cqe(entries, MASK, i)) { /* the last look after arming */
            struct pollfd p = {.fd = event_pipe[0], .events = POLLIN};
            cr_assert_eq(poll(&p, 1, LOST_MS), 1, "no event for completion %u", i);
            cr_assert_eq(read(event_pipe[0], &c, 1), 1);
        }
        while (ring_cqe(entries, MASK, i))
            ring_consume(&cq, ++i);
    }
    pthread_join(t, NULL);
}

Test(ring, a_request_for_an_event_is_not_weakened)
{
    start_at(0);
    ring_request_notify(&cq, true);
    cr_assert_eq(atomic_load(&cq.arm), PM_ARM_SOLICITED);
    ring_request_notify(&cq, false);
    ring_request_notify(&cq, true);
    cr_assert_eq(atomic_load(&cq.arm), PM_ARM_ANY);
}

/* --- posting and doorbells --------------------------------------------------------------------- */

#define POSTERS 3
static struct pm_session_page page;
static struct pm_qp_page qp[POSTERS];
static uint64_t requests[POSTERS][SLOTS];
static const uint32_t doorbell[POSTERS] = {0, 63, 64 * 64 + 65}; /* of one word, and of another summary word */
static _Atomic uint32_t taken[POSTERS];
static int wake;
static uint32_t posts, depth; /* requests of each poster, and how many of them may be outstanding */

static void *poster(void *arg)
{
    uint32_t me = (uint32_t)(uintptr_t)arg;
    for (uint32_t i = 0; i < posts; i++) {
        while (i - atomic_load(&taken[me]) >= depth)
            sched_yield();
        requests[me][i & MASK] = i;
        ring_publish_send(&qp[me], i + 1);
        if (ring_doorbell(&page, doorbell[me]))
            cr_assert_eq(eventfd_write(wake, 1), 0);
        if (i % 64 == 0)
            sched_yield();
    }
    return NULL;
}

/* Scans as the daemon does: summary word, words, tails. Returns how many requests it found. */
static uint32_t serve(void)
{
    uint32_t found = 0;
    for (uint32_t s = 0; s < PM_DOORBELLS / 64 / 64; s++) {
        uint64_t words = atomic_exchange(&page.summary[s], 0);
        for (; words; words &= words - 1) {
            uint32_t w = s * 64 + (uint32_t)__builtin_ctzll(words);
            uint64_t bits = atomic_exchange(&page.bits[w], 0);
            for (uint32_t k = 0; k < POSTERS; k++) {
                if (doorbell[k] / 64 != w || !(bits >> (doorbell[k] % 64) & 1))
                    continue;
                uint32_t i = atomic_load(&taken[k]), tail = atomic_load_explicit(&qp[k].sq_tail, memory_order_acquire);
                for (; i != tail; i++, found++)
                    cr_assert_eq(requests[k][i & MASK], i);
                atomic_store(&taken[k], tail);
            }
        }
    }
    return found;
}

static void doorbells(uint32_t posters)
{
    pthread_t t[POSTERS];
    uint32_t total = 0;
    wake = eventfd(0, EFD_NONBLOCK);
    memset(&page, 0, sizeof(page));
    memset(qp, 0, sizeof(qp));
    for (uint32_t k = 0; k < posters; k++)
        atomic_store(&taken[k], 0);
    for (uint32_t k = 0; k < posters; k++)
        pthread_create(&t[k], NULL, poster, (void *)(uintptr_t)k);
    while (total < posters * posts) {
        uint32_t found = serve();
        total += found;
        if (found)
            continue;
        atomic_store(&page.sleeping, 1);
        found = serve(); /* the last look before it sleeps */
        total += found;
        if (found == 0) {
            struct pollfd p = {.fd = wake, .events = POLLIN};
            eventfd_t v;
            cr_assert_eq(poll(&p, 1, LOST_MS), 1, "asleep with %u of %u requests seen", total, posters * posts);
            eventfd_read(wake, &v);
        }
        atomic_store(&page.sleeping, 0);
    }
    for (uint32_t k = 0; k < posters; k++)
        pthread_join(t[k], NULL);
    cr_assert_eq(total, posters * posts);
}

Test(ring, no_doorbell_of_several_posters_is_lost)
{
    posts = 5000, depth = SLOTS;
    doorbells(POSTERS);
}

/* One request at a time, so that no later request makes up for a lost doorbell. */
Test(ring, no_doorbell_of_a_single_request_is_lost)
{
    posts = 50000, depth = 1;
    doorbells(1);
}

Test(ring, only_a_sleeping_daemon_is_woken_and_once)
{
    memset(&page, 0, sizeof(page));
    cr_assert_not(ring_doorbell(&page, 70));
    cr_assert_eq(atomic_load(&page.bits[1]), UINT64_C(1) << 6);
    cr_assert_eq(atomic_load(&page.summary[0]), UINT64_C(2));
    atomic_store(&page.sleeping, 1);
    cr_assert(ring_doorbell(&page, PM_DOORBELLS - 1));
    cr_assert_eq(atomic_load(&page.bits[PM_DOORBELLS / 64 - 1]), UINT64_C(1) << 63);
    cr_assert_eq(atomic_load(&page.summary[PM_DOORBELLS / 64 / 64 - 1]), UINT64_C(1) << 63);
    cr_assert_not(ring_doorbell(&page, PM_DOORBELLS - 1));
}

static _Atomic uint32_t notified;
static void *flusher(void *arg)
{
    (void)arg;
    sched_yield();
    atomic_store(&qp[0].rq_notify, 1);
    atomic_store(&notified, 1 + atomic_load(&qp[0].rq_tail));
    return NULL;
}

/* The daemon sees every receive request or gets a doorbell for it, at whatever moment it begins to ask for
 * doorbells. */
Test(ring, no_receive_request_is_overlooked)
{
    for (int round = 0; round < 2000; round++) {
        pthread_t t;
        memset(qp, 0, sizeof(qp));
        atomic_store(&notified, 0);
        pthread_create(&t, NULL, flusher, NULL);
        bool told = ring_publish_recv(&qp[0], 1);
        pthread_join(t, NULL);
        cr_assert(told || atomic_load(&notified) == 2);
    }
}

Test(ring, slots_follow_indexes_across_the_wrap)
{
    static uint8_t ring[4 * 48];
    cr_assert_eq(ring_slot(ring, 48, 3, 0), ring);
    cr_assert_eq(ring_slot(ring, 48, 3, UINT32_MAX), ring + 3 * 48);
    cr_assert_eq(ring_slot(ring, 48, 3, 6), ring + 2 * 48);
}
