// SPDX-License-Identifier: BSD-2-Clause
/* Late completions (daemon/loop/completion_delay.h): each comes once, those of a queue in their order, those of different
 * queues not. The seed decides. */
#include <criterion/criterion.h>

#include "daemon/loop/completion_delay.h"

#define QUEUES 8u
#define EACH 50u

static struct unkind unkind;
static struct completion_delay *q;

static void start(void)
{
    unkind_init(&unkind, UNKIND_COMPLETIONS, 4);
    q = completion_delay_new(&unkind);
    cr_assert_not_null(q);
}

static void finish(void)
{
    completion_delay_free(q);
}

static void push(uint32_t queue, uint32_t number, uint64_t now)
{
    struct completion c = {.qpn = 17 + queue / 2, .is_recv = queue % 2, .wr_id = number};

    cr_assert(completion_delay_push(q, &c, now));
}

/* Takes all that is due. Returns a hash of their order. */
static uint64_t take(uint64_t now, uint32_t next[QUEUES], unsigned *changes)
{
    const struct completion *c;
    uint64_t hash = 0;
    uint32_t last = QUEUES;

    while ((c = completion_delay_pop(q, now)) != NULL) {
        uint32_t queue = 2 * (c->qpn - 17) + c->is_recv;

        cr_assert_eq(c->wr_id, next[queue], "queue %u keeps its order", queue);
        next[queue]++;
        *changes += queue != last;
        last = queue;
        hash = unkind_mix(hash ^ (queue << 8 | c->wr_id));
    }
    return hash;
}

static uint64_t scenario(unsigned *changes)
{
    uint32_t next[QUEUES] = {0};
    uint64_t now = 1000000, hash = 0;

    for (uint32_t i = 0; i < EACH; i++) {
        for (uint32_t k = 0; k < QUEUES; k++)
            push(k, i, now);
        now += 20000;
        hash = unkind_mix(hash ^ take(now, next, changes));
    }
    while (completion_delay_deadline(q) != UINT64_MAX) {
        cr_assert_gt(completion_delay_deadline(q), now);
        cr_assert_leq(completion_delay_deadline(q), now + 300000);
        now = completion_delay_deadline(q);
        cr_assert_null(completion_delay_pop(q, now - 1), "none is early");
        hash = unkind_mix(hash ^ take(now, next, changes));
    }
    for (unsigned k = 0; k < QUEUES; k++)
        cr_assert_eq(next[k], EACH);
    return hash;
}

Test(completion_delay, each_comes_once_and_in_order, .init = start, .fini = finish)
{
    unsigned changes = 0, changes_again = 0;
    uint64_t hash = scenario(&changes);

    cr_assert_gt(unkind.counters.unkind_completions, QUEUES * EACH / 2);
    finish();
    start();
    cr_assert_eq(scenario(&changes_again), hash, "the same seed gives the same order");
    cr_assert_eq(changes, changes_again);
    finish();
    start();
    unkind.seed = 5;
    cr_assert_neq(scenario(&changes_again), hash);
}

Test(completion_delay, all_at_once, .init = start, .fini = finish)
{
    const struct completion c = {.qpn = 17};
    uint32_t next[QUEUES] = {0};
    unsigned changes = 0, n = 0;

    for (uint32_t i = 0; i < EACH; i++)
        push(i % QUEUES, i / QUEUES, 5);
    take(UINT64_MAX, next, &changes);
    cr_assert_eq(next[0], (EACH + QUEUES - 1) / QUEUES);
    cr_assert_eq(completion_delay_deadline(q), UINT64_MAX);
    while (completion_delay_push(q, &c, 5))
        n++;
    cr_assert(n >= 100 && n < 100000, "%u have room", n);
    cr_assert_not_null(completion_delay_pop(q, UINT64_MAX));
    cr_assert(completion_delay_push(q, &c, 5));
}
