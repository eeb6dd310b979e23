// SPDX-License-Identifier: BSD-2-Clause
/* Dynamic connections: one half of the job opens a port, the other half connects to it, and both talk. They share
 * nothing but the port's name. The test does this twice. (MPICH 4.0 has no ports over UCX: see spawn.c.) */
#include "tests/mpi/mt.h"

#define LEN 200000

/* Every rank talks to every rank on the other side. side: 0 or 1. */
static void across(MPI_Comm inter, int side, unsigned round)
{
    int rank, others, sum;
    unsigned char *out = mt_alloc(LEN), *in = mt_alloc(LEN);

    MPI_Comm_rank(inter, &rank);
    MPI_Comm_remote_size(inter, &others);
    for (int p = 0; p < others; p++) {
        unsigned mine = 1000 * round + (unsigned)(side * 100 + rank * 10 + p);
        unsigned theirs = 1000 * round + (unsigned)(!side * 100 + p * 10 + rank);
        MPI_Request req[2];
        memset(in, 0xEE, LEN);
        mt_fill(out, LEN, mine);
        MPI_Irecv(in, LEN, MPI_BYTE, p, 4, inter, &req[0]);
        MPI_Isend(out, LEN, MPI_BYTE, p, 4, inter, &req[1]);
        MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
        size_t at = mt_differs(in, LEN, theirs);
        MT_CHECK(at == LEN, "round %u, from %d across: byte %zu differs", round, p, at);
    }
    /* In an intercommunicator, each side gets the data of the other side. */
    MPI_Allreduce(&mt_rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    for (int r = 0; r < mt_size; r++)
        sum -= r % 2 == side ? 0 : r;
    MT_CHECK(sum == 0, "round %u: the other side's ranks sum up to %d too many", round, sum);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm half, inter;

    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    int side = mt_rank % 2; /* with two hosts, each is a side */
    MPI_Comm_split(MPI_COMM_WORLD, side, mt_rank, &half);
    for (unsigned round = 0; round < 2; round++) {
        if (mt_rank == 0) {
            MPI_Open_port(MPI_INFO_NULL, port);
            MPI_Send(port, sizeof(port), MPI_CHAR, 1, 3, MPI_COMM_WORLD);
        }
        if (mt_rank == 1)
            MPI_Recv(port, sizeof(port), MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (side == 0)
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &inter);
        else
            MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &inter);
        across(inter, side, round);
        MPI_Comm_disconnect(&inter);
        if (mt_rank == 0)
            MPI_Close_port(port);
    }
    MPI_Comm_free(&half);
    return mt_end();
}
