// SPDX-License-Identifier: BSD-2-Clause
/* Measures an MPI, and prints one number, or several (times): perf WHAT SIZE ITERATIONS
 *
 *   latency     microseconds one way, between ranks 0 and 1 in turn
 *   bandwidth   MiB/s from rank 0 to rank 1, with WINDOW outstanding messages
 *   rate        the same in millions of messages per second
 *   put         MiB/s by MPI_Put to a window of rank 1, which does nothing
 *   allreduce   microseconds for one MPI_Allreduce of SIZE bytes of doubles, all ranks
 *   times       the same on average, and the median and the 99th percentile of what single ones take on rank 0
 *
 * It first warms up with a tenth of the iterations. Except for allreduce and times, ranks 2 and higher do nothing. */
#include "tests/mpi/mt.h"

#define WINDOW 64

static char *out, *in;

static void latency(int size, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        if (mt_rank == 0)
            MPI_Send(out, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        if (mt_rank <= 1)
            MPI_Recv(in, size, MPI_BYTE, 1 - mt_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (mt_rank == 1)
            MPI_Send(out, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

/* Window by window, each answered by an empty message. */
static void stream(int size, int rounds)
{
    MPI_Request request[WINDOW];
    for (int i = 0; i < rounds && mt_rank <= 1; i += WINDOW) {
        for (int w = 0; w < WINDOW; w++) {
            if (mt_rank == 0)
                MPI_Isend(out, size, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request[w]);
            else
                MPI_Irecv(in, size, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request[w]);
        }
        MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
        if (mt_rank == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    }
}

static MPI_Win win;

static void put(int size, int rounds)
{
    if (mt_rank != 0)
        return;
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    for (int i = 0; i < rounds; i++) {
        MPI_Put(out, size, MPI_BYTE, 1, 0, size, MPI_BYTE, win);
        if (i % WINDOW == WINDOW - 1)
            MPI_Win_flush(1, win);
    }
    MPI_Win_unlock(1, win);
}

static void allreduce(int size, int rounds)
{
    for (int i = 0; i < rounds; i++)
        MPI_Allreduce(out, in, size / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* The duration of each MPI_Allreduce of the last run, in microseconds. main sorts them. */
static double *times;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void timed_allreduce(int size, int rounds)
{
    free(times);
    times = mt_alloc((size_t)rounds * sizeof(*times));
    double before = MPI_Wtime();
    for (int i = 0; i < rounds; i++) {
        allreduce(size, 1);
        double after = MPI_Wtime();
        times[i] = (after - before) * 1e6;
        before = after;
    }
}

static const struct {
    const char *name;
    void (*run)(int size, int rounds);
    double (*result)(double seconds, double size, double rounds);
} * chosen;

static double one_way(double seconds, double size, double rounds)
{
    (void)size;
    return seconds / rounds / 2 * 1e6;
}

static double each(double seconds, double size, double rounds)
{
    (void)size;
    return seconds / rounds * 1e6;
}

static double mib(double seconds, double size, double rounds)
{
    return size * rounds / seconds / (1 << 20);
}

static double millions(double seconds, double size, double rounds)
{
    (void)size;
    return rounds / seconds / 1e6;
}

int main(int argc, char **argv)
{
    static const __typeof__(*chosen) all[] = {{"latency", latency, one_way},  {"bandwidth", stream, mib},
                                              {"rate", stream, millions},     {"put", put, mib},
                                              {"allreduce", allreduce, each}, {"times", timed_allreduce, each}};
    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (size_t i = 0; argc == 4 && i < sizeof(all) / sizeof(all[0]); i++)
        if (strcmp(argv[1], all[i].name) == 0)
            chosen = &all[i];
    if (!chosen || mt_size < 2) {
        fprintf(stderr, "usage: mpirun -n N perf latency|bandwidth|rate|put|allreduce|times SIZE ITERATIONS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    int size = atoi(argv[2]), rounds = (atoi(argv[3]) + WINDOW - 1) / WINDOW * WINDOW;
    out = memset(mt_alloc((size_t)size), 0, (size_t)size);
    in = memset(mt_alloc((size_t)size), 0, (size_t)size);
    if (chosen->run == put)
        MPI_Win_create(in, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    chosen->run(size, rounds / 10 / WINDOW * WINDOW + WINDOW);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    chosen->run(size, rounds);
    double seconds = MPI_Wtime() - begin;
    if (mt_rank == 0) {
        printf("%.4f", chosen->result(seconds, size, rounds));
        if (chosen->run == timed_allreduce) {
            qsort(times, (size_t)rounds, sizeof(*times), compare);
            printf(" %.4f %.4f", times[rounds / 2], times[rounds * 99 / 100]);
        }
        printf("\n");
        fflush(stdout);
    }
    if (chosen->run == put)
        MPI_Win_free(&win);
    free(times);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
