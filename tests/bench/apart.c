// SPDX-License-Identifier: BSD-2-Clause
/* Measures how far two processors are apart: the time in which a cache line goes from one to the other and back.
 *
 *     apart
 *
 * Prints nanoseconds, for the first two processors that this process may use. Exit code 77: there is only one. A
 * hypervisor may move a virtual machine's processors while it runs. Two processors that shared a cache may not share
 * one then. The time is several times as long, and so is everything that processes on them exchange. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define TURNS 2000
#define ROUNDS 9 /* the quickest of them counts: no interrupt came in between */

static _Alignas(128) atomic_uint line;
static int cpu[2];

static void pin(int to)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((unsigned)to, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static void *answer(void *unused)
{
    (void)unused;
    pin(cpu[1]);
    for (unsigned i = 0; i < ROUNDS * TURNS; i++) {
        while (atomic_load(&line) != 2 * i + 1)
            ;
        atomic_store(&line, 2 * i + 2);
    }
    return NULL;
}

static double now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* Nanoseconds of a turn, on average of a round that begins with this turn. */
static double ask(unsigned turn)
{
    double start = now_ns();

    for (unsigned i = turn; i < turn + TURNS; i++) {
        atomic_store(&line, 2 * i + 1);
        while (atomic_load(&line) != 2 * i + 2)
            ;
    }
    return (now_ns() - start) / TURNS;
}

int main(void)
{
    double least = 0;
    cpu_set_t mine;
    pthread_t other;
    int n = 0;

    sched_getaffinity(0, sizeof(mine), &mine);
    for (int i = 0; i < CPU_SETSIZE && n < 2; i++) {
        if (CPU_ISSET((unsigned)i, &mine))
            cpu[n++] = i;
    }
    if (n < 2)
        return 77;
    pin(cpu[0]);
    if (pthread_create(&other, NULL, answer, NULL) != 0)
        return 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        double ns = ask(round * TURNS);

        least = round == 0 || ns < least ? ns : least;
    }
    pthread_join(other, NULL);
    printf("%.0f\n", least);
    return 0;
}
