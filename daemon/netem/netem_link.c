// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/netem/netem_link.h"

#define NS_PER_SECOND 1000000000ull
/* A queue can't be longer than that: the number is of an earlier boot of this machine, or nonsense. */
#define QUEUE_MOST_NS (1000 * NS_PER_SECOND)

__extension__ typedef unsigned __int128 wide;

/* How long the link sends so many bytes, in units of 1/NETEM_UNITS ns. */
static uint64_t units_of(const struct netem_link *l, uint64_t bytes)
{
    wide units = (wide)bytes * 8 * NS_PER_SECOND * NETEM_UNITS / l->bits_per_s;

    return units > QUEUE_MOST_NS * NETEM_UNITS ? QUEUE_MOST_NS * NETEM_UNITS : (uint64_t)units;
}

/* How many bytes the link sends in such a time. */
static uint64_t bytes_of(const struct netem_link *l, uint64_t units)
{
    return (uint64_t)((wide)units * l->bits_per_s / 8 / NS_PER_SECOND / NETEM_UNITS);
}

static bool marks(const struct netem_link *l, uint64_t bytes, uint64_t random)
{
    if (!l->mark_bytes || bytes < l->mark_bytes)
        return false;
    if (bytes >= l->mark_all_bytes)
        return true;
    return (random >> 32) % (l->mark_all_bytes - l->mark_bytes) < bytes - l->mark_bytes;
}

/* The packet waits for those before it, and is sent. Sets p->arrival to the end of that. */
static void send(const struct netem_link *l, struct netem_queue *q, uint32_t len, uint64_t random, uint64_t now,
                 struct netem_passage *p)
{
    uint64_t busy = atomic_load_explicit(&q->busy_until, memory_order_relaxed), begin = now * NETEM_UNITS, end;

    do {
        uint64_t wait = busy > begin && busy - begin <= QUEUE_MOST_NS * NETEM_UNITS ? busy - begin : 0;
        uint64_t bytes = bytes_of(l, wait);

        p->lost = l->queue_bytes && bytes + len > l->queue_bytes;
        p->marked = marks(l, bytes, random);
        end = begin + wait + units_of(l, len);
    } while (!p->lost && !atomic_compare_exchange_weak_explicit(&q->busy_until, &busy, end, memory_order_relaxed,
                                                                memory_order_relaxed));
    p->arrival = (end + NETEM_UNITS - 1) / NETEM_UNITS;
}

/* No packet arrives before one that was sent earlier. */
static uint64_t keep_order(struct netem_queue *q, uint64_t arrival)
{
    uint64_t last = atomic_load_explicit(&q->last_arrival, memory_order_relaxed);

    do {
        if (last > arrival && last - arrival <= QUEUE_MOST_NS)
            arrival = last;
    } while (!atomic_compare_exchange_weak_explicit(&q->last_arrival, &last, arrival, memory_order_relaxed,
                                                    memory_order_relaxed));
    return arrival;
}

struct netem_passage netem_link_pass(const struct netem_link *l, struct netem_queue *q, uint32_t len, uint64_t random,
                                     uint64_t now)
{
    struct netem_passage p = {.arrival = now};

    if (l->bits_per_s)
        send(l, q, len, random, now, &p);
    if (p.lost)
        return p;
    p.arrival += l->latency_ns;
    if (l->jitter_ns)
        p.arrival = keep_order(q, p.arrival + random % (l->jitter_ns + 1));
    return p;
}
