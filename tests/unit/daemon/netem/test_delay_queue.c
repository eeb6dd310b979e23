// SPDX-License-Identifier: BSD-2-Clause
/* Packets that fault injection delays. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "daemon/netem/delay_queue.h"

Test(delay_queue, due_order_then_arrival_order)
{
    static const uint64_t due[] = {50, 10, 40, 10, 30, 20, 10};
    static const uint8_t order[] = {1, 3, 6, 5, 4, 2, 0};
    struct delay_queue q = {0};
    struct fault_verdict v = {.action = FAULT_PASS};
    struct netem_trip trip = {.from = 3};
    struct av av = {.hop_limit = 9};
    struct tx_pkt pkt = {.av = &av, .len = 1};

    cr_assert_eq(delay_queue_deadline(&q), NEVER);
    for (uint8_t i = 0; i < 7; i++)
        cr_assert(delay_queue_push(&q, &pkt, &i, &v, &trip, due[i]));
    cr_assert_eq(delay_queue_deadline(&q), 10);
    cr_assert_null(delay_queue_pop(&q, 9));
    for (unsigned i = 0; i < 7; i++) {
        struct delay_queue_entry *e = delay_queue_pop(&q, 50);

        cr_assert_eq(e->data[0], order[i]);
        cr_assert_eq(e->av.hop_limit, 9);
        cr_assert_eq(e->trip.from, 3);
        free(e);
    }
    cr_assert_eq(q.bytes, 0);
    delay_queue_fini(&q);
}

Test(delay_queue, put_back)
{
    struct delay_queue q = {0};
    struct fault_verdict v = {.action = FAULT_PASS};
    struct netem_trip trip = {.from = 3};
    struct av av = {.hop_limit = 9};
    struct tx_pkt pkt = {.av = &av, .len = 1};

    for (uint8_t i = 0; i < 3; i++)
        cr_assert(delay_queue_push(&q, &pkt, &i, &v, &trip, 10 + i));
    struct delay_queue_entry *e = delay_queue_pop(&q, 10);
    cr_assert_eq(q.bytes, 2);
    delay_queue_put_back(&q, e, 12);
    cr_assert_eq(q.bytes, 3);
    for (unsigned i = 1; i <= 3; i++) {
        e = delay_queue_pop(&q, 99);
        cr_assert_eq(e->data[0], i % 3, "behind those that are due at the same time");
        free(e);
    }
    delay_queue_fini(&q);
}

Test(delay_queue, bounded)
{
    static uint8_t packet[4200];
    struct delay_queue q = {0};
    struct fault_verdict v = {.action = FAULT_PASS};
    struct netem_trip trip = {.from = 3};
    struct av av = {.hop_limit = 9};
    struct tx_pkt pkt = {.av = &av, .len = sizeof(packet)};
    unsigned n = 0;

    while (delay_queue_push(&q, &pkt, packet, &v, &trip, n))
        n++;
    cr_assert(n <= DELAY_QUEUE_PACKETS && (uint64_t)n * sizeof(packet) <= DELAY_QUEUE_BYTES);
    cr_assert(n > 3000);
    delay_queue_fini(&q);
    cr_assert_eq(delay_queue_deadline(&q), NEVER);
}
