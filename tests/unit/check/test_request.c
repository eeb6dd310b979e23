// SPDX-License-Identifier: BSD-2-Clause
/* Outstanding requests of the checker, and the memory that they fill. */
#include "src/check/objects/request.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct request_queue queue;

static void setup(void)
{
    TAILQ_INIT(&queue);
}
static void teardown(void)
{
    request_remove_all(&queue);
}
TestSuite(check_request, .init = setup, .fini = teardown);

static struct request *filling(uint64_t id, uint64_t from, uint32_t length, const struct request **other)
{
    const struct request like = {.wr_id = id, .opcode = OPCODE_RECV};
    const struct ibv_sge sge = {from, length, 0};
    struct request *r = request_add(&queue, &like, &sge, 1);

    *other = request_add_targets(r);
    return r;
}

Test(check_request, targets_that_touch_do_not_overlap)
{
    const struct request *other;

    filling(1, 1000, 100, &other);
    filling(2, 1100, 100, &other);
    cr_expect_null(other);
    filling(3, 900, 100, &other);
    cr_expect_null(other);
    filling(4, 1150, 0, &other);
    cr_expect_null(other, "an empty target");
    filling(5, 0, 5000, &other);
    cr_expect_null(other, "memory that is not in the program");
}

Test(check_request, overlaps_from_all_sides_are_found)
{
    static const struct {
        uint64_t from;
        uint32_t length;
        uint64_t with;
    } cases[] = {{1099, 1, 1}, {1000, 1, 1}, {990, 11, 1}, {990, 500, 1}, {1050, 10, 1}, {1299, 50, 2}, {1, 5000, 1}};
    const struct request *other;

    filling(1, 1000, 100, &other);
    filling(2, 1200, 100, &other);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct request *r = filling(9, cases[i].from, cases[i].length, &other);

        cr_assert(other && other->wr_id == cases[i].with, "case %zu", i);
        request_remove(&queue, r);
    }
}

Test(check_request, the_memory_of_a_request_that_is_done_is_free)
{
    const struct request *other;
    const struct ibv_sge inside = {1010, 4, 0};

    request_remove(&queue, filling(1, 1000, 100, &other));
    cr_expect_null(request_writing(&inside));
    struct request *r = filling(2, 1000, 100, &other);
    cr_expect_null(other);
    cr_expect_eq(request_writing(&inside), r);
    filling(3, 1000, 100, &other); /* is not kept */
    cr_expect_eq(other, r);
    request_remove(&queue, r);
    cr_expect_null(request_writing(&inside));
}

/* Against a search through all, with random targets. */
Test(check_request, many_targets)
{
    struct request *kept[64];
    const struct request *other;
    unsigned n = 0, found = 0;

    srand(7);
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t from = (unsigned)rand() % 4096 + 1;
        uint32_t length = (unsigned)rand() % 64 + 1;
        bool overlaps = false;

        for (unsigned k = 0; k < n; k++)
            overlaps |= kept[k]->sge[0].addr < from + length && from < kept[k]->sge[0].addr + kept[k]->sge[0].length;
        struct request *r = filling(i, from, length, &other);
        cr_assert_eq(other != NULL, overlaps, "request %u", i);
        found += overlaps;
        if (overlaps) {
            request_remove(&queue, r);
        } else if (n < 64) {
            kept[n++] = r;
        } else {
            unsigned k = (unsigned)rand() % 64;
            request_remove(&queue, kept[k]);
            kept[k] = r;
        }
    }
    cr_expect(found > 1000 && found < 19000, "%u overlaps", found);
}

Test(check_request, requests_are_found_by_their_number)
{
    const struct request like = {.wr_id = 7}, unlike = {.wr_id = 8};
    struct request *first = request_add(&queue, &like, NULL, 0);

    request_add(&queue, &unlike, NULL, 0);
    request_add(&queue, &like, NULL, 0);
    cr_expect_eq(request_find(&queue, 7), first, "the oldest");
    cr_expect_null(request_find(&queue, 9));
}
