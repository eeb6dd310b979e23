// SPDX-License-Identifier: BSD-2-Clause
/* The reorder queues of QPs and their pool. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/base/reorder.h"

#define PAYLOAD 64u
#define SLOTS 8u

static struct reorder_pool pool;
static struct reorder_queue queue, other;
static void *mem;

static void setup(void)
{
    mem = aligned_alloc(64, SLOTS * reorder_slot_size(PAYLOAD));
    cr_assert(mem);
    memset(mem, 0, SLOTS * reorder_slot_size(PAYLOAD));
    reorder_pool_init(&pool, mem, SLOTS, PAYLOAD);
    list_init(&queue.packets);
    list_init(&other.packets);
}
static void teardown(void)
{
    free(mem);
}
TestSuite(reorder, .init = setup, .fini = teardown);

static enum reorder_result hold(struct reorder_queue *q, uint32_t psn, uint32_t psns)
{
    uint8_t bytes[PAYLOAD];
    struct pkt p = {.psn = psn & PSN_MASK, .payload = bytes, .payload_len = psns == 1 ? PAYLOAD : 0};
    memset(bytes, (int)psn, sizeof bytes);
    return reorder_hold(&pool, q, &p, psns, 0xfffff0);
}

static void expect_first(uint32_t psn)
{
    cr_assert(queue.count);
    const struct pkt *p = &reorder_first(&queue)->p;
    cr_expect_eq(p->psn, psn & PSN_MASK, "%u", p->psn);
    cr_expect(p->payload_len == 0 || p->payload[PAYLOAD - 1] == (uint8_t)psn, "its own copy of the payload");
    reorder_drop_first(&pool, &queue);
}

Test(reorder, packets_come_out_in_the_order_of_their_psns)
{
    cr_expect_eq(hold(&queue, 0xfffff5, 1), REORDER_GAP);
    cr_expect_eq(hold(&queue, 0xfffff6, 1), REORDER_HELD);
    cr_expect_eq(hold(&queue, 0x1000001, 1), REORDER_GAP, "over the wrap");
    cr_expect_eq(hold(&queue, 0xfffff3, 1), REORDER_HELD, "a part of a gap that was known");
    expect_first(0xfffff3);
    expect_first(0xfffff5);
    expect_first(0xfffff6);
    expect_first(0x1000001);
    cr_expect_eq(queue.count, 0);
}

Test(reorder, a_packet_that_is_held_already)
{
    cr_expect_eq(hold(&queue, 0xfffff5, 1), REORDER_GAP);
    cr_expect_eq(hold(&queue, 0xfffff5, 1), REORDER_TWICE);
    cr_expect_eq(hold(&queue, 0xfffff8, 10), REORDER_GAP, "a READ takes a PSN for each response");
    cr_expect_eq(hold(&queue, 0xfffffa, 1), REORDER_TWICE);
    cr_expect_eq(hold(&queue, 0x1000002, 1), REORDER_HELD);
    cr_expect_eq(queue.count, 3);
}

Test(reorder, a_queue_may_take_as_many_slots_as_are_left)
{
    for (uint32_t i = 0; i < SLOTS / 2; i++)
        cr_expect_neq(hold(&queue, 0xfffff2 + i, 1), REORDER_NO_ROOM);
    cr_expect_eq(hold(&queue, 0xfffffe, 1), REORDER_NO_ROOM);
    cr_expect_neq(hold(&other, 0xfffff2, 1), REORDER_NO_ROOM);
    cr_expect_neq(hold(&other, 0xfffff3, 1), REORDER_NO_ROOM);
    cr_expect_eq(hold(&other, 0xfffff4, 1), REORDER_NO_ROOM);
    cr_expect_eq(pool.free, 2);
}

Test(reorder, a_slot_is_used_again_only_after_the_batch)
{
    cr_expect_eq(hold(&queue, 0xfffff5, 1), REORDER_GAP);
    const uint8_t *payload = reorder_first(&queue)->p.payload;
    reorder_drop_first(&pool, &queue);
    for (uint32_t i = 0; i < 3; i++)
        hold(&queue, 0xfffff7 + i, 1);
    cr_expect_eq(payload[0], 0xf5, "a deferred write may still read it");
    reorder_clear(&pool, &queue);
    cr_expect_eq(pool.free, SLOTS - 4);
    reorder_reuse(&pool);
    cr_expect_eq(pool.free, SLOTS);
    for (uint32_t i = 0; i < SLOTS / 2; i++)
        cr_expect_neq(hold(&queue, 0xfffff5 + i, 1), REORDER_NO_ROOM);
    cr_expect_eq(pool.untouched, 4, "touched slots come first");
}

Test(reorder, a_packet_longer_than_a_slot_is_not_held)
{
    static const uint8_t bytes[PAYLOAD + 1];
    struct pkt p = {.psn = 0xfffff5, .payload = bytes, .payload_len = sizeof bytes};
    cr_expect_eq(reorder_hold(&pool, &queue, &p, 1, 0xfffff0), REORDER_NO_ROOM);
}

Test(reorder, a_pool_without_slots_holds_nothing)
{
    reorder_pool_init(&pool, mem, 0, PAYLOAD);
    cr_expect_eq(hold(&queue, 0xfffff5, 1), REORDER_NO_ROOM);
}
