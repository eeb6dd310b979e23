// SPDX-License-Identifier: BSD-2-Clause
/* A halo exchange: each rank owns a part of a rod that is hot at one end. In every step it writes its border cells
 * to the copies that its neighbours have. It does so with MPI_Put, which is an RDMA WRITE if the MPI uses verbs.
 * Then all ranks agree on how much has changed.
 *
 *   mpicc -O2 -o halo halo.c && mpirun -n 4 ./halo */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CELLS 1000 /* of each rank */
#define STEPS 200

/* cell[0] and cell[CELLS + 1] are copies of the neighbours' outermost cells. Returns the largest change. */
static double step(const double *cell, double *next)
{
    double change = 0;
    for (int i = 1; i <= CELLS; i++) {
        next[i] = cell[i] + 0.25 * (cell[i - 1] - 2 * cell[i] + cell[i + 1]);
        change = fmax(change, fabs(next[i] - cell[i]));
    }
    return change;
}

int main(int argc, char **argv)
{
    int rank, size;
    double *cell, change = 0, most = 0, sum = 0, total = 0;
    double *next = calloc(CELLS + 2, sizeof(*next));
    MPI_Win win;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate((CELLS + 2) * sizeof(*cell), sizeof(*cell), MPI_INFO_NULL, MPI_COMM_WORLD, &cell, &win);
    for (int i = 0; i < CELLS + 2; i++)
        cell[i] = 0;
    if (rank == 0)
        cell[1] = 1000; /* the hot end; no heat leaves the rod, so the sum stays the same */

    double begin = MPI_Wtime();
    for (int i = 0; i < STEPS; i++) {
        MPI_Win_fence(0, win);
        if (rank > 0)
            MPI_Put(&cell[1], 1, MPI_DOUBLE, rank - 1, CELLS + 1, 1, MPI_DOUBLE, win);
        if (rank < size - 1)
            MPI_Put(&cell[CELLS], 1, MPI_DOUBLE, rank + 1, 0, 1, MPI_DOUBLE, win);
        MPI_Win_fence(0, win);
        if (rank == 0)
            cell[0] = cell[1]; /* the ends of the rod are insulated */
        if (rank == size - 1)
            cell[CELLS + 1] = cell[CELLS];
        change = step(cell, next);
        for (int k = 1; k <= CELLS; k++)
            cell[k] = next[k];
        MPI_Allreduce(&change, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    double seconds = MPI_Wtime() - begin;

    for (int k = 1; k <= CELLS; k++)
        sum += cell[k];
    MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks, %d steps in %.3f s; heat %.6f of 1000, last change %.6f\n", size, STEPS, seconds, total,
               most);
    int wrong = rank == 0 && fabs(total - 1000) > 1e-6;
    MPI_Win_free(&win);
    free(next);
    MPI_Finalize();
    return wrong;
}
