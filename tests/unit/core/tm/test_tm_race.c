// SPDX-License-Identifier: BSD-2-Clause
/* The race that synchronization prevents: messages m1 and m2 arrive while a program posts receives b1 and b2. A small
 * correct program (with a software queue and a list, as in the RFC) runs against the device in every interleaving of
 * packets, posts, operations that the device executes, and completions that the program takes. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/unit/core/tm_fixture.h"

#define TAG 5
#define MESSAGES 2
#define RECEIVES 2
#define MAX_STEPS 64

enum wc_kind { GOT_MATCH, GOT_UNEXPECTED };

struct scenario {
    const char *name;
    int source[MESSAGES]; /* QP of each message */
    int packets[MESSAGES];
    uint64_t mask[RECEIVES]; /* mask of each receive; its tag is TAG & mask */
    bool dies; /* message 0 never arrives completely */
};

struct world {
    const struct scenario *s;
    struct tag_list *tm;
    /* State of the network. */
    int sent[MESSAGES]; /* packets of each that have arrived */
    struct tm_rx rx[MESSAGES];
    /* From the program to the device, and back. */
    struct tm_op ops[8];
    int op_head, op_tail;
    struct {
        enum wc_kind kind;
        int message, receive;
    } cq[8];
    int cq_head, cq_tail;
    /* State of the program. */
    int posted; /* receives */
    int got[RECEIVES]; /* message that each receive got; -1: none yet */
    int queued[MESSAGES], num_queued; /* unexpected messages without a receive */
    uint32_t count; /* unexpected messages that it has handled */
    bool twice; /* the device matched a receive to which the program had already given a message */
    bool careless; /* the device always considers itself in sync, as if there were no protocol */
};

/* --- the program ------------------------------------------------------------------------------- */

static void post_op(struct world *w, struct tm_op op)
{
    op.flags |= TM_OP_SYNC;
    op.unexpected_cnt = w->count;
    w->ops[w->op_tail++] = op;
}

static void post_receive(struct world *w)
{
    int b = w->posted++;
    if (w->num_queued) { /* here every receive matches every message */
        w->got[b] = w->queued[0];
        memmove(&w->queued[0], &w->queued[1], (size_t)--w->num_queued * sizeof(int));
        return;
    }
    post_op(w,
            (struct tm_op){.opcode = TM_ADD, .handle = (uint32_t)b, .tag = TAG & w->s->mask[b], .mask = w->s->mask[b]});
}

static void poll(struct world *w)
{
    int at = w->cq_head++;
    int m = w->cq[at].message;
    if (w->cq[at].kind == GOT_MATCH) {
        w->twice |= w->got[w->cq[at].receive] >= 0;
        w->got[w->cq[at].receive] = m;
        return;
    }
    w->count++;
    for (int b = 0; b < w->posted; b++)
        if (w->got[b] < 0) {
            w->got[b] = m;
            post_op(w, (struct tm_op){.opcode = TM_DEL, .handle = (uint32_t)b});
            return;
        }
    w->queued[w->num_queued++] = m;
}

/* --- device and network ------------------------------------------------------------------------ */

static void complete(struct world *w, enum wc_kind kind, int message, int receive)
{
    w->cq[w->cq_tail].kind = kind;
    w->cq[w->cq_tail].message = message;
    w->cq[w->cq_tail++].receive = receive;
}

static void process_op(struct world *w)
{
    struct tm_op op = w->ops[w->op_head++];
    struct tm_op_result r;
    if (w->careless)
        op.unexpected_cnt = info_of(w->tm).hw_cnt;
    tm_op(w->tm, &op, &r, 0);
}

/* Returns the message of a source whose packet comes next; -1: the source has nothing to send. */
static int next_message(const struct world *w, int source)
{
    for (int m = 0; m < MESSAGES; m++)
        if (w->s->source[m] == source && w->sent[m] < w->s->packets[m])
            return m;
    return -1;
}

static void packet_arrives(struct world *w, int source)
{
    int m = next_message(w, source);
    if (w->sent[m]++ == 0) {
        const struct tm_entry *e = begin_eager(w->tm, TAG, &w->rx[m]);
        if (e)
            complete(w, GOT_MATCH, m, (int)e->handle);
    }
    if (w->sent[m] < w->s->packets[m])
        return;
    bool was_unexpected = !w->rx[m].entry;
    if (w->s->dies && m == 0) {
        tm_drop(w->tm, &w->rx[m], 0);
        return;
    }
    tm_done(w->tm, &w->rx[m], 0);
    if (was_unexpected)
        complete(w, GOT_UNEXPECTED, m, -1);
}

/* --- all interleavings ------------------------------------------------------------------------- */

enum step { SOURCE_0, SOURCE_1, POST, PROCESS, POLL, STEPS };

static bool possible(const struct world *w, int step)
{
    switch (step) {
    case SOURCE_0:
    case SOURCE_1:
        return next_message(w, step) >= 0;
    case POST:
        return w->posted < RECEIVES;
    case PROCESS:
        return w->op_head < w->op_tail;
    default:
        return w->cq_head < w->cq_tail;
    }
}

static void take(struct world *w, int step)
{
    switch (step) {
    case SOURCE_0:
    case SOURCE_1:
        packet_arrives(w, step);
        return;
    case POST:
        post_receive(w);
        return;
    case PROCESS:
        process_op(w);
        return;
    default:
        poll(w);
    }
}

/* Runs one interleaving, which the choices in `choice` determine. Choices beyond the known ones are 0 and are
 * recorded. Returns how many choices there were. */
static int run(struct world *w, uint8_t *choice, uint8_t *choices, int known)
{
    int steps = 0;
    for (;; steps++) {
        int list[STEPS], n = 0;
        for (int s = 0; s < STEPS; s++)
            if (possible(w, s))
                list[n++] = s;
        if (n == 0)
            return steps;
        cr_assert_lt(steps, MAX_STEPS);
        if (steps >= known)
            choice[steps] = 0;
        choices[steps] = (uint8_t)n;
        take(w, list[choice[steps]]);
    }
}

/* Checks that messages of one source go to receives in order, and that no message has two receives. */
static bool in_order(const struct world *w)
{
    if (w->twice || (w->got[0] >= 0 && w->got[0] == w->got[1]))
        return false;
    if (w->s->source[0] == w->s->source[1])
        return w->got[0] == 0 && w->got[1] == 1;
    return true;
}

static bool nothing_lost(const struct world *w)
{
    int have = (w->got[0] >= 0) + (w->got[1] >= 0);
    return w->s->dies ? have >= 1 : have == 2;
}

/* Runs all interleavings. Returns how many broke the rules; *total: how many there are. */
static uint64_t run_all(const struct scenario *s, bool careless, uint64_t *total)
{
    uint8_t choice[MAX_STEPS] = {0}, choices[MAX_STEPS];
    struct tm_params p = {.max_num_tags = RECEIVES, .max_ops = 8, .trace_slots = 0};
    void *mem = aligned_alloc(64, tm_size(&p));
    uint64_t broken = 0;
    int known = 0;
    for (*total = 0;; ++*total) {
        struct world w = {.s = s, .got = {-1, -1}, .careless = careless};
        w.tm = tm_init(memset(mem, 0, tm_size(&p)), &p);
        int steps = run(&w, choice, choices, known);
        struct tm_op_result r = do_sync(w.tm, w.count);
        if (!in_order(&w) || !nothing_lost(&w))
            broken++;
        else if (!careless)
            cr_assert_eq(r.flags, 0, "%s: program and device never agree", s->name);
        for (known = steps; known > 0 && choice[known - 1] + 1 == choices[known - 1]; known--)
            ;
        if (known == 0)
            break;
        choice[known - 1]++;
    }
    free(mem);
    return broken;
}

static const struct scenario scenarios[] = {
    {"m1 and m2 of one QP", {0, 0}, {1, 1}, {EXACT, EXACT}, false},
    {"several packets each", {0, 0}, {2, 2}, {EXACT, EXACT}, false},
    {"a long one, then a short one", {0, 0}, {3, 1}, {EXACT, EXACT}, false},
    {"two QPs", {0, 1}, {1, 1}, {EXACT, EXACT}, false},
    {"two QPs, several packets", {0, 1}, {2, 2}, {EXACT, EXACT}, false},
    {"a wildcard first", {0, 0}, {1, 1}, {0, EXACT}, false},
    {"a wildcard last", {0, 0}, {2, 1}, {EXACT, 0}, false},
    {"m1's QP dies on the way", {0, 1}, {2, 1}, {EXACT, EXACT}, true},
    {"m1's QP dies on the way, long", {0, 1}, {3, 2}, {EXACT, 0}, true},
};

Test(tm_race, every_interleaving)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
        uint64_t total, broken = run_all(&scenarios[i], false, &total);
        cr_expect_eq(broken, 0, "%s: %llu of %llu", scenarios[i].name, (unsigned long long)broken,
                     (unsigned long long)total);
        cr_expect_gt(total, 100, "%s", scenarios[i].name);
        sum += total;
    }
    fprintf(stderr, "%llu interleavings\n", (unsigned long long)sum);
}

/* Shows that the test can fail: without the protocol some interleavings go wrong. */
Test(tm_race, without_the_protocol_the_order_breaks)
{
    for (size_t i = 0; i < 3; i++) {
        uint64_t total;
        cr_expect_gt(run_all(&scenarios[i], true, &total), 0, "%s", scenarios[i].name);
    }
}

/* --- the RFC's words --------------------------------------------------------------------------- */

/* b1 is added after m1 arrived and before m2 arrives: m2 must not match b1. */
Test(tm_race, the_example_of_the_rfc)
{
    struct tag_list *tm = tm_make(8, TM_PROFILE_GENEROUS);
    cr_assert_eq(send_eager(tm, TAG), TM_NO_HANDLE, "m1");
    cr_assert_eq(do_add(tm, 1, TAG, EXACT, 0).flags, WC_TM_SYNC_REQ, "b1");
    cr_assert_eq(send_eager(tm, TAG), TM_NO_HANDLE, "m2");
    cr_assert_eq(info_of(tm).hw_cnt, 2);
    struct tm_event ev = {0};
    for (uint64_t n = 0; n < tm_trace_end(tm); n++) {
        struct tm_event at;
        cr_assert(tm_trace_get(tm, n, &at));
        if (at.type == TM_EV_UNEXPECTED)
            ev = at; /* the completion of m2 */
    }
    cr_assert(ev.why == TM_WHY_PENDING && ev.handle == 1, "and the trace says why");
    /* The program matches m1 with b1 and finds no receive for m2. It reports that it has seen both. */
    cr_assert_eq(do_del(tm, 1, 2).status, WC_SUCCESS);
    cr_assert_eq(do_add(tm, 2, TAG, EXACT, 2).flags, 0);
    cr_assert_eq(info_of(tm).active, 1);
    cr_assert_eq(send_eager(tm, TAG), 2);
    free(tm);
}
