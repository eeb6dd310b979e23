// SPDX-License-Identifier: BSD-2-Clause
/* One-sided communication with passive targets. */
#include "tests/mpi/mt.h"

enum { CELL = 100000, TICKETS = 40 };

/* Each rank puts into the window of its right neighbour, and gets it back from there. */
static void test_put_get(MPI_Win win, unsigned char *base)
{
    int right = (mt_rank + 1) % mt_size, left = (mt_rank + mt_size - 1) % mt_size;
    char *out = mt_alloc(CELL), *in = mt_alloc(CELL);

    memset(base, 0, CELL);
    MPI_Barrier(MPI_COMM_WORLD);
    mt_fill(out, CELL, (unsigned)mt_rank);
    memset(in, 0, CELL);
    MPI_Win_lock_all(0, win);
    MPI_Put(out, 8, MPI_BYTE, right, 0, 8, MPI_BYTE, win);
    MPI_Put(out + 8, CELL - 8, MPI_BYTE, right, 8, CELL - 8, MPI_BYTE, win);
    MPI_Win_flush(right, win);
    MPI_Get(in, CELL, MPI_BYTE, right, 0, CELL, MPI_BYTE, win);
    MPI_Win_unlock_all(win);
    MT_CHECK(mt_differs(in, CELL, (unsigned)mt_rank) == CELL, "get gives other data than put wrote");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, mt_rank, 0, win);
    MT_CHECK(mt_differs(base, CELL, (unsigned)left) == CELL, "the left neighbour's put");
    MPI_Win_unlock(mt_rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
    free(out);
    free(in);
}

/* All ranks draw tickets at rank 0. Each number must be drawn exactly once. */
static void test_tickets(MPI_Win win, long long *base)
{
    long long one = 1, mine[TICKETS], *all = mt_alloc(sizeof(mine) * (size_t)mt_size);
    char *seen = calloc((size_t)mt_size * TICKETS, 1);

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mt_rank, 0, win);
    base[0] = 0;
    MPI_Win_unlock(mt_rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < TICKETS; i++) {
        MPI_Fetch_and_op(&one, &mine[i], MPI_LONG_LONG, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
        MT_CHECK(i == 0 || mine[i] > mine[i - 1], "ticket %lld after %lld", mine[i], mine[i - 1]);
    }
    MPI_Win_unlock_all(win);
    MPI_Allgather(mine, TICKETS, MPI_LONG_LONG, all, TICKETS, MPI_LONG_LONG, MPI_COMM_WORLD);
    for (int i = 0; i < TICKETS * mt_size; i++) {
        MT_CHECK(all[i] >= 0 && all[i] < TICKETS * mt_size && !seen[all[i]], "ticket %lld twice or out of range",
                 all[i]);
        if (all[i] >= 0 && all[i] < TICKETS * mt_size)
            seen[all[i]] = 1;
    }
    free(all);
    free(seen);
}

/* All ranks add to sums at every rank, one element and several at a time. */
static void test_accumulate(MPI_Win win, long long *base)
{
    enum { N = 500 };
    long long add[N], got[N], want = (long long)mt_size * (mt_size + 1) / 2;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mt_rank, 0, win);
    memset(base, 0, N * sizeof(*base));
    MPI_Win_unlock(mt_rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < N; i++)
        add[i] = (long long)(mt_rank + 1) * (i + 1);
    MPI_Win_lock_all(0, win);
    for (int p = 0; p < mt_size; p++) {
        MPI_Accumulate(add, N, MPI_LONG_LONG, p, 0, N, MPI_LONG_LONG, MPI_SUM, win);
        MPI_Accumulate(add, 1, MPI_LONG_LONG, p, 0, 1, MPI_LONG_LONG, MPI_SUM, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    int p = (mt_rank + 1) % mt_size;
    MPI_Win_lock(MPI_LOCK_SHARED, p, 0, win);
    MPI_Get_accumulate(NULL, 0, MPI_LONG_LONG, got, N, MPI_LONG_LONG, p, 0, N, MPI_LONG_LONG, MPI_NO_OP, win);
    MPI_Win_unlock(p, win);
    for (int i = 0; i < N; i++)
        MT_CHECK(got[i] == want * (i + 1) + (i ? 0 : want), "accumulated at %d, element %d: %lld", p, i, got[i]);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A counter at the last rank: read and written under a lock, then raised by compare and swap. */
static void test_locks(MPI_Win win, long long *base)
{
    enum { ROUNDS = 10 };
    int home = mt_size - 1;
    long long v, want, old;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mt_rank, 0, win);
    base[0] = base[1] = 0;
    MPI_Win_unlock(mt_rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, home, 0, win);
        MPI_Get(&v, 1, MPI_LONG_LONG, home, 0, 1, MPI_LONG_LONG, win);
        MPI_Win_flush(home, win);
        v++;
        MPI_Put(&v, 1, MPI_LONG_LONG, home, 0, 1, MPI_LONG_LONG, win);
        MPI_Win_unlock(home, win);
    }
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < ROUNDS; i++) {
        for (old = 0, want = -1; want != old;) {
            want = old;
            v = want + 1;
            MPI_Compare_and_swap(&v, &want, &old, MPI_LONG_LONG, home, 1, win);
            MPI_Win_flush(home, win);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mt_rank == home) {
        MPI_Win_lock(MPI_LOCK_SHARED, home, 0, win);
        MT_CHECK(base[0] == (long long)ROUNDS * mt_size, "counter under a lock: %lld", base[0]);
        MT_CHECK(base[1] == (long long)ROUNDS * mt_size, "counter by compare and swap: %lld", base[1]);
        MPI_Win_unlock(home, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Win bytes, words;
    unsigned char *b;
    long long *w = NULL;

    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    b = mt_alloc(CELL);
    MPI_Win_create(b, CELL, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &bytes);
    test_put_get(bytes, b);
    MPI_Win_free(&bytes);
    free(b);
    MPI_Win_allocate(4096 * sizeof(*w), sizeof(*w), MPI_INFO_NULL, MPI_COMM_WORLD, &w, &words);
    test_tickets(words, w);
    test_accumulate(words, w);
    test_locks(words, w);
    MPI_Win_free(&words);
    return mt_end();
}
