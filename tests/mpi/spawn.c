// SPDX-License-Identifier: BSD-2-Clause
/* Dynamic processes: the job starts two children by MPI_Comm_spawn, talks to them through the intercommunicator and
 * in collectives of the merged communicator, and disconnects. The test does this twice. Open MPI must succeed. MPICH
 * 4.0 has no dynamic processes over UCX, on any device, and its error says so. */
#include "tests/mpi/mt.h"

#define CHILDREN 2
#define LEN 100000

/* The part of both sides. Parents are the low group. */
static void together(MPI_Comm inter, int child, unsigned char *buf)
{
    MPI_Comm all;
    int rank, size, sum = 0, others;
    MPI_Comm_remote_size(inter, &others);
    MPI_Comm_rank(inter, &rank);
    if (child) { /* each child hears from every parent, and answers */
        for (int p = 0; p < others; p++) {
            memset(buf, 0xEE, LEN);
            MPI_Recv(buf, LEN, MPI_BYTE, p, 1, inter, MPI_STATUS_IGNORE);
            MT_CHECK(mt_differs(buf, LEN, (unsigned)(p + 10 * rank)) == LEN, "child %d: wrong data of parent %d", rank,
                     p);
            mt_fill(buf, LEN, (unsigned)(500 + p + 10 * rank));
            MPI_Send(buf, LEN, MPI_BYTE, p, 2, inter);
        }
    } else {
        for (int c = 0; c < others; c++) {
            mt_fill(buf, LEN, (unsigned)(rank + 10 * c));
            MPI_Send(buf, LEN, MPI_BYTE, c, 1, inter);
            memset(buf, 0xEE, LEN);
            MPI_Recv(buf, LEN, MPI_BYTE, c, 2, inter, MPI_STATUS_IGNORE);
            MT_CHECK(mt_differs(buf, LEN, (unsigned)(500 + rank + 10 * c)) == LEN, "parent %d: wrong data of child %d",
                     rank, c);
        }
    }
    MPI_Intercomm_merge(inter, child, &all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
    MT_CHECK(sum == size * (size - 1) / 2, "merged: the sum of %d ranks is %d", size, sum);
    int errors = 0; /* so that the children's errors count, too */
    MPI_Allreduce(&mt_errors, &errors, 1, MPI_INT, MPI_SUM, all);
    mt_errors = errors;
    MPI_Comm_free(&all);
}

#ifdef MPICH
/* True if the error's text contains this text. */
static int says(int error, const char *text)
{
    char all[MPI_MAX_ERROR_STRING] = "";
    int len;
    MPI_Error_string(error, all, &len);
    return strstr(all, text) != NULL;
}

/* True if MPICH itself refused: spawning needs a port for the children to connect to, and over UCX there is none. */
static int refused(int error)
{
    char port[MPI_MAX_PORT_NAME];
    return says(error, "Error in spawn call") &&
           says(MPI_Open_port(MPI_INFO_NULL, port), "not supported with ucx netmod");
}
#else
static int refused(int error)
{
    (void)error;
    return 0;
}
#endif

int main(int argc, char **argv)
{
    unsigned char *buf = mt_alloc(LEN);
    MPI_Comm parent, inter;
    int codes[CHILDREN];

    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        together(parent, 1, buf);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int round = 0; round < 2; round++) {
        int error = MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
        if (refused(error))
            return mt_skip("this MPI has no MPI_Comm_spawn over UCX");
        MT_CHECK(error == MPI_SUCCESS, "MPI_Comm_spawn: error %d", error);
        if (error != MPI_SUCCESS)
            break;
        together(inter, 0, buf);
        MPI_Comm_disconnect(&inter);
    }
    free(buf);
    return mt_end();
}
