// SPDX-License-Identifier: BSD-2-Clause
/* A storm of unexpected messages, and how the device matches again after it.
 *
 *     pumice run --hosts 2 -- build/examples/tagmpi/storm
 *
 * First, every rank but rank 0 sends all its messages while rank 0 has posted no receive. Software has to keep them
 * all. Then rank 0 posts its receives, the last tag first, and software finds each message in its queue. After the
 * storm, program and device are in sync again. The ranks send the same messages again, now to receives that are
 * posted before, and the device matches them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/tagmpi/show.h"

/* Receives posted at the same time; bytes of a message; communicators. */
enum { WINDOW = 200, SIZE = 64, GO = 1, STORM = 2 };

static struct show_options options = {
    .name = "storm",
    .what = "All ranks send N messages each to rank 0, which has posted no receives; then once more, when it has.",
    .size_name = "messages",
    .size = 2000,
    .max_size = 1000000,
    .ranks = 2,
    .min_ranks = 2,
};

/* The results of one mode. */
struct result {
    double storm_ms, drain_ms,
        calm_ms; /* until all messages are here; until all receives are complete; the second part */
    struct tagmpi_counts after_drain, after_all; /* of all ranks */
};

static uint8_t *buffers; /* of the receives; in the first part, one for each message */

static void content(uint8_t *p, unsigned source, unsigned number)
{
    memset(p, (int)(source * 31 + number), SIZE);
    memcpy(p, &number, sizeof(number));
}

static void check(const uint8_t *p, unsigned source, unsigned number, const struct tagmpi_status *status)
{
    uint8_t expected[SIZE];

    content(expected, source, number);
    if (status->source == (int)source && status->tag == (int)number && status->length == SIZE &&
        memcmp(p, expected, SIZE) == 0)
        return;
    fprintf(stderr, "storm: message %u of rank %u is not what it should be\n", number, source);
    exit(1);
}

static void send_messages(struct tagmpi *t, unsigned rank, unsigned first, unsigned count)
{
    uint8_t message[SIZE];

    for (unsigned i = first; i < first + count; i++) {
        content(message, rank, i);
        tagmpi_send(t, message, SIZE, 0, (int)i, STORM);
    }
}

/* Receives messages first ... first + count - 1 of every rank, the last one first. */
static void receive_messages(struct tagmpi *t, unsigned ranks, unsigned first, unsigned count, bool go)
{
    static struct tagmpi_request *r[WINDOW * BOOT_MAX_RANKS];
    struct tagmpi_status status;
    unsigned n = 0;

    for (unsigned i = count; i-- > 0;)
        for (unsigned s = 1; s < ranks; s++, n++)
            r[n] = tagmpi_irecv(t, buffers + (size_t)n * SIZE, SIZE, (int)s, (int)(first + i), STORM);
    for (unsigned s = 1; s < ranks && go; s++)
        tagmpi_send(t, NULL, 0, s, 0, GO);
    n = 0;
    for (unsigned i = count; i-- > 0;) {
        for (unsigned s = 1; s < ranks; s++, n++) {
            tagmpi_wait(t, r[n], &status);
            check(buffers + (size_t)n * SIZE, s, first + i, &status);
        }
    }
}

/* Part 1. The barrier ends after every rank has sent its last message. Then rank 0 has all of them, or will have
 * them soon. */
static void storm(struct tagmpi *t, const struct boot *b, struct result *result)
{
    unsigned left = options.size;
    double start = show_now();

    if (b->rank > 0)
        send_messages(t, b->rank, 0, options.size);
    tagmpi_barrier(t);
    if (b->rank > 0)
        return;
    result->storm_ms = (show_now() - start) * 1e3;
    start = show_now();
    for (; left > 0; left -= left < WINDOW ? left : WINDOW)
        receive_messages(t, b->ranks, left < WINDOW ? 0 : left - WINDOW, left < WINDOW ? left : WINDOW, false);
    result->drain_ms = (show_now() - start) * 1e3;
}

/* Part 2: rank 0 sends a message when it has posted its receives. */
static void calm(struct tagmpi *t, const struct boot *b, struct result *result)
{
    double start = show_now();

    for (unsigned at = 0; at < options.size; at += WINDOW) {
        unsigned count = options.size - at < WINDOW ? options.size - at : WINDOW;
        if (b->rank == 0) {
            receive_messages(t, b->ranks, at, count, true);
            continue;
        }
        tagmpi_recv(t, NULL, 0, 0, 0, GO, NULL);
        send_messages(t, b->rank, at, count);
    }
    result->calm_ms = (show_now() - start) * 1e3;
}

static void run(const struct boot *b, int mode, struct result *result)
{
    struct tagmpi *t = tagmpi_open(b, mode == 0);
    size_t size = (size_t)WINDOW * b->ranks * SIZE;

    if ((buffers = malloc(size)) == NULL)
        exit(1);
    tagmpi_register(t, buffers, size);
    storm(t, b, result);
    tagmpi_barrier(t);
    result->after_drain = show_sum(b, t);
    calm(t, b, result);
    tagmpi_barrier(t);
    result->after_all = show_sum(b, t);
    tagmpi_close(t);
    free(buffers);
}

static unsigned long long by_device(const struct tagmpi_counts *c)
{
    return c->device_eager + c->device_rendezvous;
}

static void print(int mode, const struct boot *b, const struct result *r)
{
    unsigned long long n = (unsigned long long)(b->ranks - 1) * options.size, before = by_device(&r->after_drain);

    printf("%s:\n", show_mode[mode]);
    printf("  storm: %llu messages without a receive came in %.1f ms, and were matched in %.1f ms\n", n, r->storm_ms,
           r->drain_ms);
    printf("         by software when the receive was posted: %llu\n",
           (unsigned long long)r->after_drain.software_waiting);
    printf("  calm:  %llu messages with a receive took %.1f ms\n", n, r->calm_ms);
    printf("         by the device: %llu, by software: %llu\n", by_device(&r->after_all) - before,
           (unsigned long long)(r->after_all.software_arriving + r->after_all.software_waiting -
                                r->after_drain.software_arriving - r->after_drain.software_waiting));
}

int main(int argc, char **argv)
{
    static struct result result[SHOW_MODES];
    struct tagmpi_counts counts[SHOW_MODES];
    struct boot b;

    show_parse(&options, argc, argv);
    boot_start(&b, options.ranks);
    for (int mode = 0; mode < SHOW_MODES; mode++)
        if (show_wanted(&options, mode))
            run(&b, mode, &result[mode]);
    if (b.rank != 0)
        return 0;
    printf("storm of unexpected messages, %s\n", show_where(&b));
    for (int mode = 0; mode < SHOW_MODES; mode++) {
        counts[mode] = result[mode].after_all;
        if (show_wanted(&options, mode))
            print(mode, &b, &result[mode]);
    }
    show_counts(&options, counts);
    return 0;
}
