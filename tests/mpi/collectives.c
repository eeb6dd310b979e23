// SPDX-License-Identifier: BSD-2-Clause
/* Collective operations. Every rank computes the expected results by itself and compares. */
#include "tests/mpi/mt.h"

static void test_barriers(void)
{
    for (int i = 0; i < 200; i++)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void test_bcast(size_t size)
{
    char *buf = mt_alloc(size);
    for (int root = 0; root < mt_size; root++) {
        memset(buf, 0, size);
        if (mt_rank == root)
            mt_fill(buf, size, (unsigned)root + 5);
        MPI_Bcast(buf, (int)size, MPI_BYTE, root, MPI_COMM_WORLD);
        MT_CHECK(mt_differs(buf, size, (unsigned)root + 5) == size, "bcast of %zu bytes from %d", size, root);
    }
    free(buf);
}

static void test_allreduce(int count)
{
    long long *in = mt_alloc((size_t)count * sizeof(*in)), *out = mt_alloc((size_t)count * sizeof(*out));
    long long ranks = (long long)mt_size * (mt_size - 1) / 2;

    for (int i = 0; i < count; i++)
        in[i] = (long long)i * 1000 + mt_rank;
    MPI_Allreduce(in, out, count, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++)
        MT_CHECK(out[i] == (long long)i * 1000 * mt_size + ranks, "allreduce of %d: element %d", count, i);
    MPI_Request req;
    MPI_Iallreduce(in, out, count, MPI_LONG_LONG, MPI_MAX, MPI_COMM_WORLD, &req);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++)
        MT_CHECK(out[i] == (long long)i * 1000 + mt_size - 1, "iallreduce of %d: element %d", count, i);
    free(in);
    free(out);
}

/* x -> a x + b modulo 2^32, composed: associative, not commutative, so that the order of ranks shows. */
struct affine {
    unsigned a, b;
};

static void compose(void *in, void *inout, int *len, MPI_Datatype *type)
{
    struct affine *f = in, *g = inout;
    (void)type;
    for (int i = 0; i < *len; i++) {
        struct affine h = {g[i].a * f[i].a, g[i].a * f[i].b + g[i].b};
        g[i] = h;
    }
}

static void test_order(void)
{
    struct affine mine = {2u * (unsigned)mt_rank + 3, (unsigned)mt_rank + 1}, all, upto, below, want = {1, 0};
    MPI_Datatype pair;
    MPI_Op op;

    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &op);
    MPI_Scan(&mine, &upto, 1, pair, op, MPI_COMM_WORLD);
    MPI_Exscan(&mine, &below, 1, pair, op, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &all, 1, pair, op, MPI_COMM_WORLD);
    for (int r = 0; r < mt_size; r++) {
        struct affine f = {2u * (unsigned)r + 3, (unsigned)r + 1}, h = {f.a * want.a, f.a * want.b + f.b};
        if (r == mt_rank && r > 0)
            MT_CHECK(below.a == want.a && below.b == want.b, "exscan of an operation that does not commute");
        want = h;
        if (r == mt_rank)
            MT_CHECK(upto.a == want.a && upto.b == want.b, "scan of an operation that does not commute");
    }
    MT_CHECK(all.a == want.a && all.b == want.b, "allreduce with an operation that does not commute");
    MPI_Op_free(&op);
    MPI_Type_free(&pair);
}

static void test_alltoall(int each)
{
    size_t n = (size_t)mt_size * (size_t)each;
    int *out = mt_alloc(n * sizeof(*out)), *in = mt_alloc(n * sizeof(*in));

    for (int p = 0; p < mt_size; p++)
        for (int i = 0; i < each; i++)
            out[(size_t)p * (size_t)each + (size_t)i] = mt_rank * 1000003 + p * 1009 + i;
    MPI_Alltoall(out, each, MPI_INT, in, each, MPI_INT, MPI_COMM_WORLD);
    for (int p = 0; p < mt_size; p++)
        for (int i = 0; i < each; i++)
            MT_CHECK(in[(size_t)p * (size_t)each + (size_t)i] == p * 1000003 + mt_rank * 1009 + i,
                     "alltoall of %d: %d from %d", each, i, p);
    free(out);
    free(in);
}

/* Uneven gather, and scatter back. */
static void test_gatherv(void)
{
    int mine = 100 + 777 * mt_rank, total = 0;
    int *count = mt_alloc((size_t)mt_size * sizeof(int)), *at = mt_alloc((size_t)mt_size * sizeof(int));

    for (int r = 0; r < mt_size; r++) {
        count[r] = 100 + 777 * r;
        at[r] = total;
        total += count[r];
    }
    char *part = mt_alloc((size_t)mine), *all = mt_alloc((size_t)total);
    int root = mt_size - 1;
    mt_fill(part, (size_t)mine, (unsigned)mt_rank);
    MPI_Gatherv(part, mine, MPI_BYTE, all, count, at, MPI_BYTE, root, MPI_COMM_WORLD);
    for (int r = 0; r < mt_size && mt_rank == root; r++)
        MT_CHECK(mt_differs(all + at[r], (size_t)count[r], (unsigned)r) == (size_t)count[r], "gatherv from %d", r);
    memset(part, 0, (size_t)mine);
    MPI_Scatterv(all, count, at, MPI_BYTE, part, mine, MPI_BYTE, root, MPI_COMM_WORLD);
    MT_CHECK(mt_differs(part, (size_t)mine, (unsigned)mt_rank) == (size_t)mine, "scatterv");
    memset(all, 0, (size_t)total);
    MPI_Allgatherv(part, mine, MPI_BYTE, all, count, at, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < mt_size; r++)
        MT_CHECK(mt_differs(all + at[r], (size_t)count[r], (unsigned)r) == (size_t)count[r], "allgatherv from %d", r);
    free(part);
    free(all);
    free(count);
    free(at);
}

/* Sums of blocks: all of them at one rank, one at each rank, and blocks of different lengths. */
static void test_reduce(int each)
{
    size_t n = (size_t)mt_size * (size_t)each;
    long long *in = mt_alloc(n * sizeof(*in)), *out = mt_alloc(n * sizeof(*out));
    long long ranks = (long long)mt_size * (mt_size - 1) / 2;
    int root = mt_size / 2, *count = mt_alloc((size_t)mt_size * sizeof(int)), before = 0;

    for (size_t i = 0; i < n; i++)
        in[i] = (long long)i * 1000 + mt_rank;
    MPI_Reduce(in, out, (int)n, MPI_LONG_LONG, MPI_SUM, root, MPI_COMM_WORLD);
    for (size_t i = 0; i < n && mt_rank == root; i++)
        MT_CHECK(out[i] == (long long)i * 1000 * mt_size + ranks, "reduce of %zu: element %zu", n, i);
    MPI_Reduce_scatter_block(in, out, each, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < each; i++)
        MT_CHECK(out[i] == ((long long)mt_rank * each + i) * 1000 * mt_size + ranks,
                 "reduce_scatter_block of %d: element %d", each, i);
    /* The first rank gives half of its block to the last. */
    for (int r = 0; r < mt_size; r++)
        count[r] = each;
    count[0] -= each / 2;
    count[mt_size - 1] += each / 2;
    for (int r = 0; r < mt_rank; r++)
        before += count[r];
    MPI_Reduce_scatter(in, out, count, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count[mt_rank]; i++)
        MT_CHECK(out[i] == ((long long)before + i) * 1000 * mt_size + ranks, "reduce_scatter of %d: element %d", each,
                 i);
    free(in);
    free(out);
    free(count);
}

/* Every rank contributes the same length: to one rank, and to all. */
static void test_gather(size_t each)
{
    char *part = mt_alloc(each), *all = mt_alloc(each * (size_t)mt_size);

    for (int root = 0; root < mt_size; root += 3) {
        mt_fill(part, each, (unsigned)(100 * root + mt_rank));
        memset(all, 0, each * (size_t)mt_size);
        MPI_Gather(part, (int)each, MPI_BYTE, all, (int)each, MPI_BYTE, root, MPI_COMM_WORLD);
        for (int r = 0; r < mt_size && mt_rank == root; r++)
            MT_CHECK(mt_differs(all + (size_t)r * each, each, (unsigned)(100 * root + r)) == each,
                     "gather of %zu bytes to %d, from %d", each, root, r);
    }
    mt_fill(part, each, (unsigned)mt_rank + 7);
    memset(all, 0, each * (size_t)mt_size);
    MPI_Allgather(part, (int)each, MPI_BYTE, all, (int)each, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < mt_size; r++)
        MT_CHECK(mt_differs(all + (size_t)r * each, each, (unsigned)r + 7) == each, "allgather of %zu bytes, from %d",
                 each, r);
    free(part);
    free(all);
}

/* How much from goes to to: nothing for some pairs, some kilobytes for others. */
static int uneven(int from, int to)
{
    return (from + 2 * to) % 3 ? (from * 5 + to * 3) % 7 * 1500 + 13 : 0;
}

static void test_alltoallv(void)
{
    enum { MOST = 6 * 1500 + 13 };
    size_t ranks = (size_t)mt_size;
    char *out = mt_alloc(ranks * MOST), *in = mt_alloc(ranks * MOST);
    int *number = mt_alloc(4 * ranks * sizeof(int));
    int *counts = number, *from = number + ranks, *expect = number + 2 * ranks, *to = number + 3 * ranks;

    memset(in, 0x5A, ranks * MOST);
    for (int p = 0; p < mt_size; p++) {
        counts[p] = uneven(mt_rank, p);
        expect[p] = uneven(p, mt_rank);
        from[p] = p * MOST;
        to[p] = (mt_size - 1 - p) * MOST; /* not in the order of ranks */
        mt_fill(out + from[p], (size_t)counts[p], (unsigned)(mt_rank * 100 + p));
    }
    MPI_Alltoallv(out, counts, from, MPI_BYTE, in, expect, to, MPI_BYTE, MPI_COMM_WORLD);
    for (int p = 0; p < mt_size; p++) {
        size_t size = (size_t)expect[p];
        MT_CHECK(mt_differs(in + to[p], size, (unsigned)(p * 100 + mt_rank)) == size, "alltoallv from %d", p);
        for (size_t i = size; i < MOST; i++)
            MT_CHECK(in[(size_t)to[p] + i] == 0x5A, "alltoallv: written behind what came from %d, at %zu", p, i);
    }
    free(out);
    free(in);
    free(number);
}

/* Several at once, on one communicator, and finished in another order; with a barrier that the last rank comes to
 * late. */
static void test_in_flight(void)
{
    enum { LONG = 120000, EACH = 700 };
    size_t n = (size_t)mt_size * EACH;
    char *wide = mt_alloc(LONG), *small = mt_alloc(99);
    int *out = mt_alloc(n * sizeof(int)), *in = mt_alloc(n * sizeof(int)), last = mt_size - 1, passed;
    int one = mt_rank + 1, sum = 0;
    MPI_Request req[5];

    for (unsigned round = 0; round < 3; round++) {
        memset(wide, 0, LONG);
        memset(small, 0, 99);
        if (mt_rank == 0)
            mt_fill(wide, LONG, round);
        if (mt_rank == last)
            mt_fill(small, 99, 50 + round);
        for (size_t i = 0; i < n; i++)
            out[i] = mt_rank * 1000003 + (int)(i / EACH) * 1009 + (int)(i % EACH);
        MPI_Ibcast(wide, LONG, MPI_BYTE, 0, MPI_COMM_WORLD, &req[0]);
        MPI_Ialltoall(out, EACH, MPI_INT, in, EACH, MPI_INT, MPI_COMM_WORLD, &req[1]);
        MPI_Ireduce(&one, &sum, 1, MPI_INT, MPI_SUM, last, MPI_COMM_WORLD, &req[2]);
        MPI_Ibcast(small, 99, MPI_BYTE, last, MPI_COMM_WORLD, &req[3]);
        if (mt_rank == last)
            MPI_Wait(&req[1], MPI_STATUS_IGNORE); /* the others' barrier waits for it, while the rest goes on */
        MPI_Ibarrier(MPI_COMM_WORLD, &req[4]);
        for (passed = 0; !passed;)
            MPI_Test(&req[4], &passed, MPI_STATUS_IGNORE);
        for (int i = 3; i >= 0; i--)
            MPI_Wait(&req[i], MPI_STATUS_IGNORE);
        MT_CHECK(mt_differs(wide, LONG, round) == LONG, "ibcast of the first rank, round %u", round);
        MT_CHECK(mt_differs(small, 99, 50 + round) == 99, "ibcast of the last rank, round %u", round);
        MT_CHECK(mt_rank != last || sum == mt_size * (mt_size + 1) / 2, "ireduce, round %u: %d", round, sum);
        for (size_t i = 0; i < n; i++)
            MT_CHECK(in[i] == (int)(i / EACH) * 1000003 + mt_rank * 1009 + (int)(i % EACH),
                     "ialltoall, round %u, element %zu", round, i);
    }
    free(wide);
    free(small);
    free(out);
    free(in);
}

/* Two halves at the same time, and communicators that come and go. */
static void test_split(void)
{
    for (int round = 0; round < 8; round++) {
        MPI_Comm half;
        int sum, want = 0;
        MPI_Comm_split(MPI_COMM_WORLD, mt_rank % 2, mt_size - mt_rank, &half);
        for (int r = mt_rank % 2; r < mt_size; r += 2)
            want += r;
        MPI_Allreduce(&mt_rank, &sum, 1, MPI_INT, MPI_SUM, half);
        MT_CHECK(sum == want, "round %d: the ranks of this half sum up to %d, not %d", round, sum, want);
        MPI_Comm_free(&half);
    }
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    test_barriers();
    test_bcast(1);
    test_bcast(3000);
    test_bcast(1000001);
    test_allreduce(1);
    test_allreduce(1000);
    test_allreduce(100000);
    test_order();
    test_alltoall(1);
    test_alltoall(5000);
    test_alltoall(60000);
    test_alltoallv();
    test_gather(1);
    test_gather(9000);
    test_gatherv();
    test_reduce(2);
    test_reduce(3000);
    test_in_flight();
    test_split();
    return mt_end();
}
