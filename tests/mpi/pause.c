// SPDX-License-Identifier: BSD-2-Clause
/* All ranks but the first poll for a message. The first sleeps as many seconds as the argument says. */
#include "tests/mpi/mt.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    int seconds = argc > 1 ? atoi(argv[1]) : 1, sum = 0;

    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Allreduce(&mt_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MT_CHECK(sum == mt_size * (mt_size - 1) / 2, "the sum of ranks is %d", sum);
    if (mt_rank == 0) {
        printf("begun\n");
        fflush(stdout);
        sleep((unsigned)seconds);
    }
    MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return mt_end();
}
