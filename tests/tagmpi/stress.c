// SPDX-License-Identifier: BSD-2-Clause
/* A stress test of matching. All ranks send each other, and themselves, messages of 0 bytes to 4 MiB, and receive
 * them with all kinds of wildcards. They use the small MPI of examples/tagmpi, with matching by the device and by
 * software.
 *
 *     pumice run --hosts 2 -- build/tests/tagmpi/stress --messages 100000 --seed 1
 *
 * The messages depend on the seed only. Receives are posted at random, a few dozen at a time, sometimes late,
 * sometimes after a probe. Each message's content and length are checked when it arrives, and the order of all
 * messages at the end. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/tagmpi/show.h"
#include "examples/tagmpi/tagmpi.h"
#include "tests/tagmpi/ledger.h"
#include "tests/tagmpi/plan.h"

enum {
    SMALL_WINDOW = 40, /* receives open at once, in communicator 0 */
    LARGE_WINDOW = 6, /* in communicator 1 */
    RELIEF = SMALL_WINDOW + LARGE_WINDOW, /* the place of one more, see relieve() */
    WINDOW,
    SENDS = 8, /* rendezvous under way */
    TRIES = 4
};

static struct show_options options = {.name = "stress", .ranks = 4, .on = true, .off = true};
static uint32_t all_messages = 100000;
static uint64_t seed = 1;
static unsigned stall = 60; /* seconds without anything done after which it is a failure */

struct rank {
    struct tagmpi *t;
    const struct plan *plan;
    struct ledger ledger;
    uint64_t random, drawn;
    bool lazy; /* posts no receives for a while */
    uint32_t sent;
    struct tagmpi_request *send[SENDS]; /* rendezvous under way; NULL: the buffer is free */
    struct tagmpi_request *receive[WINDOW]; /* small ones first, RELIEF last; NULL: free */
    uint32_t number[WINDOW]; /* in the ledger */
    bool probed[WINDOW];
    struct tagmpi_status promise[WINDOW]; /* if so: what the probe has said */
    uint8_t *send_buffer, *small_buffer, *large_buffer, *scratch;
    double last; /* when something was done */
};

static uint32_t chance(struct rank *k, uint32_t n)
{
    return (uint32_t)(plan_random(k->random, k->drawn++, 3) % n);
}

static uint8_t *buffer(const struct rank *k, unsigned slot)
{
    return slot < SMALL_WINDOW ? k->small_buffer + (size_t)slot * PLAN_SMALL_MAX
                               : k->large_buffer + (size_t)(slot - SMALL_WINDOW) * PLAN_LARGE_MAX;
}

/* --- receiving --------------------------------------------------------------------------------- */

static unsigned open_receives(const struct rank *k, uint32_t *open)
{
    unsigned n = 0;

    for (unsigned i = 0; i < WINDOW; i++)
        if (k->receive[i])
            open[n++] = k->number[i];
    return n;
}

/* A wish that is safe; false: none was found. If nothing is open there is always one. */
static bool choose(struct rank *k, unsigned comm, struct wish *w)
{
    uint32_t open[WINDOW];
    unsigned n = open_receives(k, open), ranks = k->plan->ranks;

    for (int i = 0; i < TRIES; i++) {
        *w = (struct wish){comm, (int)chance(k, ranks), (int)chance(k, PLAN_TAGS)};
        if (chance(k, 5) < 2)
            w->source = TAGMPI_ANY_SOURCE;
        if (chance(k, 5) < 2)
            w->tag = TAGMPI_ANY_TAG;
        if (ledger_safe(&k->ledger, w, open, n))
            return true;
    }
    unsigned start = chance(k, ranks * PLAN_TAGS);
    for (unsigned i = 0; i < ranks * PLAN_TAGS; i++) {
        unsigned at = (start + i) % (ranks * PLAN_TAGS);
        *w = (struct wish){comm, (int)(at % ranks), (int)(at / ranks)};
        if (ledger_safe(&k->ledger, w, open, n))
            return true;
    }
    return false;
}

/* Fills a free place of the window. */
static void post_receive(struct rank *k, unsigned slot)
{
    struct wish w;
    unsigned comm = slot >= SMALL_WINDOW;

    if (!choose(k, comm, &w))
        return;
    k->probed[slot] = chance(k, 8) == 0 && tagmpi_iprobe(k->t, w.source, w.tag, comm, &k->promise[slot]);
    k->number[slot] = ledger_post(&k->ledger, &w);
    k->receive[slot] =
        tagmpi_irecv(k->t, buffer(k, slot), comm ? PLAN_LARGE_MAX : PLAN_SMALL_MAX, w.source, w.tag, comm);
}

static void post_receives(struct rank *k)
{
    /* A large message is seldom, but each is long under way. */
    if (k->sent == k->plan->messages)
        k->lazy = false;
    else if (chance(k, 200) == 0)
        k->lazy = !k->lazy;
    for (unsigned i = 0; i < RELIEF && !k->lazy; i++)
        if (!k->receive[i] && k->ledger.posted < k->ledger.expected && chance(k, 4) > 0)
            post_receive(k, i);
}

/* All places may be taken by receives whose messages are still to be sent, by ranks that wait until we receive others.
 * So now and then one message is received that is here and has no receive; that takes nothing from the open ones. */
static void relieve(struct rank *k)
{
    struct tagmpi_status *s = &k->promise[RELIEF];
    struct wish w = {.comm = chance(k, PLAN_COMMS)};

    if (k->receive[RELIEF] || k->lazy || !tagmpi_iprobe(k->t, TAGMPI_ANY_SOURCE, TAGMPI_ANY_TAG, w.comm, s))
        return;
    w.source = s->source;
    w.tag = s->tag;
    k->probed[RELIEF] = true;
    k->number[RELIEF] = ledger_post(&k->ledger, &w);
    k->receive[RELIEF] = tagmpi_irecv(k->t, buffer(k, RELIEF), PLAN_LARGE_MAX, w.source, w.tag, w.comm);
}

static void look_at_receives(struct rank *k)
{
    for (unsigned i = 0; i < WINDOW; i++) {
        struct tagmpi_status got;
        if (!k->receive[i] || !tagmpi_done(k->receive[i]))
            continue;
        tagmpi_wait(k->t, k->receive[i], &got);
        k->receive[i] = NULL;
        ledger_complete(&k->ledger, k->number[i], &got, buffer(k, i));
        const struct tagmpi_status *p = &k->promise[i];
        if (k->probed[i] && (p->source != got.source || p->tag != got.tag || p->length != got.length))
            ledger_fail(&k->ledger, "receive %u got another message than the probe before it has seen", k->number[i]);
        k->last = show_now();
    }
}

/* --- sending ----------------------------------------------------------------------------------- */

/* The next message; false: there is no buffer for it. */
static bool send_next(struct rank *k)
{
    struct message m = plan_message(k->plan, k->ledger.rank, k->sent);
    bool eager = m.size <= TAGMPI_EAGER_MAX;
    unsigned slot = 0;

    while (!eager && k->send[slot])
        if (++slot == SENDS)
            return false;
    uint8_t *from = eager ? k->scratch : k->send_buffer + (size_t)slot * PLAN_LARGE_MAX;
    plan_fill(k->plan, k->ledger.rank, k->sent, from, m.size);
    struct tagmpi_request *r = tagmpi_isend(k->t, from, m.size, m.to, m.tag, m.comm);
    if (eager)
        tagmpi_wait(k->t, r, NULL);
    else
        k->send[slot] = r;
    k->sent++;
    k->last = show_now();
    return true;
}

static bool look_at_sends(struct rank *k)
{
    bool any = false;

    for (unsigned i = 0; i < SENDS; i++) {
        if (k->send[i] && tagmpi_done(k->send[i])) {
            tagmpi_wait(k->t, k->send[i], NULL);
            k->send[i] = NULL;
        }
        any = any || k->send[i];
    }
    return any;
}

/* --- one rank ---------------------------------------------------------------------------------- */

static void check_stall(const struct rank *k)
{
    unsigned open = 0;

    if (show_now() - k->last < stall)
        return;
    for (unsigned i = 0; i < WINDOW; i++) {
        const struct wish *w = &k->ledger.entry[k->number[i]].wish;
        if (!k->receive[i])
            continue;
        fprintf(stderr, "  waits: receive %u, rank %d, tag %d, communicator %u\n", k->number[i], w->source, w->tag,
                w->comm);
        open++;
    }
    ledger_fail(&k->ledger, "nothing has happened for %u s; %u of %u sent, %u of %u received, %u receives wait", stall,
                k->sent, k->plan->messages, k->ledger.completed, k->ledger.expected, open);
}

static void exchange(struct rank *k)
{
    bool sending = true;

    k->last = show_now();
    while (k->sent < k->plan->messages || k->ledger.completed < k->ledger.expected || sending) {
        post_receives(k);
        for (uint32_t burst = chance(k, 12); burst > 0 && k->sent < k->plan->messages; burst--)
            if (!send_next(k))
                break;
        tagmpi_progress(k->t);
        if (chance(k, 20) == 0)
            relieve(k);
        look_at_receives(k);
        sending = look_at_sends(k);
        check_stall(k);
    }
}

static uint8_t *memory(struct rank *k, size_t size)
{
    uint8_t *p = malloc(size);

    if (!p)
        ledger_fail(&k->ledger, "no memory");
    tagmpi_register(k->t, p, size);
    return p;
}

static struct tagmpi_counts run(const struct boot *b, int mode, double *seconds)
{
    struct plan plan = {.seed = seed, .messages = all_messages / b->ranks, .ranks = b->ranks};
    struct rank *k = calloc(1, sizeof(*k));

    if (!k)
        exit(1);
    k->plan = &plan;
    k->random = plan_random(seed, b->rank, (uint64_t)mode);
    ledger_init(&k->ledger, &plan, b->rank);
    k->t = tagmpi_open(b, mode == 0);
    k->send_buffer = memory(k, (size_t)SENDS * PLAN_LARGE_MAX);
    k->small_buffer = memory(k, (size_t)SMALL_WINDOW * PLAN_SMALL_MAX);
    k->large_buffer = memory(k, (size_t)(LARGE_WINDOW + 1) * PLAN_LARGE_MAX);
    k->scratch = memory(k, TAGMPI_EAGER_MAX);
    tagmpi_barrier(k->t);
    double start = show_now();
    exchange(k);
    tagmpi_barrier(k->t);
    *seconds = show_now() - start;
    ledger_check(&k->ledger);
    struct tagmpi_counts sum = show_sum(b, k->t);
    tagmpi_close(k->t);
    free(k->send_buffer);
    free(k->small_buffer);
    free(k->large_buffer);
    free(k->scratch);
    ledger_fini(&k->ledger);
    free(k);
    return sum;
}

static void parse(int argc, char **argv)
{
    static const struct option names[] = {{"messages", 1, NULL, 'm'}, {"ranks", 1, NULL, 'r'}, {"seed", 1, NULL, 's'},
                                          {"offload", 1, NULL, 'o'},  {"stall", 1, NULL, 't'}, {0}};
    int c;

    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == 'm')
            all_messages = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'r')
            options.ranks = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (c == 't')
            stall = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 'o')
            options.on = strcmp(optarg, "off") != 0, options.off = strcmp(optarg, "on") != 0;
        else
            exit(2);
    }
    if (options.ranks < 1 || options.ranks > BOOT_MAX_RANKS || all_messages < options.ranks) {
        fprintf(stderr, "stress: 1 to %d ranks, and a message for each\n", BOOT_MAX_RANKS);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct tagmpi_counts counts[SHOW_MODES] = {0};
    double seconds[SHOW_MODES];
    struct boot b;

    parse(argc, argv);
    boot_start(&b, options.ranks);
    for (int mode = 0; mode < SHOW_MODES; mode++)
        if (show_wanted(&options, mode))
            counts[mode] = run(&b, mode, &seconds[mode]);
    if (b.rank != 0)
        return 0;
    printf("matching stress, %s; %u messages, seed %llu: all as they must be\n", show_where(&b),
           all_messages / b.ranks * b.ranks, (unsigned long long)seed);
    for (int mode = 0; mode < SHOW_MODES; mode++)
        if (show_wanted(&options, mode))
            printf("  %s: %.2f s\n", show_mode[mode], seconds[mode]);
    show_counts(&options, counts);
    return 0;
}
