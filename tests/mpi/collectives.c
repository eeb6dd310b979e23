// SPDX-License-Identifier: BSD-2-Clause
/* Collective operations: results against what every rank can compute by itself. */
#include "mt.h"

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
    struct affine mine = {2u * (unsigned)mt_rank + 3, (unsigned)mt_rank + 1}, all, upto, want = {1, 0};
    MPI_Datatype pair;
    MPI_Op op;

    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
    MPI_Type_commit(&pair);
    MPI_Op_create(compose, 0, &op);
    MPI_Scan(&mine, &upto, 1, pair, op, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &all, 1, pair, op, MPI_COMM_WORLD);
    for (int r = 0; r < mt_size; r++) {
        struct affine f = {2u * (unsigned)r + 3, (unsigned)r + 1}, h = {f.a * want.a, f.a * want.b + f.b};
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
    test_gatherv();
    test_split();
    return mt_end();
}
