// SPDX-License-Identifier: BSD-2-Clause
/* Shared by the MPI tests: data that can be checked, and one verdict of all ranks. Each program is one source file.
 * The programs use nothing but MPI and are compiled by the compiler wrapper of each MPI. Some are also compiled as
 * parts of the program suite (-DMT_PART=NAME). Then main is a function NAME, which finds MPI running and leaves it
 * running. */
#ifndef PUMICE_TESTS_MPI_MT_H
#define PUMICE_TESTS_MPI_MT_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mpi/data.h"

#ifdef MT_PART
#define main MT_PART
int main(int argc, char **argv);
#endif

static int mt_rank, mt_size; /* in MPI_COMM_WORLD */
static int mt_errors; /* of this rank */

/* Counts failed checks, and prints the first ones. */
#define MT_CHECK(holds, ...)                                                                                           \
    do {                                                                                                               \
        if (!(holds) && __atomic_fetch_add(&mt_errors, 1, __ATOMIC_RELAXED) < 10) {                                    \
            fprintf(stderr, "rank %d, %s:%d: ", mt_rank, __FILE__, __LINE__);                                          \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fputc('\n', stderr);                                                                                       \
        }                                                                                                              \
    } while (0)

/* Calls MPI_Init_thread. Returns the level that the library provides. */
static inline int mt_begin(int *argc, char ***argv, int level)
{
    int given;
#ifdef MT_PART
    (void)argc, (void)argv, (void)level;
    MPI_Query_thread(&given);
#else
    MPI_Init_thread(argc, argv, level, &given);
#endif
    MPI_Comm_rank(MPI_COMM_WORLD, &mt_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mt_size);
    return given;
}

/* Ends MPI. Rank 0 prints "passed" if no rank has counted an error. Returns the exit code, which is the same for all
 * ranks. */
static inline int mt_end(void)
{
    int all = 0;
    MPI_Allreduce(&mt_errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#ifdef MT_PART
    return all ? 1 : 0;
#endif
    MPI_Finalize();
    if (mt_rank == 0)
        printf(all ? "%d errors\n" : "passed\n", all);
    return all ? 1 : 0;
}

/* Ends MPI. Rank 0 prints why there was nothing to test. Returns the exit code. */
static inline int mt_skip(const char *why)
{
    if (mt_rank == 0)
        printf("skip: %s\n", why);
#ifndef MT_PART
    MPI_Finalize();
#endif
    return 0;
}

/* Returns zeroed memory. */
static inline void *mt_alloc(size_t size)
{
    void *p = calloc(size ? size : 1, 1);
    if (!p)
        abort();
    return p;
}

#endif
