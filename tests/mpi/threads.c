// SPDX-License-Identifier: BSD-2-Clause
/* MPI_THREAD_MULTIPLE: several threads of each rank communicate at the same time. They use communicators of their
 * own, and a common one in which tags separate them. */
#include "tests/mpi/mt.h"

#include <pthread.h>

enum { THREADS = 3, ROUNDS = 30, MAX = 40000 };

static MPI_Comm own[THREADS];

static void *work(void *arg)
{
    int t = *(int *)arg;
    int right = (mt_rank + 1) % mt_size, left = (mt_rank + mt_size - 1) % mt_size;
    char *out = mt_alloc(MAX), *in = mt_alloc(MAX);

    for (int i = 0; i < ROUNDS; i++) {
        size_t size = (size_t)(i * 7919 + t * 31) % MAX;
        int v = mt_rank + i * t, sum;
        mt_fill(out, size, (unsigned)(mt_rank * 64 + t * 8 + i));
        MPI_Sendrecv(out, (int)size, MPI_BYTE, right, t, in, MAX, MPI_BYTE, left, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MT_CHECK(mt_differs(in, size, (unsigned)(left * 64 + t * 8 + i)) == size, "thread %d, round %d", t, i);
        MPI_Allreduce(&v, &sum, 1, MPI_INT, MPI_SUM, own[t]);
        MT_CHECK(sum == mt_size * (mt_size - 1) / 2 + mt_size * i * t, "thread %d, round %d: sum %d", t, i, sum);
    }
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    int number[THREADS], given = mt_begin(&argc, &argv, MPI_THREAD_MULTIPLE);

    MT_CHECK(given == MPI_THREAD_MULTIPLE, "MPI gives only level %d", given); /* both have it */
    if (given < MPI_THREAD_MULTIPLE)
        return mt_end();
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_dup(MPI_COMM_WORLD, &own[t]);
    for (int t = 0; t < THREADS; t++) {
        number[t] = t;
        if (pthread_create(&thread[t], NULL, work, &number[t]) != 0)
            abort();
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
    for (int t = 0; t < THREADS; t++)
        MPI_Comm_free(&own[t]);
    return mt_end();
}
