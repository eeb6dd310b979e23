// SPDX-License-Identifier: BSD-2-Clause
/* Point to point: sizes for all protocols of an MPI (inline, eager, rendezvous), wildcards and their order, probes,
 * and many nonblocking messages at once. */
#include "tests/mpi/mt.h"

#define GUARD 64

/* Around the ring, in both directions, with a guard behind the buffer. */
static void test_ring(size_t size)
{
    int right = (mt_rank + 1) % mt_size, left = (mt_rank + mt_size - 1) % mt_size, count;
    char *out = mt_alloc(size), *in = mt_alloc(size + GUARD);
    MPI_Status st;

    mt_fill(out, size, (unsigned)mt_rank);
    memset(in, 0x5A, size + GUARD);
    MPI_Sendrecv(out, (int)size, MPI_BYTE, right, 7, in, (int)size + GUARD, MPI_BYTE, left, 7, MPI_COMM_WORLD, &st);
    MPI_Get_count(&st, MPI_BYTE, &count);
    MT_CHECK((size_t)count == size && st.MPI_SOURCE == left && st.MPI_TAG == 7, "%zu bytes: got %d from %d tag %d",
             size, count, st.MPI_SOURCE, st.MPI_TAG);
    MT_CHECK(mt_differs(in, size, (unsigned)left) == size, "%zu bytes: wrong at %zu", size,
             mt_differs(in, size, (unsigned)left));
    for (size_t i = 0; i < GUARD; i++)
        MT_CHECK(in[size + i] == 0x5A, "%zu bytes: written behind the message, at %zu", size, i);

    /* Synchronous, the other way round. */
    MPI_Request req;
    MPI_Irecv(in, (int)size, MPI_BYTE, right, 8, MPI_COMM_WORLD, &req);
    MPI_Ssend(out, (int)size, MPI_BYTE, left, 8, MPI_COMM_WORLD);
    MPI_Wait(&req, &st);
    MT_CHECK(mt_differs(in, size, (unsigned)right) == size, "%zu bytes, synchronous: wrong", size);
    free(out);
    free(in);
}

enum { ANY_MESSAGES = 60, ANY_MAX = 20000 };

static size_t any_size(int source, int k)
{
    return (size_t)(k * 331 + source * 17) % ANY_MAX;
}

/* Rank 0 receives any message. The messages of one rank arrive in the order of its sends. */
static void test_any(void)
{
    char *buf = mt_alloc(ANY_MAX);
    int *next = calloc((size_t)mt_size, sizeof(*next));

    if (mt_rank != 0) {
        for (int k = 0; k < ANY_MESSAGES; k++) {
            mt_fill(buf, any_size(mt_rank, k), (unsigned)(mt_rank * 1000 + k));
            MPI_Send(buf, (int)any_size(mt_rank, k), MPI_BYTE, 0, k, MPI_COMM_WORLD);
        }
    } else {
        for (int n = 0; n < ANY_MESSAGES * (mt_size - 1); n++) {
            MPI_Status st;
            int count;
            MPI_Recv(buf, ANY_MAX, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
            MPI_Get_count(&st, MPI_BYTE, &count);
            int s = st.MPI_SOURCE, k = st.MPI_TAG;
            MT_CHECK(k == next[s], "from %d: message %d where %d is due", s, k, next[s]);
            next[s]++;
            MT_CHECK((size_t)count == any_size(s, k), "from %d, message %d: %d bytes", s, k, count);
            MT_CHECK(mt_differs(buf, (size_t)count, (unsigned)(s * 1000 + k)) == (size_t)count, "data of %d from %d", k,
                     s);
        }
    }
    free(buf);
    free(next);
}

/* Matched probes: the receiver learns each size from the message. */
static void test_probe(void)
{
    static const int sizes[] = {0, 1, 100, 9000, 70000, 300000};
    int to = (mt_rank + 1) % mt_size;
    MPI_Request req[6];
    char *out[6];

    for (int i = 0; i < 6; i++) {
        out[i] = mt_alloc((size_t)sizes[i]);
        mt_fill(out[i], (size_t)sizes[i], (unsigned)(mt_rank + i));
        MPI_Isend(out[i], sizes[i], MPI_BYTE, to, 100 + i, MPI_COMM_WORLD, &req[i]);
    }
    for (int i = 5; i >= 0; i--) {
        MPI_Message message;
        MPI_Status st;
        int count;
        MPI_Mprobe(MPI_ANY_SOURCE, 100 + i, MPI_COMM_WORLD, &message, &st);
        MPI_Get_count(&st, MPI_BYTE, &count);
        MT_CHECK(count == sizes[i], "probed %d bytes for %d", count, sizes[i]);
        char *in = mt_alloc((size_t)count);
        MPI_Mrecv(in, count, MPI_BYTE, &message, &st);
        MT_CHECK(mt_differs(in, (size_t)count, (unsigned)(st.MPI_SOURCE + i)) == (size_t)count, "probed data of %d", i);
        free(in);
    }
    MPI_Waitall(6, req, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 6; i++)
        free(out[i]);
}

enum { STORM = 48, STORM_MAX = 16384 };

static size_t storm_size(int k)
{
    return (size_t)(k * k * 37) % STORM_MAX;
}

/* Every rank sends to every rank, also to itself. Half of the receives are posted after the message arrived, and in
 * the wrong order. */
static void test_storm(void)
{
    size_t n = (size_t)mt_size * STORM;
    char *out = mt_alloc(STORM * (size_t)STORM_MAX), *in = mt_alloc(n * STORM_MAX);
    MPI_Request *req = mt_alloc(2 * n * sizeof(*req));
    int r = 0;

    for (int k = 0; k < STORM; k++)
        mt_fill(out + (size_t)k * STORM_MAX, storm_size(k), (unsigned)(mt_rank * STORM + k));
    for (int late = 0; late < 2; late++) {
        for (int k = STORM - 1; k >= 0; k--)
            for (int p = 0; p < mt_size && k % 2 == late; p++)
                MPI_Irecv(in + ((size_t)p * STORM + (size_t)k) * STORM_MAX, STORM_MAX, MPI_BYTE, p, k, MPI_COMM_WORLD,
                          &req[r++]);
        for (int k = 0; k < STORM && !late; k++)
            for (int p = 0; p < mt_size; p++)
                MPI_Isend(out + (size_t)k * STORM_MAX, (int)storm_size(k), MPI_BYTE, p, k, MPI_COMM_WORLD, &req[r++]);
    }
    MPI_Waitall(r, req, MPI_STATUSES_IGNORE);
    for (int p = 0; p < mt_size; p++)
        for (int k = 0; k < STORM; k++)
            MT_CHECK(mt_differs(in + ((size_t)p * STORM + (size_t)k) * STORM_MAX, storm_size(k),
                                (unsigned)(p * STORM + k)) == storm_size(k),
                     "storm: message %d from %d", k, p);
    free(out);
    free(in);
    free(req);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {0, 1, 8, 63, 64, 65, 1023, 1024, 4096, 8192, 8257, 65536, 262144, 1 << 20, 4 << 20};

    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        test_ring(sizes[i]);
    /* Receives with wildcards must not get messages of the next test. */
    MPI_Barrier(MPI_COMM_WORLD);
    test_any();
    MPI_Barrier(MPI_COMM_WORLD);
    test_probe();
    MPI_Barrier(MPI_COMM_WORLD);
    test_storm();
    return mt_end();
}
