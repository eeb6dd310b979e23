// SPDX-License-Identifier: BSD-2-Clause
/* Ping-pong: measures the time of a message in one direction, by size, with matching by the device and by software.
 *
 *     pumice run --hosts 2 -- build/examples/tagmpi/pingpong
 *
 * It posts the receive for the answer before it sends the ping, as MPI programs should. So the device can match. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/tagmpi/show.h"

enum { LARGEST = 4 << 20, TAG = 7 };

static const unsigned sizes[] = {0, 8, 64, 1024, 8192, 65536, 1 << 20, LARGEST};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static struct show_options options = {
    .name = "pingpong",
    .what = "Two ranks send a message to and fro; the others look on.",
    .size_name = "rounds",
    .size = 400,
    .max_size = 1000000,
    .ranks = 2,
    .min_ranks = 2,
};

/* Fewer rounds for large messages. */
static unsigned rounds(unsigned size)
{
    unsigned n = size <= TAGMPI_EAGER_MAX ? options.size : options.size * 8 / (1 + size / 8192);
    return n < 4 ? 4 : n;
}

/* Microseconds in one direction. */
static double play(struct tagmpi *t, unsigned rank, uint8_t *out, uint8_t *in, unsigned size)
{
    unsigned n = rounds(size), warm = n / 10 + 1, other = 1 - rank;
    struct tagmpi_status status;
    double start = 0;

    memset(out, (int)rank + 1, size);
    for (unsigned i = 0; i < n + warm; i++) {
        if (i == warm)
            start = show_now();
        struct tagmpi_request *r = tagmpi_irecv(t, in, LARGEST, (int)other, TAG, TAGMPI_WORLD);
        if (rank == 0)
            tagmpi_send(t, out, size, other, TAG, TAGMPI_WORLD);
        tagmpi_wait(t, r, &status);
        if (status.length != size || (size > 0 && (in[0] != other + 1 || in[size - 1] != other + 1))) {
            fprintf(stderr, "pingpong: rank %u: a message of %zu bytes instead of %u, or with wrong content\n", rank,
                    status.length, size);
            exit(1);
        }
        if (rank == 1)
            tagmpi_send(t, out, size, other, TAG, TAGMPI_WORLD);
    }
    return (show_now() - start) * 1e6 / n / 2;
}

static struct tagmpi_counts run(const struct boot *b, int mode, double *us)
{
    struct tagmpi *t = tagmpi_open(b, mode == 0);
    uint8_t *memory = malloc(2 * LARGEST);

    if (!memory)
        exit(1);
    tagmpi_register(t, memory, 2 * LARGEST);
    for (unsigned i = 0; i < SIZES && b->rank < 2; i++)
        us[i] = play(t, b->rank, memory, memory + LARGEST, sizes[i]);
    struct tagmpi_counts sum = show_sum(b, t);
    tagmpi_close(t);
    free(memory);
    return sum;
}

int main(int argc, char **argv)
{
    struct tagmpi_counts counts[SHOW_MODES] = {0};
    double us[SHOW_MODES][SIZES];
    struct boot b;

    show_parse(&options, argc, argv);
    boot_start(&b, options.ranks);
    for (int mode = 0; mode < SHOW_MODES; mode++)
        if (show_wanted(&options, mode))
            counts[mode] = run(&b, mode, us[mode]);
    if (b.rank != 0)
        return 0;
    printf("ping-pong, %s; microseconds one way\n%-38s", show_where(&b), "bytes");
    for (int mode = 0; mode < SHOW_MODES; mode++)
        if (show_wanted(&options, mode))
            printf(" %12s", show_mode[mode]);
    for (unsigned i = 0; i < SIZES; i++) {
        printf("\n  %-36u", sizes[i]);
        for (int mode = 0; mode < SHOW_MODES; mode++)
            if (show_wanted(&options, mode))
                printf(" %12.1f", us[mode][i]);
    }
    printf("\n");
    show_counts(&options, counts);
    return 0;
}
