// SPDX-License-Identifier: BSD-2-Clause
#include "tests/tagmpi/ledger.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ledger_fail(const struct ledger *l, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "stress: seed %llu, rank %u: ", (unsigned long long)l->plan->seed, l->rank);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

void ledger_init(struct ledger *l, const struct plan *plan, unsigned rank)
{
    *l = (struct ledger){.plan = plan, .rank = rank};
    for (unsigned from = 0; from < plan->ranks; from++) {
        for (uint32_t i = 0; i < plan->messages; i++) {
            struct message m = plan_message(plan, from, i);
            if (m.to != rank)
                continue;
            l->left[from][m.comm][m.tag]++;
            l->expected++;
        }
    }
    l->entry = calloc(l->expected + 1, sizeof(*l->entry));
    if (!l->entry)
        ledger_fail(l, "no memory");
}

void ledger_fini(struct ledger *l)
{
    free(l->entry);
}

/* --- which receives are safe ------------------------------------------------------------------- */

static bool accepts(const struct wish *w, unsigned comm, int source, int tag)
{
    return w->comm == comm && (w->source == TAGMPI_ANY_SOURCE || w->source == source) &&
           (w->tag == TAGMPI_ANY_TAG || w->tag == tag);
}

/* Is there a message that both would take? */
static bool rivals(const struct wish *a, const struct wish *b)
{
    return a->comm == b->comm &&
           (a->source == TAGMPI_ANY_SOURCE || b->source == TAGMPI_ANY_SOURCE || a->source == b->source) &&
           (a->tag == TAGMPI_ANY_TAG || b->tag == TAGMPI_ANY_TAG || a->tag == b->tag);
}

static uint32_t messages_left(const struct ledger *l, const struct wish *w)
{
    uint32_t n = 0;

    for (unsigned s = 0; s < l->plan->ranks; s++)
        for (int t = 0; t < PLAN_TAGS; t++)
            n += accepts(w, w->comm, (int)s, t) ? l->left[s][w->comm][t] : 0;
    return n;
}

static uint32_t count_rivals(const struct ledger *l, const struct wish *w, const uint32_t *open, unsigned count)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < count; i++)
        n += rivals(w, &l->entry[open[i]].wish);
    return n;
}

bool ledger_safe(const struct ledger *l, const struct wish *w, const uint32_t *open, unsigned count)
{
    if (messages_left(l, w) <= count_rivals(l, w, open, count))
        return false;
    for (unsigned i = 0; i < count; i++) {
        const struct wish *other = &l->entry[open[i]].wish;
        /* Among its rivals it finds itself, which stands for the new one. */
        if (rivals(w, other) && messages_left(l, other) <= count_rivals(l, other, open, count))
            return false;
    }
    return true;
}

/* --- one receive ------------------------------------------------------------------------------- */

uint32_t ledger_post(struct ledger *l, const struct wish *w)
{
    if (l->posted == l->expected)
        ledger_fail(l, "more receives than messages");
    l->entry[l->posted] = (struct entry){.wish = *w, .number = LEDGER_NO_NUMBER};
    return l->posted++;
}

/* The message must be one that is for us, as long as it is, and as it was sent. */
static void check_message(const struct ledger *l, const struct entry *e, uint32_t receive, const uint8_t *data)
{
    size_t at;

    if (e->number >= l->plan->messages)
        ledger_fail(l, "receive %u: no message has number %u", receive, e->number);
    struct message m = plan_message(l->plan, (unsigned)e->got.source, e->number);
    if (m.to != l->rank || m.comm != e->wish.comm || m.tag != e->got.tag || m.size != e->got.length)
        ledger_fail(
            l,
            "receive %u: tag %d, %zu bytes from rank %d, but that rank's message %u is for rank %u, tag %u, %u bytes",
            receive, e->got.tag, e->got.length, e->got.source, e->number, m.to, m.tag, m.size);
    if (!plan_check(l->plan, (unsigned)e->got.source, e->number, data, e->got.length, &at))
        ledger_fail(l, "receive %u: message %u of rank %d is wrong from byte %zu of %zu on", receive, e->number,
                    e->got.source, at, e->got.length);
}

void ledger_complete(struct ledger *l, uint32_t number, const struct tagmpi_status *got, const uint8_t *data)
{
    struct entry *e = &l->entry[number];

    e->got = *got;
    e->done = true;
    if (got->source < 0 || got->source >= (int)l->plan->ranks || got->tag < 0 || got->tag >= PLAN_TAGS ||
        !accepts(&e->wish, e->wish.comm, got->source, got->tag))
        ledger_fail(l, "receive %u asked for rank %d, tag %d and got rank %d, tag %d", number, e->wish.source,
                    e->wish.tag, got->source, got->tag);
    if (l->left[got->source][e->wish.comm][got->tag]-- == 0)
        ledger_fail(l, "receive %u got one more message from rank %d, tag %d than were sent", number, got->source,
                    got->tag);
    if (got->length >= PLAN_NUMBER) {
        memcpy(&e->number, data, sizeof(e->number));
        check_message(l, e, number, data);
    } else {
        memcpy(e->start, data, got->length);
    }
    l->completed++;
}

/* --- all of them ------------------------------------------------------------------------------- */

/* Finds the receive of every message of a rank in a communicator. Messages with one tag go to receives in the order
 * in which the receives were posted. So the next receive that got this tag must have got the next message. The
 * message's number confirms that, or its length and bytes if it is short. */
static uint32_t assign(const struct ledger *l, unsigned from, unsigned comm, uint32_t *message, uint32_t *receive)
{
    uint32_t next[PLAN_TAGS] = {0}, n = 0;
    size_t at;

    for (uint32_t i = 0; i < l->plan->messages; i++) {
        struct message m = plan_message(l->plan, from, i);
        if (m.to != l->rank || m.comm != comm)
            continue;
        uint32_t r = next[m.tag];
        while (r < l->expected && !(l->entry[r].done && l->entry[r].wish.comm == comm &&
                                    l->entry[r].got.source == (int)from && l->entry[r].got.tag == m.tag))
            r++;
        if (r == l->expected)
            ledger_fail(l, "message %u of rank %u, tag %u, was lost", i, from, m.tag);
        next[m.tag] = r + 1;
        const struct entry *e = &l->entry[r];
        if (e->number != LEDGER_NO_NUMBER && e->number != i)
            ledger_fail(l, "receive %u got message %u of rank %u instead of %u", r, e->number, from, i);
        if (e->got.length != m.size || (m.size < PLAN_NUMBER && !plan_check(l->plan, from, i, e->start, m.size, &at)))
            ledger_fail(l, "receive %u: %zu bytes from rank %u are not message %u of %u bytes", r, e->got.length, from,
                        i, m.size);
        message[n] = i;
        receive[n++] = r;
    }
    return n;
}

/* Checks that no message was overtaken. A message must not go to a receive if an earlier message of the same rank,
 * which this receive would take, went to a receive that was posted later. */
static void check_order(const struct ledger *l, unsigned from, unsigned comm)
{
    uint32_t *message = calloc(l->plan->messages, sizeof(*message)),
             *receive = calloc(l->plan->messages, sizeof(*receive));

    if (!message || !receive)
        ledger_fail(l, "no memory");
    uint32_t n = assign(l, from, comm, message, receive);
    for (uint32_t i = 0; i < n; i++) {
        int tag = plan_message(l->plan, from, message[i]).tag;
        for (uint32_t j = i + 1; j < n; j++)
            if (receive[j] < receive[i] && accepts(&l->entry[receive[j]].wish, comm, (int)from, tag))
                ledger_fail(l, "message %u of rank %u has overtaken message %u: it got receive %u, not %u", message[j],
                            from, message[i], receive[j], receive[i]);
    }
    free(message);
    free(receive);
}

void ledger_check(const struct ledger *l)
{
    if (l->completed != l->expected)
        ledger_fail(l, "%u of %u messages came", l->completed, l->expected);
    for (unsigned from = 0; from < l->plan->ranks; from++)
        for (unsigned comm = 0; comm < PLAN_COMMS; comm++)
            check_order(l, from, comm);
}
