// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/loop/completion_delay.h"

#include <stdlib.h>

#include "daemon/base/clock.h"

#define SLOTS 512u
#define DELAY_NS (250 * NS_PER_US) /* the longest */
/* Completions become due at multiples of this time, so that several come together. */
#define BUNCH_NS (50 * NS_PER_US)

struct delayed {
    struct completion c;
    uint64_t queue; /* the queue whose order it belongs to */
    uint64_t due;
    uint64_t rank; /* of the queue, in its bunch */
    uint64_t number; /* counts all completions */
};

struct completion_delay {
    struct unkind *unkind;
    uint64_t number;
    unsigned n;
    struct delayed e[SLOTS];
    struct completion taken;
};

struct completion_delay *completion_delay_new(struct unkind *u)
{
    struct completion_delay *q = calloc(1, sizeof(*q));

    if (q)
        q->unkind = u;
    return q;
}

void completion_delay_free(struct completion_delay *q)
{
    free(q);
}

/* Completions of matching lists have the order of their SRQ. */
static uint64_t queue_of(const struct completion *c)
{
    return c->of == OF_REQUEST ? (uint64_t)c->qpn << 1 | c->is_recv : (uint64_t)(uintptr_t)c->srq_owner << 1;
}

/* When the last completion of this queue is due; 0: none waits. */
static uint64_t last_due(const struct completion_delay *q, uint64_t queue)
{
    uint64_t due = 0;

    for (unsigned i = 0; i < q->n; i++) {
        if (q->e[i].queue == queue && q->e[i].due > due)
            due = q->e[i].due;
    }
    return due;
}

bool completion_delay_push(struct completion_delay *q, const struct completion *c, uint64_t now)
{
    if (q->n == SLOTS)
        return false;
    /* The address of an SRQ is not the same in each run, so it must not decide. */
    uint64_t draw = unkind_next(q->unkind, UNKIND_COMPLETIONS, (uint64_t)c->qpn << 1 | c->is_recv);
    uint64_t queue = queue_of(c), before = last_due(q, queue), due = now;

    if (draw % 4) {
        due = (now + (draw >> 8) % DELAY_NS) / BUNCH_NS * BUNCH_NS + BUNCH_NS;
        q->unkind->counters.unkind_completions++;
    }
    due = due > before ? due : before;
    q->e[q->n++] = (struct delayed){
        .c = *c, .queue = queue, .due = due, .rank = unkind_mix(queue ^ q->unkind->seed ^ due), .number = q->number++};
    return true;
}

/* In a queue, a later completion is never due earlier. If both are due at the same time, both have the same rank, and their
 * number decides. */
static bool is_before(const struct delayed *a, const struct delayed *b)
{
    if (a->due != b->due)
        return a->due < b->due;
    return a->rank != b->rank ? a->rank < b->rank : a->number < b->number;
}

const struct completion *completion_delay_pop(struct completion_delay *q, uint64_t now)
{
    struct delayed *first = NULL;

    for (unsigned i = 0; i < q->n; i++) {
        if (q->e[i].due <= now && (!first || is_before(&q->e[i], first)))
            first = &q->e[i];
    }
    if (!first)
        return NULL;
    q->taken = first->c;
    *first = q->e[--q->n];
    return &q->taken;
}

uint64_t completion_delay_deadline(const struct completion_delay *q)
{
    uint64_t due = NEVER;

    for (unsigned i = 0; i < q->n; i++)
        due = q->e[i].due < due ? q->e[i].due : due;
    return due;
}
