// SPDX-License-Identifier: BSD-2-Clause
/* Runs several of the programs as one job, because starting a job takes longer than most of them: suite LEVEL
 * [NAME...], all of them without a name. LEVEL is the thread level that it asks MPI for, because MPI's locks and
 * progress depend on it: "multiple", or "single", without the part that has threads. Rank 0 prints the result of each
 * program, and "passed" if all passed. */
#include "tests/mpi/mt.h"

int part_p2p(int argc, char **argv);
int part_collectives(int argc, char **argv);
int part_onesided(int argc, char **argv);
int part_datatypes(int argc, char **argv);
int part_threads(int argc, char **argv);
int part_forks(int argc, char **argv);

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    int level; /* the least that it needs */
} parts[] = {{"p2p", part_p2p, MPI_THREAD_SINGLE},           {"collectives", part_collectives, MPI_THREAD_SINGLE},
             {"onesided", part_onesided, MPI_THREAD_SINGLE}, {"datatypes", part_datatypes, MPI_THREAD_SINGLE},
             {"threads", part_threads, MPI_THREAD_MULTIPLE}, {"forks", part_forks, MPI_THREAD_SINGLE}};

static int wanted(const char *name, int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return 1;
    return argc < 3;
}

int main(int argc, char **argv)
{
    const char *asked = argc > 1 ? argv[1] : "";
    int level = strcmp(asked, "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, done = 0;
    int given = mt_begin(&argc, &argv, level);

    MT_CHECK(level == MPI_THREAD_MULTIPLE || strcmp(asked, "single") == 0, "'%s' is no level", asked);
    MT_CHECK((given == MPI_THREAD_MULTIPLE) == (level == MPI_THREAD_MULTIPLE), "asked for %s, MPI gives level %d",
             asked, given);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!wanted(parts[i].name, argc, argv) || parts[i].level > level)
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
