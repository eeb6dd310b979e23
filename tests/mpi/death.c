// SPDX-License-Identifier: BSD-2-Clause
/* A job that can't end well: after some traffic the last rank aborts it (death abort), or is killed (death kill), while all
 * others wait for a message from it. Nobody may print "passed". What they print may be lost with the job, so that it
 * has begun stands in a file, whose name is in MT_BEGUN. */
#include "mt.h"

#include <errno.h>
#include <signal.h>

static void tell_begun(void)
{
    const char *path = getenv("MT_BEGUN");
    FILE *file = path ? fopen(path, "w") : NULL;

    if (!file || fclose(file) != 0) {
        fprintf(stderr, "MT_BEGUN: %s\n", path ? strerror(errno) : "not set");
        exit(1);
    }
}

int main(int argc, char **argv)
{
    char *buf = mt_alloc(100000);
    int sum;

    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (int i = 0; i < 20; i++)
        MPI_Allreduce(&mt_rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (mt_rank == 0)
        tell_begun();
    MPI_Barrier(MPI_COMM_WORLD);
    if (mt_rank == mt_size - 1) {
        if (argc > 1 && strcmp(argv[1], "kill") == 0)
            raise(SIGKILL);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Recv(buf, 100000, MPI_BYTE, mt_size - 1, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return mt_end();
}
