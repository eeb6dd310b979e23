// SPDX-License-Identifier: BSD-2-Clause
/* Messages of 64 MiB: round a ring, both neighbours at once, to all, and by passive-target MPI_Put and MPI_Get. */
#include "mt.h"

#define BIG ((size_t)64 << 20)

static void ring(unsigned char *out, unsigned char *in)
{
    int next = (mt_rank + 1) % mt_size, before = (mt_rank + mt_size - 1) % mt_size;
    for (unsigned round = 0; round < 2; round++) {
        mt_fill(out, BIG, (unsigned)mt_rank + 100 * round);
        memset(in, 0xEE, BIG);
        MPI_Sendrecv(out, BIG, MPI_BYTE, next, 5, in, BIG, MPI_BYTE, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        size_t at = mt_differs(in, BIG, (unsigned)before + 100 * round);
        MT_CHECK(at == BIG, "round %u from %d: byte %zu differs", round, before, at);
    }
}

static void to_all(unsigned char *buf)
{
    if (mt_rank == mt_size - 1)
        mt_fill(buf, BIG, 77);
    else
        memset(buf, 0xEE, BIG);
    MPI_Bcast(buf, BIG, MPI_BYTE, mt_size - 1, MPI_COMM_WORLD);
    size_t at = mt_differs(buf, BIG, 77);
    MT_CHECK(at == BIG, "broadcast: byte %zu differs", at);
}

/* Everybody writes its neighbour's window and reads back what is there then. */
static void window(unsigned char *mine, unsigned char *other)
{
    int next = (mt_rank + 1) % mt_size;
    MPI_Win win;
    memset(mine, 0xEE, BIG);
    MPI_Win_create(mine, BIG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    mt_fill(other, BIG, (unsigned)mt_rank + 900);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
    MPI_Put(other, BIG, MPI_BYTE, next, 0, BIG, MPI_BYTE, win);
    MPI_Win_flush(next, win);
    memset(other, 0xDD, BIG);
    MPI_Get(other, BIG, MPI_BYTE, next, 0, BIG, MPI_BYTE, win);
    MPI_Win_unlock(next, win);
    size_t at = mt_differs(other, BIG, (unsigned)mt_rank + 900);
    MT_CHECK(at == BIG, "read back from %d: byte %zu differs", next, at);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    unsigned char *a = mt_alloc(BIG), *b = mt_alloc(BIG);
    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    ring(a, b);
    to_all(a);
    window(a, b);
    int code = mt_end();
    free(a);
    free(b);
    return code;
}
