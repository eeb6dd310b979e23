// SPDX-License-Identifier: BSD-2-Clause
/* Several of the programs as one job, because starting jobs takes longer than most of what they do: suite [NAME...], all of
 * them if no name is given. Rank 0 says how each ended; it prints "passed" if all did. */
#include "mt.h"

int part_p2p(int argc, char **argv);
int part_collectives(int argc, char **argv);
int part_onesided(int argc, char **argv);
int part_datatypes(int argc, char **argv);
int part_threads(int argc, char **argv);
int part_forks(int argc, char **argv);

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} parts[] = {{"p2p", part_p2p},           {"collectives", part_collectives},
             {"onesided", part_onesided}, {"datatypes", part_datatypes},
             {"threads", part_threads},   {"forks", part_forks}};

static int wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc < 2;
}

int main(int argc, char **argv)
{
    int done = 0;

    mt_begin(&argc, &argv, MPI_THREAD_MULTIPLE);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!wanted(parts[i].name, argc, argv))
            continue;
        double begin = MPI_Wtime();
        int failed = parts[i].run(argc, argv);
        if (mt_rank == 0) {
            printf("%s: %s after %.1f s\n", parts[i].name, failed ? "FAILED" : "ok", MPI_Wtime() - begin);
            fflush(stdout);
        }
        mt_errors += failed;
        done++;
        MPI_Barrier(MPI_COMM_WORLD); /* what takes anything must not find what the next part sends */
    }
    MT_CHECK(done > 0, "no part has such a name");
    return mt_end();
}
