// SPDX-License-Identifier: BSD-2-Clause
/* Layouts: the worked examples of docs/layouts.md, every rule for binds, and numbers at the ends of 64 bits. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/core/memory/layout.h"

#define DIM(s, c)                                                                                                      \
    {                                                                                                                  \
        .stride = (s), .count = (c)                                                                                    \
    }
#define MAX UINT64_MAX
#define COUNT(a) (uint32_t)(sizeof(a) / sizeof((a)[0]))

static const struct layout_limits all = {
    .caps = LAYOUT_CAP_ALL, .max_entries = LAYOUT_MAX_ENTRIES, .max_dims = LAYOUT_MAX_DIMS, .max_depth = 8};

/* Binds a layout that must be valid. */
static struct layout bind(uint32_t type, const struct layout_entry_desc *entry, uint32_t count,
                          struct layout_entry *memory)
{
    struct layout_desc d = {.type = type, .count = count, .entry = entry};
    struct layout l;
    uint64_t total = 0;
    uint32_t where = 99;
    enum layout_error err = layout_check(&d, &all, &where, &total);
    cr_assert_eq(err, LAYOUT_OK, "entry %u: %s", where, layout_error_text(err));
    layout_bind(&l, memory, &d);
    cr_assert_eq(l.total, total);
    return l;
}

struct place {
    uint64_t off, addr;
};

/* Checks that each offset is at its place, by a seek, and by iterating from the start. */
static void expect(const struct layout *l, uint64_t total, const struct place *place, unsigned n)
{
    cr_assert_eq(l->total, total);
    for (unsigned i = 0; i < n; i++) {
        struct layout_cursor c;
        struct layout_segment p;
        cr_assert(layout_seek(&c, l, place[i].off, 1));
        cr_assert(layout_next(&c, &p));
        cr_expect_eq(p.addr, place[i].addr, "offset %lu: %#lx", place[i].off, p.addr);
        cr_expect_eq(p.len, 1);
        cr_expect_not(layout_next(&c, &p));

        uint64_t at = 0;
        cr_assert(layout_seek(&c, l, 0, total));
        while (layout_next(&c, &p)) {
            if (place[i].off >= at && place[i].off - at < p.len)
                cr_expect_eq(p.addr + place[i].off - at, place[i].addr, "offset %lu", place[i].off);
            at += p.len;
        }
        cr_expect_eq(at, total);
    }
}
#define EXPECT(l, total, ...)                                                                                          \
    do {                                                                                                               \
        static const struct place places[] = {__VA_ARGS__};                                                            \
        expect(&(l), total, places, COUNT(places));                                                                    \
    } while (0)

/* Expects exactly these pieces of a range. */
static void expect_segments(const struct layout *l, uint64_t off, uint64_t len, const struct layout_segment *want,
                            unsigned n)
{
    struct layout_cursor c;
    struct layout_segment p;
    cr_assert(layout_seek(&c, l, off, len));
    for (unsigned i = 0; i < n; i++) {
        cr_assert(layout_next(&c, &p), "piece %u", i);
        cr_expect(p.entry == want[i].entry && p.object == want[i].object && p.addr == want[i].addr &&
                      p.len == want[i].len,
                  "piece %u: entry %u, object %u, %#lx, %lu bytes", i, p.entry, p.object, p.addr, p.len);
    }
    cr_expect_not(layout_next(&c, &p), "more than %u pieces", n);
}

/* --- worked examples --------------------------------------------------------------------------- */

Test(layout, matrix_column)
{
    struct layout_entry_desc e = {.addr = 0x1008, .length = 8, .repeat = 1, .ndim = 1, .dim = {DIM(40, 4)}};
    struct layout_entry m[1];
    struct layout l = bind(LAYOUT_INTERLEAVED, &e, 1, m);
    EXPECT(l, 32, {0, 0x1008}, {8, 0x1030}, {16, 0x1058}, {19, 0x105b}, {24, 0x1080}, {31, 0x1087});
    static const struct layout_segment pieces[] = {{0, 0, 0x100c, 4}, {0, 0, 0x1030, 8}, {0, 0, 0x1058, 2}};
    expect_segments(&l, 4, 14, pieces, 3);
}

Test(layout, part_of_a_cube_face)
{
    struct layout_entry_desc e = {.addr = 72, .length = 8, .repeat = 1, .ndim = 2, .dim = {DIM(40, 2), DIM(160, 3)}};
    struct layout_entry m[1];
    struct layout l = bind(LAYOUT_INTERLEAVED, &e, 1, m);
    EXPECT(l, 48, {0, 72}, {8, 112}, {16, 232}, {20, 236}, {24, 272}, {32, 392}, {40, 432});
}

Test(layout, whole_cube_face_is_one_pattern)
{
    struct layout_entry_desc e = {.addr = 32, .length = 8, .repeat = 1, .ndim = 2, .dim = {DIM(40, 4), DIM(160, 3)}};
    struct layout_entry m[1];
    struct layout l = bind(LAYOUT_INTERLEAVED, &e, 1, m);
    cr_expect_eq(m[0].ndim, 1);
    cr_expect_eq(m[0].dim[0].count, 12);
    for (uint64_t k = 0; k < 12; k++) {
        struct layout_segment p = {0, 0, 32 + 40 * k, 8};
        expect_segments(&l, 8 * k, 8, &p, 1);
    }
}

Test(layout, planes_of_a_cube)
{
    struct layout_entry m[1];
    struct layout_entry_desc n_fixed = {.addr = 80, .length = 40, .repeat = 1, .ndim = 1, .dim = {DIM(160, 3)}};
    struct layout l = bind(LAYOUT_INTERLEAVED, &n_fixed, 1, m);
    EXPECT(l, 120, {0, 80}, {39, 119}, {40, 240}, {80, 400}, {119, 439});
    /* with m fixed, every description is one contiguous piece */
    struct layout_entry_desc m_fixed = {
        .addr = 160, .length = 8, .repeat = 1, .ndim = 3, .dim = {DIM(8, 5), DIM(0, 1), DIM(40, 4)}};
    static const struct layout_segment whole = {0, 0, 160, 160};
    l = bind(LAYOUT_INTERLEAVED, &m_fixed, 1, m);
    expect_segments(&l, 0, 160, &whole, 1);
}

Test(layout, composite_of_three)
{
    struct layout_entry_desc e[] = {{.object = 1, .addr = 0x100, .length = 100},
                                    {.object = 2, .addr = 0x200, .length = 50},
                                    {.object = 3, .addr = 0x300, .length = 200, .repeat = 1}};
    struct layout_entry m[3];
    struct layout l = bind(LAYOUT_COMPOSITE, e, 3, m);
    EXPECT(l, 350, {0, 0x100}, {99, 0x100 + 99}, {100, 0x200}, {149, 0x200 + 49}, {150, 0x300}, {349, 0x300 + 199});
    static const struct layout_segment pieces[] = {{0, 1, 0x100 + 95, 5}, {1, 2, 0x200, 50}, {2, 3, 0x300, 5}};
    expect_segments(&l, 95, 60, pieces, 3);
}

Test(layout, two_to_one)
{
    struct layout_entry_desc e[] = {{.addr = 0x1000, .length = 4, .repeat = 2, .ndim = 1, .dim = {DIM(16, 4)}},
                                    {.addr = 0x2000, .length = 8, .repeat = 1, .ndim = 1, .dim = {DIM(8, 2)}}};
    struct layout_entry m[2];
    struct layout l = bind(LAYOUT_INTERLEAVED, e, 2, m);
    cr_expect(l.uniform);
    EXPECT(l, 32, {0, 0x1000}, {4, 0x1010}, {8, 0x2000}, {16, 0x1020}, {20, 0x1030}, {22, 0x1032}, {24, 0x2008},
           {27, 0x200b});
}

Test(layout, one_entry_runs_out)
{
    struct layout_entry_desc e[] = {{.addr = 0x1000, .length = 4, .repeat = 1, .ndim = 1, .dim = {DIM(16, 3)}},
                                    {.addr = 0x2000, .length = 4, .repeat = 1, .ndim = 1, .dim = {DIM(8, 1)}}};
    struct layout_entry m[2];
    struct layout l = bind(LAYOUT_INTERLEAVED, e, 2, m);
    cr_expect_not(l.uniform);
    EXPECT(l, 16, {0, 0x1000}, {4, 0x2000}, {8, 0x1010}, {12, 0x1020});
}

Test(layout, last_group_may_be_partial)
{
    /* each round: five items of A in pairs, four of B in threes, one of C: A A B B B C | A A B | A */
    struct layout_entry_desc e[] = {{.addr = 0x1000, .length = 2, .repeat = 2, .ndim = 1, .dim = {DIM(0x10, 5)}},
                                    {.addr = 0x2000, .length = 1, .repeat = 3, .ndim = 1, .dim = {DIM(0x10, 4)}},
                                    {.addr = 0x3000, .length = 3, .repeat = MAX, .ndim = 1, .dim = {DIM(0x10, 1)}}};
    struct layout_entry m[3];
    struct layout l = bind(LAYOUT_INTERLEAVED, e, 3, m);
    EXPECT(l, 17, {0, 0x1000}, {2, 0x1010}, {4, 0x2000}, {5, 0x2010}, {6, 0x2020}, {7, 0x3000}, {9, 0x3002},
           {10, 0x1020}, {12, 0x1030}, {14, 0x2030}, {15, 0x1040}, {16, 0x1041});
    struct layout_cursor c;
    struct layout_segment p;
    cr_expect(layout_seek(&c, &l, 17, 0), "nothing, at the end");
    cr_expect_not(layout_next(&c, &p));
    cr_expect_not(layout_seek(&c, &l, 17, 1));
}

Test(layout, two_buffers_in_turn_as_in_pyverbs)
{
    struct layout_entry_desc e[] = {{.addr = 0x1000, .length = 8, .repeat = 1, .ndim = 1, .dim = {DIM(10, 3)}},
                                    {.addr = 0x1040, .length = 8, .repeat = 1, .ndim = 1, .dim = {DIM(10, 3)}}};
    struct layout_entry m[2];
    struct layout l = bind(LAYOUT_INTERLEAVED, e, 2, m);
    EXPECT(l, 48, {0, 0x1000}, {7, 0x1007}, {8, 0x1040}, {15, 0x1047}, {16, 0x100a}, {24, 0x104a}, {32, 0x1014},
           {40, 0x1054});
}

/* --- other shapes ------------------------------------------------------------------------------ */

Test(layout, stride_zero_and_overlap_read_the_same_again)
{
    struct layout_entry_desc e = {
        .addr = 0x10, .length = 4, .repeat = 1, .ndim = 2, .dim = {DIM(0, 2), DIM(2, 2)}}; /* 10 10 12 12 */
    struct layout_entry m[1];
    struct layout l = bind(LAYOUT_INTERLEAVED, &e, 1, m);
    EXPECT(l, 16, {0, 0x10}, {4, 0x10}, {8, 0x12}, {15, 0x15});
}

Test(layout, eight_dimensions)
{
    struct layout_entry_desc e = {.length = 1, .repeat = 1, .ndim = 8};
    for (unsigned d = 0; d < 8; d++)
        e.dim[d] = (struct layout_dim){.stride = 1ull << (4 * d + 1), .count = 3};
    struct layout_entry m[1];
    struct layout l = bind(LAYOUT_INTERLEAVED, &e, 1, m);
    cr_expect_eq(l.total, 6561);
    struct layout_cursor c;
    struct layout_segment p;
    layout_seek(&c, &l, 0, l.total);
    for (uint64_t k = 0; layout_next(&c, &p); k++) {
        uint64_t addr = 0, rest = k;
        for (unsigned d = 0; d < 8; d++, rest /= 3)
            addr += rest % 3 << (4 * d + 1);
        cr_assert_eq(p.addr, addr, "item %lu", k);
    }
}

Test(layout, ranges_must_be_within_the_layout)
{
    struct layout_entry_desc e = {.length = 8, .repeat = 1, .ndim = 1, .dim = {DIM(40, 4)}};
    struct layout_entry m[1];
    struct layout l = bind(LAYOUT_INTERLEAVED, &e, 1, m);
    struct layout_cursor c;
    struct layout_segment p;
    cr_expect(layout_seek(&c, &l, 0, 32), "all of it");
    cr_expect(layout_seek(&c, &l, 31, 1), "its last byte");
    cr_expect(layout_seek(&c, &l, 32, 0), "nothing, at the end");
    cr_expect_not(layout_next(&c, &p));
    cr_expect_not(layout_seek(&c, &l, 0, 33));
    cr_expect_not(layout_seek(&c, &l, 31, 2));
    cr_expect_not(layout_seek(&c, &l, 32, 1));
    cr_expect_not(layout_seek(&c, &l, 33, 0));
    cr_expect_not(layout_seek(&c, &l, 31, UINT64_MAX - 15), "wraps");
    cr_expect_not(layout_seek(&c, &l, UINT64_MAX, 2), "wraps");
}

/* A billion items. Neither time nor memory may grow with their number. */
Test(layout, a_billion_items, .timeout = 30)
{
    struct layout_entry_desc e[] = {
        {.addr = 5, .length = 1, .repeat = 3, .ndim = 2, .dim = {DIM(7, 1000000), DIM(9000000, 1000)}},
        {.addr = 1ull << 40, .length = 2, .repeat = 1, .ndim = 1, .dim = {DIM(3, 999999999)}}};
    struct layout_entry m[2];
    struct layout l;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < 10000; i++) {
        struct layout_cursor c;
        struct layout_segment p;
        l = bind(LAYOUT_INTERLEAVED, e, 2, m);
        cr_assert(layout_seek(&c, &l, l.total - 1, 1) && layout_next(&c, &p));
        cr_assert_eq(p.addr, (1ull << 40) + 3ull * 999999998 + 1);
        cr_assert(layout_seek(&c, &l, 5 * 333333333ull + 2ull * 5, 2) && layout_next(&c, &p));
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    double us = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 1e3 / 10000;
    cr_expect_lt(us, 50, "%.1f us for a bind and two seeks", us);
    EXPECT(l, 1000000000ull + 2 * 999999999ull);
}

Test(layout, the_largest_layout)
{
    struct layout_entry_desc e[] = {
        {.length = 1ull << 31, .repeat = 1, .ndim = 1, .dim = {DIM(0, (1ull << 32) - 1)}},
        {.addr = 77, .length = 1, .repeat = 2, .ndim = 1, .dim = {DIM(0, 1ull << 31)}},
    };
    struct layout_entry m[2];
    struct layout l = bind(LAYOUT_INTERLEAVED, e, 2, m);
    cr_assert_eq(l.total, LAYOUT_MAX_TOTAL);
    struct layout_cursor c;
    struct layout_segment p;
    cr_assert(layout_seek(&c, &l, l.total - 1, 1) && layout_next(&c, &p));
    cr_expect_eq(p.addr, (1ull << 31) - 1);
    cr_assert(layout_seek(&c, &l, (1ull << 30) * ((1ull << 31) + 2) - 1, 2) && layout_next(&c, &p));
    cr_expect_eq(p.addr, 77, "the last of the second entry");
    cr_assert(layout_next(&c, &p));
    cr_expect_eq(p.addr, 0, "is followed by the first one alone");
}

/* --- nesting ----------------------------------------------------------------------------------- */

Test(layout, a_walk_goes_down_and_comes_back)
{
    /* inner: two items of 4 bytes, 16 apart; outer: bytes 2 … 5 of inner, 3 bytes of an MR, and bytes 6 and 7 of
     * inner */
    struct layout_entry_desc in = {
        .object = 9, .addr = 0x100, .length = 4, .repeat = 1, .ndim = 1, .dim = {DIM(16, 2)}};
    struct layout_entry_desc out[] = {{.object = 1, .addr = 2, .length = 4},
                                      {.object = 2, .addr = 0x500, .length = 3},
                                      {.object = 1, .addr = 6, .length = 2}};
    struct layout_entry mi[1], mo[3];
    struct layout inner = bind(LAYOUT_INTERLEAVED, &in, 1, mi), outer = bind(LAYOUT_COMPOSITE, out, 3, mo);
    static const struct layout_segment want[] = {
        {0, 9, 0x102, 2}, {0, 9, 0x110, 2}, {1, 2, 0x500, 3}, {0, 9, 0x112, 2}};
    struct layout_walk w;
    struct layout_segment p;
    unsigned n = 0;
    layout_walk_init(&w);
    cr_assert(layout_walk_push(&w, &outer, 0, 9));
    while (layout_walk_next(&w, &p)) {
        if (p.object == 1) {
            cr_assert(layout_walk_push(&w, &inner, p.addr, p.len));
            continue;
        }
        cr_assert_lt(n, 4);
        cr_expect(p.object == want[n].object && p.addr == want[n].addr && p.len == want[n].len, "piece %u", n);
        n++;
    }
    cr_expect_eq(n, 4);
}

Test(layout, a_walk_has_a_greatest_depth)
{
    struct layout_entry_desc e = {.length = 8};
    struct layout_entry m[1];
    struct layout l = bind(LAYOUT_COMPOSITE, &e, 1, m);
    struct layout_walk w;
    struct layout_segment p;
    layout_walk_init(&w);
    for (unsigned i = 0; i < LAYOUT_MAX_DEPTH; i++)
        cr_expect(layout_walk_push(&w, &l, i, 8 - i));
    cr_expect_not(layout_walk_push(&w, &l, 0, 8));
    for (unsigned i = LAYOUT_MAX_DEPTH; i-- > 0;) {
        cr_assert(layout_walk_next(&w, &p));
        cr_expect_eq(p.addr, i);
    }
    cr_expect_not(layout_walk_next(&w, &p));
    cr_expect_not(layout_walk_push(&w, &l, 1, 8), "not within it");
}

/* --- what is refused --------------------------------------------------------------------------- */

#define SOUND                                                                                                          \
    {                                                                                                                  \
        .object = 1, .addr = 0x1000, .length = 8, .repeat = 1, .ndim = 1, .dim = { DIM(16, 4) }                        \
    }
static const struct layout_entry_desc sound = SOUND;

/* Invalid versions of entry 1 of two entries, and the error of each. The other entry is valid. */
/* clang-format off */
static const struct {
    const char *what;
    enum layout_error error;
    uint32_t type;
    struct layout_entry_desc e;
    uint32_t without; /* capabilities that the device lacks */
} bad_entries[] = {
    {"length 0", LAYOUT_E_LENGTH, 1, {.repeat = 1, .ndim = 1, .dim = {DIM(16, 4)}}, 0},
    {"length 0 in a composite", LAYOUT_E_LENGTH, 0, {0}, 0},
    {"strided in a composite", LAYOUT_E_MIXED_STRIDED, 0, SOUND, 0},
    {"one item in a composite, but with a dimension", LAYOUT_E_MIXED_STRIDED, 0, {.length = 1, .ndim = 1, .dim = {DIM(0, 1)}}, 0},
    {"repeated in a composite", LAYOUT_E_MIXED_REPEAT, 0, {.length = 8, .repeat = 2}, 0},
    {"contiguous among strided ones", LAYOUT_E_MIXED_PLAIN, 1, {.length = 8, .repeat = 1}, 0},
    {"nine dimensions", LAYOUT_E_DIMS, 1, {.length = 8, .repeat = 1, .ndim = 9}, 0},
    {"2^32 - 1 dimensions", LAYOUT_E_DIMS, 1, {.length = 8, .repeat = 1, .ndim = UINT32_MAX}, 0},
    {"repetition 0", LAYOUT_E_REPEAT, 1, {.length = 8, .ndim = 1, .dim = {DIM(16, 4)}}, 0},
    {"count 0", LAYOUT_E_COUNT, 1, {.length = 8, .repeat = 1, .ndim = 1, .dim = {DIM(16, 0)}}, 0},
    {"count 0 in the last dimension", LAYOUT_E_COUNT, 1, {.length = 8, .repeat = 1, .ndim = 3, .dim = {DIM(16, 2), DIM(4, 4), DIM(1, 0)}}, 0},
    {"2^64 items", LAYOUT_E_ITEMS, 1, {.length = 1, .repeat = 1, .ndim = 2, .dim = {DIM(0, 1ull << 32), DIM(0, 1ull << 32)}}, 0},
    {"2^64 items in eight dimensions", LAYOUT_E_ITEMS, 1, {.length = 1, .repeat = 1, .ndim = 8, .dim = {DIM(0, 256), DIM(0, 256), DIM(0, 256), DIM(0, 256), DIM(0, 256), DIM(0, 256), DIM(0, 256), DIM(0, 256)}}, 0},
    {"2^64 bytes", LAYOUT_E_BYTES, 1, {.length = 1ull << 32, .repeat = 1, .ndim = 1, .dim = {DIM(0, 1ull << 32)}}, 0},
    {"3 * (2^63) bytes", LAYOUT_E_BYTES, 1, {.length = 1ull << 63, .repeat = 1, .ndim = 1, .dim = {DIM(0, 3)}}, 0},
    {"stride beyond 64 bits", LAYOUT_E_SPAN, 1, {.length = 1, .repeat = 1, .ndim = 1, .dim = {DIM(1ull << 63, 3)}}, 0},
    {"strides that sum up beyond 64 bits", LAYOUT_E_SPAN, 1, {.length = 1, .repeat = 1, .ndim = 2, .dim = {DIM(1ull << 63, 2), DIM(1ull << 63, 2)}}, 0},
    {"a negative stride", LAYOUT_E_SPAN, 1, {.addr = 0x1000, .length = 8, .repeat = 1, .ndim = 1, .dim = {DIM(-16ull, 4)}}, 0},
    {"address beyond 64 bits", LAYOUT_E_SPAN, 1, {.addr = MAX - 40, .length = 8, .repeat = 1, .ndim = 1, .dim = {DIM(16, 4)}}, 0},
    {"composite: address beyond 64 bits", LAYOUT_E_SPAN, 0, {.addr = MAX - 6, .length = 8}, 0},
    {"2^63 bytes more", LAYOUT_E_TOTAL, 1, {.length = 1ull << 31, .repeat = 1, .ndim = 1, .dim = {DIM(0, 1ull << 32)}}, 0},
    {"composite: 2^63 bytes more", LAYOUT_E_TOTAL, 0, {.length = 1ull << 63}, 0},
    {"composite: 2^64 bytes with the first one", LAYOUT_E_TOTAL, 0, {.length = MAX}, 0},
    {"repetition 2", LAYOUT_E_CAP_NU_REPEAT, 1, {.length = 8, .repeat = 2, .ndim = 1, .dim = {DIM(16, 8)}}, LAYOUT_CAP_NONUNIFORM_REPETITION},
    {"other total", LAYOUT_E_CAP_NU_TOTAL, 1, {.length = 8, .repeat = 1, .ndim = 1, .dim = {DIM(16, 5)}}, LAYOUT_CAP_NONUNIFORM_TOTAL},
    {"other total, repeated", LAYOUT_E_CAP_NU_TOTAL, 1, {.length = 8, .repeat = 2, .ndim = 1, .dim = {DIM(16, 4)}}, LAYOUT_CAP_NONUNIFORM_TOTAL},
    {"a rest", LAYOUT_E_CAP_NU_TOTAL, 1, {.length = 8, .repeat = 2, .ndim = 1, .dim = {DIM(16, 9)}}, LAYOUT_CAP_NONUNIFORM_TOTAL},
    {"more repetition than items", LAYOUT_E_CAP_NU_TOTAL, 1, {.length = 8, .repeat = 5, .ndim = 1, .dim = {DIM(16, 4)}}, LAYOUT_CAP_NONUNIFORM_TOTAL},
};
/* clang-format on */

Test(layout, bad_entries)
{
    for (uint32_t i = 0; i < COUNT(bad_entries); i++) {
        struct layout_entry_desc e[] = {sound, bad_entries[i].e};
        struct layout_limits limits = all;
        struct layout_desc d = {.type = bad_entries[i].type, .count = 2, .entry = e};
        uint32_t where = 99;
        uint64_t total = 99;
        if (d.type == LAYOUT_COMPOSITE)
            e[0].ndim = 0;
        limits.caps &= ~bad_entries[i].without;
        enum layout_error err = layout_check(&d, &limits, &where, &total);
        cr_expect_eq(err, bad_entries[i].error, "%s: %s", bad_entries[i].what, layout_error_text(err));
        cr_expect_eq(where, 1, "%s: entry %u", bad_entries[i].what, where);
        cr_expect_eq(total, 99, "%s", bad_entries[i].what);
        if (bad_entries[i].without) {
            limits.caps |= bad_entries[i].without;
            cr_expect_eq(layout_check(&d, &limits, NULL, NULL), LAYOUT_OK, "%s", bad_entries[i].what);
        }
    }
}

Test(layout, bad_layouts)
{
    struct layout_entry_desc plain = {.length = 8}, twice[] = {sound, sound};
    twice[0].repeat = twice[1].repeat = 2;
    const struct {
        const char *what;
        enum layout_error error;
        struct layout_desc d;
        uint32_t without;
    } t[] = {
        {"type", LAYOUT_E_TYPE, {.type = 2, .count = 1, .entry = &plain}, 0},
        {"type", LAYOUT_E_TYPE, {.type = UINT32_MAX, .count = 1, .entry = &plain}, 0},
        {"composite", LAYOUT_E_CAP_COMPOSITE, {.type = 0, .count = 1, .entry = &plain}, LAYOUT_CAP_COMPOSITE},
        {"interleaved", LAYOUT_E_CAP_INTERLEAVED, {.type = 1, .count = 1, .entry = &sound}, LAYOUT_CAP_INTERLEAVED},
        {"none", LAYOUT_E_NO_ENTRIES, {.type = 0, .count = 0, .entry = NULL}, 0},
        {"1,025", LAYOUT_E_ENTRIES, {.type = 0, .count = 1025, .entry = NULL}, 0},
        {"2^32 - 1", LAYOUT_E_ENTRIES, {.type = 1, .count = UINT32_MAX, .entry = NULL}, 0},
        {"repetition",
         LAYOUT_E_CAP_REPETITION,
         {.type = 1, .count = 2, .entry = twice},
         LAYOUT_CAP_REPETITION | LAYOUT_CAP_NONUNIFORM_REPETITION},
    };
    for (uint32_t i = 0; i < COUNT(t); i++) {
        struct layout_limits limits = all;
        uint32_t where = 99;
        limits.caps &= ~t[i].without;
        cr_expect_eq(layout_check(&t[i].d, &limits, &where, NULL), t[i].error, "%s", t[i].what);
        cr_expect_eq(where, 0, "%s", t[i].what);
    }
    /* the limits of the window (max_entries) and of the device (max_dims) count as well */
    struct layout_desc two = {.type = LAYOUT_INTERLEAVED, .count = 2, .entry = twice};
    struct layout_limits limits = all;
    limits.max_entries = 2;
    cr_expect_eq(layout_check(&two, &limits, NULL, NULL), LAYOUT_OK);
    limits.max_entries = 1;
    cr_expect_eq(layout_check(&two, &limits, NULL, NULL), LAYOUT_E_ENTRIES);
    limits = all;
    limits.max_dims = 0;
    cr_expect_eq(layout_check(&two, &limits, NULL, NULL), LAYOUT_E_DIMS);
}

#define LW 1u
#define RW 2u
#define RR 4u
#define PD 7u

Test(layout, bad_objects)
{
    /* valid: 0x1000 … 0x1037 */
    const struct layout_object mr = {
        .kind = LAYOUT_MR, .may_bind = true, .pd = PD, .grants = LW | RW | RR, .start = 0x1000, .length = 0x38};
    const struct layout_object mw = {
        .kind = LAYOUT_MW, .bound = true, .pd = PD, .grants = LW | RR, .length = 0x1038, .depth = 7};
    struct layout_object o[] = {[0] = mr, [1] = mr, [2] = mr,  [3] = mr,  [4] = mr,  [5] = mr,  [6] = mr,  [7] = mr,
                                [8] = mr, [9] = mw, [10] = mw, [11] = mw, [12] = mw, [13] = mw, [14] = mw, [15] = mw};
    static const enum layout_error want[] = {
        LAYOUT_OK,          LAYOUT_E_OBJECT,  LAYOUT_E_PD,        LAYOUT_E_NOT_BINDABLE,
        LAYOUT_E_MR_ACCESS, LAYOUT_E_OUTSIDE, LAYOUT_E_OUTSIDE,   LAYOUT_E_OUTSIDE,
        LAYOUT_E_OUTSIDE,   LAYOUT_OK,        LAYOUT_E_PD,        LAYOUT_E_UNBOUND,
        LAYOUT_E_SELF,      LAYOUT_E_DEPTH,   LAYOUT_E_MW_ACCESS, LAYOUT_E_OUTSIDE};
    o[1].kind = LAYOUT_NO_OBJECT;
    o[2].pd++;
    o[3].may_bind = false;
    o[4].grants = RR;
    o[5].length--; /* the last byte is outside */
    o[6].start++; /* the first byte is outside */
    o[7].start = 0x2000;
    o[8].length = 0;
    o[10].pd++;
    o[11].bound = false;
    o[12].self = true;
    o[13].depth = 8;
    o[14].grants = RR;
    o[15].length--;
    for (uint32_t i = 0; i < COUNT(o); i++) {
        uint8_t depth = 0;
        enum layout_error err = layout_check_object(&sound, &o[i], &all, PD, LW | RR, &depth);
        cr_expect_eq(err, want[i], "object %u: %s", i, layout_error_text(err));
        cr_expect_eq(depth, err ? 0 : o[i].depth + 1, "object %u", i);
    }
    uint8_t depth = 5;
    cr_expect_eq(layout_check_object(&sound, &mr, &all, PD, 0, &depth), LAYOUT_OK);
    cr_expect_eq(depth, 5, "the deepest one counts");
    /* an object at the end of the address space */
    struct layout_object last = mr;
    struct layout_entry_desc e = {.addr = MAX - 8, .length = 8};
    last.start = MAX - 100;
    last.length = 100;
    cr_expect_eq(layout_check_object(&e, &last, &all, PD, 0, &depth), LAYOUT_OK);
    e.addr++;
    cr_expect_neq(layout_check_object(&e, &last, &all, PD, 0, &depth), LAYOUT_OK);
}

Test(layout, every_error_has_a_text)
{
    for (unsigned i = 0; i < LAYOUT_NUM_ERRORS; i++) {
        cr_expect(strlen(layout_error_text(i)) > 4);
        for (unsigned k = 0; k < i; k++)
            cr_expect_str_neq(layout_error_text(i), layout_error_text(k));
    }
    cr_expect_str_eq(layout_error_text(LAYOUT_NUM_ERRORS), "unknown error");
}
