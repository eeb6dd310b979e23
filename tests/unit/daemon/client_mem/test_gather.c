// SPDX-License-Identifier: BSD-2-Clause
/* Gathering (daemon/client_mem/gather.h): many small pieces of memory are read with few ranges, tried on the test's
 * own process. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/client_mem/gather.h"

#define PAGE 4096
#define PAGES 32

static uint64_t probe = 0xfeedfacecafebeefull;
static struct client_mem s;
static struct gather g;
static uint8_t *area;

static void start(void)
{
    area = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < PAGES * PAGE; i++)
        area[i] = (uint8_t)(i * 7 + i / PAGE);
    client_mem_init(&s, 0, getpid(), (struct client_fds){-1, -1}, true, MEMORY_PROCESS_VM, (uintptr_t)&probe, probe);
    cr_assert_eq(s.path, PM_MEMORY_PROCESS_VM);
}

static void finish(void)
{
    munmap(area, PAGES * PAGE);
    client_mem_fini(&s);
}

static bool add(size_t off, uint8_t *to, size_t len)
{
    return gather_add(&g, &s, (uintptr_t)area + off, to, len);
}

TestSuite(gather, .init = start, .fini = finish);

Test(gather, segments_of_a_page_are_one_range)
{
    uint8_t out[100][8], big[2000];

    for (unsigned i = 0; i < 100; i++)
        cr_assert(add(40u * (i * 37 % 100), out[i], 8));
    cr_assert_eq(g.nremote, 0, "the span is open");
    cr_assert(add(2 * PAGE, big, sizeof(big)));
    cr_assert_eq(g.nremote, 2);
    cr_assert_eq(g.nlocal, 2);
    cr_assert(gather_finish(&g, &s));
    for (unsigned i = 0; i < 100; i++)
        cr_assert_arr_eq(out[i], area + 40u * (i * 37 % 100), 8, "piece %u", i);
    cr_assert_arr_eq(big, area + 2 * PAGE, sizeof(big));
    cr_assert_eq(g.nremote + g.nlocal + g.npicks + g.staged, 0);
}

Test(gather, a_single_segment_is_read_in_place)
{
    uint8_t out[3][16];

    for (unsigned i = 0; i < 3; i++)
        cr_assert(add(5 * PAGE * i, out[i], 16));
    cr_assert_eq(g.staged, 0);
    cr_assert(gather_finish(&g, &s));
    for (unsigned i = 0; i < 3; i++)
        cr_assert_arr_eq(out[i], area + 5 * PAGE * i, 16);
}

Test(gather, adjacent_segments_are_one_range)
{
    uint8_t out[4 * PAGE];

    for (unsigned i = 0; i < 4; i++)
        cr_assert(add(PAGE * i, out + PAGE * i, PAGE));
    cr_assert_eq(g.nremote, 1);
    cr_assert_eq(g.nlocal, 1);
    cr_assert(gather_finish(&g, &s));
    cr_assert_arr_eq(out, area, sizeof(out));
}

/* One unmapped page between two mapped ones. No span crosses it, and pieces in it are reported. */
Test(gather, pages_without_a_segment_are_not_read)
{
    uint8_t out[3][8];

    cr_assert_eq(munmap(area + PAGE, PAGE), 0);
    cr_assert(add(PAGE - 8, out[0], 8));
    cr_assert(add(2 * PAGE, out[1], 8));
    cr_assert(add(PAGE - 100, out[2], 8));
    cr_assert(gather_finish(&g, &s));
    cr_assert_arr_eq(out[0], area + PAGE - 8, 8);
    cr_assert_arr_eq(out[1], area + 2 * PAGE, 8);
    cr_assert_arr_eq(out[2], area + PAGE - 100, 8);

    cr_assert(add(0, out[0], 8));
    cr_assert(add(PAGE - 4, out[1], 8), "ends in the page that is not there");
    cr_assert(gather_finish(&g, &s));
    cr_assert(g.unmapped);
    cr_assert_arr_eq(out[0], area, 8);
    cr_assert_arr_eq(out[1], area + PAGE - 4, 4);
    cr_assert_arr_eq(out[1] + 4, "\0\0\0", 4);
    cr_assert(add(16, out[0], 8));
    cr_assert(gather_finish(&g, &s), "it goes on");
    cr_assert_arr_eq(out[0], area + 16, 8);
}

/* More pieces, entries and bytes than one call takes, in random sizes and places. */
Test(gather, random_lists)
{
    static uint8_t out[3000 * 1600];

    for (unsigned seed = 1; seed <= 300; seed++) {
        unsigned r = seed, n = 1 + (unsigned)rand_r(&r) % 3000, spread = 1 + (unsigned)rand_r(&r) % PAGES;
        unsigned longest = seed % 3 ? 64 : 1600, at = 0;
        struct {
            unsigned off, len, at;
        } p[3000];

        memset(out, 0xee, sizeof(out));
        for (unsigned i = 0; i < n; i++) {
            p[i].len = (unsigned)rand_r(&r) % (longest + 1);
            p[i].off = (unsigned)rand_r(&r) % (spread * PAGE - p[i].len);
            p[i].at = at;
            at += p[i].len + (unsigned)rand_r(&r) % 2;
            cr_assert(add(p[i].off, out + p[i].at, p[i].len));
        }
        cr_assert(gather_finish(&g, &s));
        for (unsigned i = 0; i < n; i++) {
            cr_assert_arr_eq(out + p[i].at, area + p[i].off, p[i].len, "list %u, piece %u", seed, i);
            cr_assert(i + 1 == n || p[i + 1].at == p[i].at + p[i].len || out[p[i].at + p[i].len] == 0xee,
                      "list %u: piece %u is too long", seed, i);
        }
    }
}
