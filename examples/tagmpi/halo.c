// SPDX-License-Identifier: BSD-2-Clause
/* Halo exchange: heat spreads over a square plate. Each rank has a part of the plate.
 *
 *     pumice run --hosts 2 -- build/examples/tagmpi/halo --ranks 4
 *
 * Each rank has a block of n x n cells with a rim of one cell around it. In every step it sends its outermost rows
 * and columns to its neighbours, receives theirs into its rim, and computes each cell again as the mean of the four
 * around it. It posts one receive for each side before it sends anything. Tags distinguish the sides. At the end,
 * each rank compares its block with the result of a single process for the whole plate, bit by bit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/tagmpi/show.h"

enum { STEPS = 40, NORTH = 0, SOUTH, WEST, EAST, SIDES };

static struct show_options options = {
    .name = "halo",
    .what = "Heat spreads over a plate of blocks of N x N cells, one block for each rank.",
    .size_name = "n",
    .size = 256,
    .max_size = 4096,
    .ranks = 4,
    .min_ranks = 1,
};

struct plate {
    unsigned rows, columns; /* without the rim */
    double *now, *next; /* (rows + 2) x (columns + 2) */
};

static double *at(const struct plate *p, double *cells, unsigned row, unsigned column)
{
    return &cells[(size_t)row * (p->columns + 2) + column];
}

/* The first temperature of a cell: hot at the north rim of the whole plate, cold at the other rims, uneven inside.
 * row, column: in the whole plate. */
static double initial(unsigned row, unsigned column)
{
    return row == 0 ? 100 : (double)((row * 7 + column * 13) % 5);
}

/* Makes the block whose first cell (of its rim) is at that place of the whole plate. memory: room for two times all
 * cells. */
static void init(struct plate *p, unsigned rows, unsigned columns, unsigned row, unsigned column, double *memory)
{
    size_t cells = (size_t)(rows + 2) * (columns + 2);

    *p = (struct plate){rows, columns, memory, memory + cells};
    for (unsigned r = 0; r < rows + 2; r++)
        for (unsigned c = 0; c < columns + 2; c++)
            *at(p, p->now, r, c) = *at(p, p->next, r, c) = initial(row + r, column + c);
}

static void step(struct plate *p)
{
    double *now = p->now;

    for (unsigned r = 1; r <= p->rows; r++)
        for (unsigned c = 1; c <= p->columns; c++)
            *at(p, p->next, r, c) =
                (*at(p, now, r - 1, c) + *at(p, now, r + 1, c) + *at(p, now, r, c - 1) + *at(p, now, r, c + 1)) / 4;
    p->now = p->next;
    p->next = now;
}

/* --- the exchange --------------------------------------------------------- */

/* The arrangement of the ranks: rank r is in row r / across, column r % across. */
struct grid {
    unsigned down, across, row, column;
    int neighbour[SIDES]; /* a rank; -1: the rim of the whole plate */
};

/* Arranges the ranks in a rectangle that is as square as possible. */
static void arrange(struct grid *g, unsigned rank, unsigned ranks)
{
    g->down = 1;
    for (unsigned d = 1; d * d <= ranks; d++)
        if (ranks % d == 0)
            g->down = d;
    g->across = ranks / g->down;
    g->row = rank / g->across;
    g->column = rank % g->across;
    g->neighbour[NORTH] = g->row > 0 ? (int)(rank - g->across) : -1;
    g->neighbour[SOUTH] = g->row + 1 < g->down ? (int)(rank + g->across) : -1;
    g->neighbour[WEST] = g->column > 0 ? (int)rank - 1 : -1;
    g->neighbour[EAST] = g->column + 1 < g->across ? (int)rank + 1 : -1;
}

/* Copies a side of the block (depth 1), or of its rim (depth 0), to a row of doubles or from it. */
static void copy_side(struct plate *p, int side, unsigned depth, double *line, bool to_line)
{
    unsigned n = side == NORTH || side == SOUTH ? p->columns : p->rows;

    for (unsigned i = 0; i < n; i++) {
        unsigned row = side == NORTH ? depth : side == SOUTH ? p->rows + 1 - depth : i + 1;
        unsigned column = side == WEST ? depth : side == EAST ? p->columns + 1 - depth : i + 1;
        double *cell = at(p, p->now, row, column);
        if (to_line)
            line[i] = *cell;
        else
            *cell = line[i];
    }
}

/* lines: four rows to send and four to receive. The tag of a message is the side of the block that the sender sends. */
static void exchange(struct tagmpi *t, const struct grid *g, struct plate *p, double *lines)
{
    static const int opposite[SIDES] = {SOUTH, NORTH, EAST, WEST};
    struct tagmpi_request *in[SIDES], *out[SIDES];
    size_t n = p->rows, bytes = n * sizeof(double); /* blocks are square */

    for (int s = 0; s < SIDES; s++)
        if (g->neighbour[s] >= 0)
            in[s] = tagmpi_irecv(t, lines + (SIDES + s) * n, bytes, g->neighbour[s], opposite[s], TAGMPI_WORLD);
    for (int s = 0; s < SIDES; s++) {
        if (g->neighbour[s] < 0)
            continue;
        copy_side(p, s, 1, lines + s * n, true);
        out[s] = tagmpi_isend(t, lines + s * n, bytes, (unsigned)g->neighbour[s], s, TAGMPI_WORLD);
    }
    for (int s = 0; s < SIDES; s++) {
        if (g->neighbour[s] < 0)
            continue;
        tagmpi_wait(t, in[s], NULL);
        copy_side(p, s, 0, lines + (SIDES + s) * n, false);
        tagmpi_wait(t, out[s], NULL);
    }
}

/* --- the whole ------------------------------------------------------------ */

static double *doubles(size_t n)
{
    double *p = malloc(n * sizeof(double));

    if (!p) {
        fprintf(stderr, "halo: no memory; try a smaller --n\n");
        exit(1);
    }
    return p;
}

/* Compares the block with the result of a single process for the whole plate. */
static bool is_right(const struct grid *g, struct plate *block)
{
    unsigned n = block->rows, rows = n * g->down, columns = n * g->across;
    double *memory = doubles(2 * (size_t)(rows + 2) * (columns + 2));
    struct plate whole;
    bool right = true;

    init(&whole, rows, columns, 0, 0, memory);
    for (int i = 0; i < STEPS; i++)
        step(&whole);
    for (unsigned r = 1; r <= n && right; r++)
        right = memcmp(at(block, block->now, r, 1), at(&whole, whole.now, g->row * n + r, g->column * n + 1),
                       n * sizeof(double)) == 0;
    free(memory);
    return right;
}

static struct tagmpi_counts run(const struct boot *b, int mode, double *ms, bool *right)
{
    struct tagmpi *t = tagmpi_open(b, mode == 0);
    unsigned n = options.size;
    double *cells = doubles(2 * (size_t)(n + 2) * (n + 2)), *lines = doubles(2 * SIDES * n);
    struct plate block;
    struct grid g;

    arrange(&g, b->rank, b->ranks);
    init(&block, n, n, g.row * n, g.column * n, cells);
    tagmpi_register(t, lines, 2 * SIDES * n * sizeof(double));
    tagmpi_barrier(t);
    double start = show_now();
    for (int i = 0; i < STEPS; i++) {
        exchange(t, &g, &block, lines);
        step(&block);
    }
    tagmpi_barrier(t);
    *ms = (show_now() - start) * 1e3;
    *right = is_right(&g, &block);
    struct tagmpi_counts sum = show_sum(b, t);
    tagmpi_close(t);
    free(cells);
    free(lines);
    return sum;
}

int main(int argc, char **argv)
{
    struct tagmpi_counts counts[SHOW_MODES] = {0};
    double ms[SHOW_MODES];
    bool right = true, all[BOOT_MAX_RANKS];
    struct boot b;

    show_parse(&options, argc, argv);
    boot_start(&b, options.ranks);
    for (int mode = 0; mode < SHOW_MODES && right; mode++)
        if (show_wanted(&options, mode))
            counts[mode] = run(&b, mode, &ms[mode], &right);
    if (!right)
        fprintf(stderr, "halo: the block of rank %u is wrong\n", b.rank);
    boot_exchange(&b, &right, all, sizeof(right));
    for (unsigned i = 0; i < b.ranks; i++)
        right = right && all[i];
    if (b.rank != 0 || !right)
        return right ? 0 : 1;
    printf("halo exchange, %s; blocks of %u x %u cells\n%-38s", show_where(&b), options.size, options.size, "");
    for (int mode = 0; mode < SHOW_MODES; mode++)
        if (show_wanted(&options, mode))
            printf(" %12s", show_mode[mode]);
    printf("\n  milliseconds for %-2d steps            ", STEPS);
    for (int mode = 0; mode < SHOW_MODES; mode++)
        if (show_wanted(&options, mode))
            printf(" %12.1f", ms[mode]);
    printf("\n");
    show_counts(&options, counts);
    printf("every block is what a single process computes, bit by bit\n");
    return 0;
}
