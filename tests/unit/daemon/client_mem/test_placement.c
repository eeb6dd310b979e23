// SPDX-License-Identifier: BSD-2-Clause
/* Out-of-order placement (daemon/client_mem/placement.h) on the test's own memory: in the end all bytes are right, also
 * those of writes that overlap, and meanwhile later bytes are there before earlier ones. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/client_mem/mem_backend.h"

#define SIZE 65536u
static uint64_t probe = 0xfeedfacecafebeefull;
static struct mem_backend m;
static struct client_mem s;
static struct unkind unkind;
static uint8_t *area, *expected, *data;

static void start(void)
{
    struct client_fds fds = {open("/proc/self/mem", O_RDWR | O_CLOEXEC), -1};

    area = calloc(1, SIZE);
    expected = calloc(1, SIZE);
    data = calloc(1, SIZE);
    unkind_init(&unkind, UNKIND_PLACEMENT, 3);
    cr_assert_eq(mem_backend_init(&m, NULL), 0);
    cr_assert_eq(mem_backend_be_unkind(&m, &unkind, NULL), 0);
    client_mem_init(&s, 0, getpid(), fds, true, MEMORY_AUTO, (uintptr_t)&probe, probe);
    cr_assert_eq(mem_backend_add(&m, &s), 0);
}

static void finish(void)
{
    mem_backend_remove(&m, &s);
    client_mem_fini(&s);
    mem_backend_fini(&m);
}

static void put(uint32_t at, uint32_t len)
{
    struct mem_segment to = {(uintptr_t)area + at, len, s.number};

    cr_assert_eq(mem_backend_ops.write(&m, 17, &to, 1, data, len), 0);
    memcpy(expected + at, data, len);
}

Test(placement, all_bytes_come, .init = start, .fini = finish)
{
    srand(5);
    for (unsigned round = 0; round < 300; round++) {
        unsigned writes = 1 + (unsigned)rand() % (round % 50 == 0 ? 700 : 6);
        uint32_t used = 0;

        for (unsigned i = 0; i < writes; i++) {
            uint32_t len = 1 + (uint32_t)rand() % 300, at = (uint32_t)rand() % (SIZE - len);

            if (round % 2) { /* else the writes overlap: the later one is in front in the end */
                at = used;
                used += len;
            }
            if (at + len > SIZE)
                break;
            for (uint32_t k = 0; k < len; k++)
                data[at + k] = (uint8_t)rand();
            struct mem_segment to = {(uintptr_t)area + at, len, s.number};
            /* The bytes of a source stay until the flush: overlapping writes have sources of their own. */
            uint8_t *src = malloc(len);
            memcpy(src, data + at, len);
            cr_assert_eq(mem_backend_ops.write(&m, 17 + i % 2, &to, 1, src, len), 0);
            memcpy(expected + at, src, len);
        }
        mem_backend_place(&m, 1);
        cr_assert_arr_eq(area, expected, SIZE, "round %u", round);
    }
    cr_assert_gt(unkind.counters.unkind_placements, 50);
}

/* --- what another thread sees ------------------------------------------------------------------ */

static atomic_int state; /* 1: look for a byte without those before it; 2: seen; 3: end */

static void *watch(void *unused)
{
    (void)unused;
    while (atomic_load(&state) != 3) {
        volatile uint8_t *p = area;

        if (atomic_load(&state) == 1 && p[4095] == 1 && (p[0] == 0 || p[1024] == 0 || p[2048] == 0 || p[3072] == 0))
            atomic_store(&state, 2);
    }
    return NULL;
}

Test(placement, the_last_byte_is_not_the_last, .init = start, .fini = finish)
{
    pthread_t thread;
    unsigned seen = 0;

    memset(data, 1, SIZE);
    cr_assert_eq(pthread_create(&thread, NULL, watch, NULL), 0);
    for (unsigned i = 0; i < 200; i++) {
        memset(area, 0, SIZE);
        atomic_store(&state, 1);
        put(0, 4096);
        mem_backend_place(&m, 1);
        seen += atomic_exchange(&state, 0) == 2;
    }
    atomic_store(&state, 3);
    pthread_join(thread, NULL);
    cr_assert_gt(seen, 5);
}

Test(placement, aligned_words_come_whole, .init = start, .fini = finish)
{
    memset(data, 1, SIZE);
    for (unsigned i = 0; i < 100; i++)
        put(64, 8);
    mem_backend_place(&m, 1);
    cr_assert_eq(unkind.counters.unkind_placements, 0, "writes of the same word keep their order, in one piece");
}

Test(placement, memory_that_is_gone_is_reported, .init = start, .fini = finish)
{
    struct mem_segment to = {8, 4096, s.number | CLIENT_MEM_ON_DEMAND};
    struct mem_fault fault;

    cr_assert_eq(mem_backend_ops.write(&m, 17, &to, 1, data, 4096), 0);
    put(0, 512);
    mem_backend_place(&m, 1);
    cr_assert(mem_backend_pop_fault(&m, &fault));
    cr_assert_eq(fault.qpn, 17);
    cr_assert(!fault.unmapped);
    cr_assert(!mem_backend_pop_fault(&m, &fault));
    cr_assert_arr_eq(area, expected, SIZE, "the other write came");
}
