// SPDX-License-Identifier: BSD-2-Clause
/* Late writes (daemon/client_mem/late_writes.h) on the test's own memory: some come late, reads and atomics see them, those that
 * overlap keep their order, and in the end all are there. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/client_mem/mem_backend.h"

#define SIZE 65536u
static uint64_t probe = 0xfeedfacecafebeefull;
static struct mem_backend m;
static struct client_mem s;
static struct unkind unkind;
static uint8_t *area, *expected, *data, *bytes;

static void begin(uint32_t kinds)
{
    struct client_fds fds = {open("/proc/self/mem", O_RDWR | O_CLOEXEC), -1};

    area = calloc(1, SIZE);
    expected = calloc(1, SIZE);
    data = calloc(1, SIZE);
    bytes = calloc(1, LATE_WRITES_BYTES);
    unkind_init(&unkind, kinds, 3);
    cr_assert_eq(mem_backend_init(&m, NULL), 0);
    cr_assert_eq(mem_backend_be_unkind(&m, &unkind, bytes), 0);
    client_mem_init(&s, 0, getpid(), fds, true, MEMORY_AUTO, (uintptr_t)&probe, probe);
    cr_assert_eq(mem_backend_add(&m, &s), 0);
}

static void start(void)
{
    begin(UNKIND_VISIBILITY);
}

static void start_all(void)
{
    begin(UNKIND_VISIBILITY | UNKIND_PLACEMENT);
}

static void finish(void)
{
    mem_backend_remove(&m, &s);
    client_mem_fini(&s);
    mem_backend_fini(&m);
}

/* The bytes of the source may change when the writes were executed, or are held. */
static void put(uint32_t at, uint32_t len, uint8_t value)
{
    struct mem_segment to = {(uintptr_t)area + at, len, s.number};

    memset(data + at, value, len);
    cr_assert_eq(mem_backend_ops.write(&m, 17, &to, 1, data + at, len), 0);
    memset(expected + at, value, len);
}

Test(late_writes, some_are_late_and_all_come, .init = start, .fini = finish)
{
    unsigned late = 0;

    for (uint32_t i = 0; i < 100; i++) {
        put(100 * i, 100, 1);
        mem_backend_place(&m, 1000);
        late += area[100 * i] == 0;
    }
    cr_assert(late > 20 && late < 80, "%u", late);
    cr_assert_eq(unkind.counters.unkind_late_writes, late);
    uint64_t due = mem_backend_deadline(&m);
    cr_assert(due > 1000 && due <= 1000 + 1000000);
    memset(data, 9, SIZE); /* the copies count */
    mem_backend_place(&m, due - 1);
    cr_assert_neq(memcmp(area, expected, SIZE), 0);
    mem_backend_place(&m, due);
    cr_assert_arr_eq(area, expected, SIZE);
    cr_assert_eq(mem_backend_deadline(&m), UINT64_MAX);
}

Test(late_writes, overlapping_writes_keep_their_order, .init = start_all, .fini = finish)
{
    srand(6);
    for (unsigned round = 0; round < 2000; round++) {
        uint32_t len = 1 + (uint32_t)rand() % 300, at = (uint32_t)rand() % (2000 - len);

        put(at, len, (uint8_t)rand());
        if (rand() % 3 == 0)
            mem_backend_flush(&m);
        else
            mem_backend_place(&m, round * 10000);
        if (rand() % 50 == 0)
            mem_backend_settle(&m, rand() % 2 ? getpid() : 0);
        if (rand() % 50 == 0) {
            mem_backend_ops.order(&m);
            cr_assert_arr_eq(area, expected, SIZE, "round %u", round);
        }
    }
    mem_backend_settle(&m, 0);
    cr_assert_arr_eq(area, expected, SIZE);
    cr_assert_gt(unkind.counters.unkind_late_writes, 100);
}

Test(late_writes, readers_see_them, .init = start, .fini = finish)
{
    for (uint32_t i = 0; i < 40; i++) {
        struct mem_segment from = {(uintptr_t)area + 100 * i, 8, s.number};
        uint64_t seen = 0;

        put(100 * i, 8, 5);
        mem_backend_place(&m, 1000);
        if (i % 2)
            cr_assert_eq(mem_backend_ops.read(&m, &from, 1, &(struct buf){(uint8_t *)&seen, 8}, 1), 0);
        else
            cr_assert_eq(mem_backend_ops.atomic(&m, &from, MEM_FETCH_ADD, 0, 0, &seen), 0);
        cr_assert_eq(seen, 0x0505050505050505u);
    }
}

Test(late_writes, processes_are_settled_alone, .init = start, .fini = finish)
{
    while (mem_backend_deadline(&m) == UINT64_MAX) {
        put(0, 8, 1);
        mem_backend_place(&m, 1000);
    }
    mem_backend_settle(&m, getpid() + 1);
    cr_assert_neq(mem_backend_deadline(&m), UINT64_MAX);
    mem_backend_settle(&m, getpid());
    cr_assert_eq(mem_backend_deadline(&m), UINT64_MAX);
    cr_assert_eq(area[0], 1);
}

Test(late_writes, without_room_nothing_is_late, .init = start, .fini = finish)
{
    for (unsigned i = 0; i < 100; i++) {
        put(0, SIZE / 2, (uint8_t)i);
        put(SIZE / 2, SIZE / 2, (uint8_t)i);
        mem_backend_place(&m, 1000);
    }
    for (unsigned i = 0; i < 2000; i++) { /* more than can be held */
        put(8 * i, 8, (uint8_t)(i + 1));
        if (i % 3 == 0)
            mem_backend_place(&m, 1000);
    }
    mem_backend_settle(&m, 0);
    mem_backend_place(&m, 1000);
    mem_backend_settle(&m, 0);
    cr_assert_arr_eq(area, expected, SIZE);
}
