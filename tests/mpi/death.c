// SPDX-License-Identifier: BSD-2-Clause
/* A job that fails on purpose. After some traffic, all ranks wait for a message from the last rank, which aborts the
 * job (death abort) or is killed (death kill). Or it is killed while all ranks send and write 16 MiB in a loop (death
 * storm). No rank may print "passed". The output may be lost with the job. So the job writes to the file MT_BEGUN
 * that it has begun. */
#include "tests/mpi/mt.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

static void tell_begun(void)
{
    const char *path = getenv("MT_BEGUN");
    FILE *file = path ? fopen(path, "w") : NULL;

    if (!file || fclose(file) != 0) {
        fprintf(stderr, "MT_BEGUN: %s\n", path ? strerror(errno) : "not set");
        exit(1);
    }
}

/* In half a second this process is killed, whatever it does then. */
static void die_soon(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    struct itimerspec soon = {.it_value.tv_nsec = 500000000};
    timer_t timer;

    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &soon, NULL) != 0)
        abort();
}

/* Messages to the right, writes to the left. */
static void storm(void)
{
    enum { LEN = 16 << 20 };
    int right = (mt_rank + 1) % mt_size, left = (mt_rank + mt_size - 1) % mt_size;
    unsigned char *out = mt_alloc(LEN), *in = mt_alloc(LEN), *window = mt_alloc(LEN);
    MPI_Win win;

    mt_fill(out, LEN, (unsigned)mt_rank);
    MPI_Win_create(window, LEN, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    for (int round = 0;; round++) {
        int len = round == 0 ? 65536 : LEN; /* the first makes the connections */
        MPI_Request req[2];
        if (round == 1 && mt_rank == mt_size - 1)
            die_soon();
        MPI_Irecv(in, len, MPI_BYTE, left, 6, MPI_COMM_WORLD, &req[0]);
        MPI_Isend(out, len, MPI_BYTE, right, 6, MPI_COMM_WORLD, &req[1]);
        MPI_Put(out, len, MPI_BYTE, left, 0, len, MPI_BYTE, win);
        MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
        MPI_Win_flush(left, win);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "abort";
    char *buf = mt_alloc(100000);
    int sum;

    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (int i = 0; i < 20; i++)
        MPI_Allreduce(&mt_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (mt_rank == 0)
        tell_begun();
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(how, "storm") == 0)
        storm();
    if (mt_rank == mt_size - 1) {
        if (strcmp(how, "kill") == 0)
            raise(SIGKILL);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Recv(buf, 100000, MPI_BYTE, mt_size - 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return mt_end();
}
