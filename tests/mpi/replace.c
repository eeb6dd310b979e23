// SPDX-License-Identifier: BSD-2-Clause
/* MPI_Get_accumulate with MPI_REPLACE, a thousand times: each call returns what the call before it wrote. Open MPI posts an
 * RDMA READ and then an RDMA WRITE of the same place, without a fence. So the READ must return what was there before the
 * WRITE. Usage: replace ELEMENTS... (1 5) */
#include "tests/mpi/mt.h"

enum { ROUNDS = 1000, MOST = 65536 };

/* Rank 0 has the memory. Each other rank has a part of its own. */
static void exchange(MPI_Win win, int n)
{
    long long *new = mt_alloc(sizeof(*new) * (size_t)n), *old = mt_alloc(sizeof(*old) * (size_t)n);
    MPI_Aint mine = (MPI_Aint)mt_rank * MOST;

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    for (int i = 0; i < n; i++)
        new[i] = -1;
    MPI_Put(new, n, MPI_LONG_LONG, 0, mine, n, MPI_LONG_LONG, win);
    MPI_Win_flush(0, win);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < n; i++)
            new[i] = round;
        memset(old, 0xee, sizeof(*old) * (size_t)n);
        MPI_Get_accumulate(new, n, MPI_LONG_LONG, old, n, MPI_LONG_LONG, 0, mine, n, MPI_LONG_LONG, MPI_REPLACE, win);
        MPI_Win_flush(0, win);
        for (int i = 0; i < n; i++)
            MT_CHECK(old[i] == round - 1, "%d elements, element %d: %lld, expected %d", n, i, old[i], round - 1);
    }
    MPI_Win_unlock(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    free(new);
    free(old);
}

int main(int argc, char **argv)
{
    long long *memory = NULL;
    MPI_Win win;

    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Win_allocate((MPI_Aint)sizeof(*memory) * (mt_rank ? 1 : MOST * mt_size), sizeof(*memory), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &memory, &win);
    for (int i = 1; i < argc; i++)
        exchange(win, atoi(argv[i]));
    if (argc < 2) {
        exchange(win, 1);
        exchange(win, 5);
    }
    MPI_Win_free(&win);
    return mt_end();
}
