// SPDX-License-Identifier: BSD-2-Clause
/* Messages of 64 MiB: around a ring, between neighbours in both directions, to all ranks, and by passive-target
 * MPI_Put and MPI_Get. Usage: big [MIB] */
#include "tests/mpi/mt.h"

static size_t big = (size_t)64 << 20;

static void ring(unsigned char *out, unsigned char *in)
{
    int next = (mt_rank + 1) % mt_size, before = (mt_rank + mt_size - 1) % mt_size;
    for (unsigned round = 0; round < 2; round++) {
        mt_fill(out, big, (unsigned)mt_rank + 100 * round);
        memset(in, 0xEE, big);
        MPI_Sendrecv(out, big, MPI_BYTE, next, 5, in, big, MPI_BYTE, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        size_t at = mt_differs(in, big, (unsigned)before + 100 * round);
        MT_CHECK(at == big, "round %u from %d: byte %zu differs", round, before, at);
    }
}

static void to_all(unsigned char *buf)
{
    if (mt_rank == mt_size - 1)
        mt_fill(buf, big, 77);
    else
        memset(buf, 0xEE, big);
    MPI_Bcast(buf, big, MPI_BYTE, mt_size - 1, MPI_COMM_WORLD);
    size_t at = mt_differs(buf, big, 77);
    MT_CHECK(at == big, "broadcast: byte %zu differs", at);
}

/* Every rank writes to its neighbour's window and reads the same bytes back. */
static void window(unsigned char *mine, unsigned char *other)
{
    int next = (mt_rank + 1) % mt_size;
    MPI_Win win;
    memset(mine, 0xEE, big);
    MPI_Win_create(mine, big, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    mt_fill(other, big, (unsigned)mt_rank + 900);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
    MPI_Put(other, big, MPI_BYTE, next, 0, big, MPI_BYTE, win);
    MPI_Win_flush(next, win);
    memset(other, 0xDD, big);
    MPI_Get(other, big, MPI_BYTE, next, 0, big, MPI_BYTE, win);
    MPI_Win_unlock(next, win);
    size_t at = mt_differs(other, big, (unsigned)mt_rank + 900);
    MT_CHECK(at == big, "read back from %d: byte %zu differs", next, at);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        big = strtoul(argv[1], NULL, 10) << 20;
    MT_CHECK(big > 0, "nothing to send");
    unsigned char *a = mt_alloc(big), *b = mt_alloc(big);
    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    ring(a, b);
    to_all(a);
    window(a, b);
    int code = mt_end();
    free(a);
    free(b);
    return code;
}
