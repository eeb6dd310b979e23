// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/netem/delay_queue.h"

#include <stdlib.h>
#include <string.h>

static bool earlier(const struct delay_queue_entry *a, const struct delay_queue_entry *b)
{
    return a->due < b->due || (a->due == b->due && a->order < b->order);
}

static void swap(struct delay_queue *q, unsigned a, unsigned b)
{
    struct delay_queue_entry *t = q->heap[a];

    q->heap[a] = q->heap[b];
    q->heap[b] = t;
}

/* There is room, because an entry was taken out, or delay_queue_push has looked. */
void delay_queue_put_back(struct delay_queue *q, struct delay_queue_entry *e, uint64_t due)
{
    unsigned i = q->n++;

    e->due = due;
    e->order = q->next_order++;
    q->bytes += e->pkt.len;
    q->heap[i] = e;
    for (; i && earlier(q->heap[i], q->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(q, i, (i - 1) / 2);
}

struct delay_queue_entry *delay_queue_push(struct delay_queue *q, const struct tx_pkt *pkt, const uint8_t *p,
                                           const struct fault_verdict *verdict, const struct netem_trip *trip,
                                           uint64_t due)
{
    struct delay_queue_entry *e;
    uint32_t len = pkt->len;

    if (q->n == DELAY_QUEUE_PACKETS || q->bytes + len > DELAY_QUEUE_BYTES)
        return NULL;
    if (!q->heap)
        q->heap = calloc(DELAY_QUEUE_PACKETS, sizeof(q->heap[0]));
    e = q->heap ? malloc(sizeof(*e) + len) : NULL;
    if (!e)
        return NULL;
    e->verdict = *verdict;
    e->trip = *trip;
    e->made = (struct pm_decision){.strike = PM_STRIKE_NONE};
    e->av = *pkt->av;
    e->pkt = *pkt;
    memcpy(e->data, p, len);
    delay_queue_put_back(q, e, due);
    return e;
}

struct delay_queue_entry *delay_queue_pop(struct delay_queue *q, uint64_t now)
{
    unsigned i = 0, child;

    if (q->n == 0 || q->heap[0]->due > now)
        return NULL;
    struct delay_queue_entry *e = q->heap[0];
    q->bytes -= e->pkt.len;
    q->heap[0] = q->heap[--q->n];
    while ((child = 2 * i + 1) < q->n) {
        if (child + 1 < q->n && earlier(q->heap[child + 1], q->heap[child]))
            child++;
        if (!earlier(q->heap[child], q->heap[i]))
            break;
        swap(q, i, child);
        i = child;
    }
    return e;
}

void delay_queue_fini(struct delay_queue *q)
{
    for (unsigned i = 0; i < q->n; i++)
        free(q->heap[i]);
    free(q->heap);
    memset(q, 0, sizeof(*q));
}
