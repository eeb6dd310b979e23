// SPDX-License-Identifier: BSD-2-Clause
/* Measures the cost of tag matching, in nanoseconds per message, by the depth of the entry that matches. Each message
 * is matched; then its entry is freed and added again at the tail. For comparison it also measures a linear search
 * for the same tags, as software does it.
 * Usage: tm_depth [ROUNDS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/core/tm/tag_list.h"

struct kind {
    const char *name;
    uint32_t wildcards; /* so many of the entries, in front, have wildcards that don't match */
    uint32_t masks; /* of so many different masks */
};
static const struct kind kinds[] = {
    {"exact", 0, 0},
    {"wildcards, 1 mask", UINT32_MAX, 1},
    {"half wildcards, 4 masks", 2, 4},
};

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t tag_of(uint32_t i)
{
    return (uint64_t)i << 32 | 0x1234;
}

static uint64_t mask_of(const struct kind *k, uint32_t i, uint32_t depth)
{
    uint32_t end = k->wildcards == 0 ? 0 : k->wildcards == UINT32_MAX ? depth : depth / k->wildcards;
    return i < end ? ~(uint64_t)(i % k->masks + 1) : UINT64_MAX;
}

static void add(struct tag_list *tm, uint32_t slot, uint32_t generation, uint64_t tag, uint64_t mask)
{
    struct sge sge = {.addr = 0x1000, .length = 4096, .lkey = 1};
    struct tm_op op = {.opcode = TM_ADD,
                       .handle = generation << TM_SLOT_BITS | slot,
                       .tag = tag & mask,
                       .mask = mask,
                       .num_sge = 1,
                       .sge = &sge};
    struct tm_op_result r;
    tm_op(tm, &op, &r, 0);
}

/* Messages that match the entry that was posted last, so that all others are in front of it. */
static double measure(const struct kind *k, uint32_t depth, uint32_t rounds)
{
    struct tm_params p = {.max_num_tags = TM_MAX_TAGS, .max_ops = 1, .trace_slots = 0};
    struct tag_list *tm = tm_init(calloc(1, tm_size(&p)), &p);
    for (uint32_t i = 0; i < depth; i++)
        add(tm, i, 0, tag_of(i), mask_of(k, i, depth));
    uint32_t last = depth - 1;
    uint64_t start = now_ns();
    for (uint32_t n = 1; n <= rounds; n++) {
        uint8_t bytes[TMH_LEN];
        struct tmh tmh = {.opcode = TMH_EAGER, .tag = tag_of(last)};
        tmh_encode(&tmh, bytes);
        struct tm_msg m = {.data = bytes, .len = sizeof(bytes), .whole = true};
        struct tm_decision d;
        struct tm_rx rx;
        tm_decide(tm, &m, &d);
        if (!d.entry || TM_SLOT(d.entry->handle) != last) {
            fprintf(stderr, "%s, depth %u: wrong match\n", k->name, depth);
            exit(1);
        }
        tm_commit(tm, &d, &rx, 0);
        tm_done(tm, &rx, 0);
        add(tm, last, n & 0xfffff, tag_of(last), mask_of(k, last, depth));
    }
    double ns = (double)(now_ns() - start) / rounds;
    free(tm);
    return ns;
}

static double measure_linear(uint32_t depth, uint32_t rounds)
{
    struct plain {
        struct plain *next;
        uint64_t tag, mask;
    } *list = calloc(depth, sizeof(*list));
    for (uint32_t i = 0; i < depth; i++) {
        list[i].tag = tag_of(i);
        list[i].mask = UINT64_MAX;
        list[i].next = i + 1 < depth ? &list[i + 1] : NULL;
    }
    uint64_t start = now_ns();
    for (uint32_t n = 0; n < rounds; n++) {
        volatile uint64_t tag = tag_of(depth - 1);
        const struct plain *e = list;
        while (e && (tag & e->mask) != e->tag)
            e = e->next;
        if (!e)
            exit(1);
    }
    double ns = (double)(now_ns() - start) / rounds;
    free(list);
    return ns;
}

int main(int argc, char **argv)
{
    static const uint32_t depths[] = {1, 10, 100, 1000, 4000};
    uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 100000;
    printf("%-26s", "ns per message, depth");
    for (size_t d = 0; d < sizeof(depths) / sizeof(*depths); d++)
        printf("%10u", depths[d]);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        printf("\n%-26s", kinds[i].name);
        for (size_t d = 0; d < sizeof(depths) / sizeof(*depths); d++)
            printf("%10.1f", measure(&kinds[i], depths[d], rounds));
    }
    printf("\n%-26s", "linear search, exact");
    for (size_t d = 0; d < sizeof(depths) / sizeof(*depths); d++)
        printf("%10.1f", measure_linear(depths[d], rounds / 10 + 1));
    printf("\n");
    return 0;
}
