// SPDX-License-Identifier: BSD-2-Clause
/* Passive targets really are passive. Rank 0 sleeps outside of MPI while all other ranks write its window and read it
 * back. Only the device makes progress on its side. So all data must be there when rank 0 wakes up, before it calls
 * MPI again.
 *
 * This needs a transport that reads and writes remote memory by itself: RC. (Over datagrams UCX asks the target's UCX
 * for everything.) It needs existing connections, hence a first round in which the target is awake. And it must need
 * no lock that the target grants. MPICH's locks are messages to the target's MPI. Open MPI's locks are atomic
 * operations, also of 32 bits, which verbs don't have, so UCX sends messages for all of them. Therefore each epoch
 * here begins before the target sleeps, or needs no lock (MPI_MODE_NOCHECK), and has no accumulating operations. */
#include "tests/mpi/mt.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 300000, SLEEP = 3 };

/* How the origin's epoch begins. */
enum { HELD, LOCK, LOCK_ALL, WAYS };

/* The part of the target's window that belongs to each origin. */
struct slot {
    unsigned char data[SIZE];
    double took; /* seconds for all of it, written at the end; 0: not yet */
};

static void begin(int way, MPI_Win win)
{
    if (way == LOCK)
        MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win);
    if (way == LOCK_ALL)
        MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
}

static void end(int way, MPI_Win win)
{
    if (way == HELD)
        MPI_Win_flush(0, win);
    if (way == LOCK)
        MPI_Win_unlock(0, win);
    if (way == LOCK_ALL)
        MPI_Win_unlock_all(win);
}

/* An origin's part, in two epochs. The second one reports the duration of the first. */
static void visit(int way, unsigned seed, MPI_Win win)
{
    MPI_Aint base = (MPI_Aint)(mt_rank - 1) * (MPI_Aint)sizeof(struct slot);
    unsigned char *out = mt_alloc(SIZE), *in = mt_alloc(SIZE);
    double began = MPI_Wtime();

    mt_fill(out, SIZE, seed);
    begin(way, win);
    MPI_Put(out, 8, MPI_BYTE, 0, base, 8, MPI_BYTE, win);
    MPI_Put(out + 8, SIZE - 8, MPI_BYTE, 0, base + 8, SIZE - 8, MPI_BYTE, win);
    MPI_Win_flush(0, win);
    MPI_Get(in, SIZE, MPI_BYTE, 0, base, SIZE, MPI_BYTE, win);
    end(way, win);
    size_t at = mt_differs(in, SIZE, seed);
    MT_CHECK(at == SIZE, "way %d: read back, byte %zu differs", way, at);
    double took = MPI_Wtime() - began;
    begin(way, win);
    MPI_Put(&took, 1, MPI_DOUBLE, 0, base + (MPI_Aint)offsetof(struct slot, took), 1, MPI_DOUBLE, win);
    end(way, win);
    free(out);
    free(in);
}

/* Sleeps, and looks at its memory before it calls MPI again. The origins begin by a signal, which comes when MPI is
 * left. */
static void sleeps(int way, const int *pids, volatile struct slot *slots)
{
    struct timespec left = {.tv_sec = SLEEP};
    for (int r = 1; r < mt_size; r++)
        kill(pids[r], SIGUSR1);
    while (nanosleep(&left, &left) != 0)
        ;
    for (int r = 1; r < mt_size; r++) {
        volatile struct slot *s = &slots[r - 1];
        size_t at = mt_differs((const unsigned char *)s->data, SIZE, (unsigned)(100 * way + r));
        double took = s->took;
        MT_CHECK(at == SIZE, "way %d: rank %d's byte %zu is not there when the target wakes up", way, r, at);
        MT_CHECK(took > 0 && took < SLEEP / 2.0, "way %d: rank %d took %.1f s (0: had not finished)", way, r, took);
    }
}

static void round_of(int way, int asleep, const int *pids, struct slot *slots, MPI_Win win)
{
    unsigned seed = (unsigned)(100 * way + mt_rank);
    int signal_number;
    sigset_t go;

    if (mt_rank == 0) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        memset(slots, 0, (size_t)(mt_size - 1) * sizeof(*slots));
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (way == HELD)
        MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD); /* all have their locks */
    if (mt_rank == 0 && asleep)
        sleeps(way, pids, slots);
    if (mt_rank > 0 && asleep) {
        sigemptyset(&go);
        sigaddset(&go, SIGUSR1);
        sigwait(&go, &signal_number);
    }
    if (mt_rank > 0)
        visit(way, asleep ? seed : seed + 5000, win);
    if (way == HELD)
        MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Win win;
    sigset_t go;

    sigemptyset(&go);
    sigaddset(&go, SIGUSR1);
    sigprocmask(SIG_BLOCK, &go, NULL); /* in all threads that MPI makes, too */
    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    int pid = getpid(), *pids = mt_alloc((size_t)mt_size * sizeof(int));
    MPI_Allgather(&pid, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
    size_t size = mt_rank == 0 ? (size_t)(mt_size - 1) * sizeof(struct slot) : 0;
    struct slot *slots = mt_alloc(size);
    MPI_Win_create(slots, (MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int way = 0; way < WAYS; way++) {
        round_of(way, 0, pids, slots, win);
        round_of(way, 1, pids, slots, win);
    }
    MPI_Win_free(&win);
    free(slots);
    free(pids);
    return mt_end();
}
