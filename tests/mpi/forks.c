// SPDX-License-Identifier: BSD-2-Clause
/* fork, system and popen during communication. The children read inherited memory and exit. Messages that the parent
 * receives afterwards are right, in memory from before the fork and in new memory. */
#include "tests/mpi/mt.h"

#include <sys/wait.h>
#include <unistd.h>

#define LEN 300000
#define ROUNDS 6

/* A child that overwrites its copy of the buffers. The parent must not see that. */
static void scribble(unsigned char *in, unsigned char *out)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        memset(in, 0x11, LEN);
        memset(out, 0x22, LEN);
        _exit(7);
    }
    int status = 0;
    MT_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid, "fork or waitpid");
    MT_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7, "the child's status is %#x", status);
}

static void commands(void)
{
    char line[64] = "";
    MT_CHECK(system("exit 5") == 5 << 8, "system");
    FILE *f = popen("echo hello", "r");
    MT_CHECK(f && fgets(line, sizeof(line), f) && strcmp(line, "hello\n") == 0, "popen: '%s'", line);
    if (f)
        pclose(f);
}

int main(int argc, char **argv)
{
    unsigned char *in = mt_alloc(LEN), *out = mt_alloc(LEN);

    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    int next = (mt_rank + 1) % mt_size, before = (mt_rank + mt_size - 1) % mt_size;
    for (unsigned round = 0; round < ROUNDS; round++) {
        MPI_Request request[2];
        memset(in, 0xEE, LEN);
        mt_fill(out, LEN, (unsigned)mt_rank + 50 * round);
        MPI_Irecv(in, LEN, MPI_BYTE, before, 3, MPI_COMM_WORLD, &request[0]);
        if (round % 2)
            scribble(in, out); /* the receive is posted, nothing comes yet */
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Isend(out, LEN, MPI_BYTE, next, 3, MPI_COMM_WORLD, &request[1]);
        if (round % 3 == 0)
            scribble(in, out); /* both are under way */
        commands();
        MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        size_t at = mt_differs(in, LEN, (unsigned)before + 50 * round);
        MT_CHECK(at == LEN, "round %u: byte %zu differs", round, at);
    }
    free(in);
    free(out);
    return mt_end();
}
