// SPDX-License-Identifier: BSD-2-Clause
/* Each rank greets the next one, and rank 0 prints how many greetings arrived. Try this program first: see docs/mpi.md.
 *
 *   mpicc -O2 -o hello hello.c && mpirun -n 4 ./hello */
#include <mpi.h>
#include <stdio.h>

#define ROUNDS 100

int main(int argc, char **argv)
{
    int rank, size, greeting = 0, wrong = 0, all = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int i = 0; i < ROUNDS; i++) {
        int mine = rank + i;
        MPI_Sendrecv(&mine, 1, MPI_INT, next, i, &greeting, 1, MPI_INT, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += greeting != before + i;
    }
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks greeted each other %d times, %d greetings were wrong\n", size, ROUNDS, all);
    MPI_Finalize();
    return wrong != 0;
}
