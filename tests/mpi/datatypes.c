// SPDX-License-Identifier: BSD-2-Clause
/* Derived datatypes: memory that is not contiguous, on one side or on both. */
#include "mt.h"

#include <stddef.h>

/* Columns of a matrix become rows at the neighbour. */
static void test_columns(int n)
{
    int right = (mt_rank + 1) % mt_size, left = (mt_rank + mt_size - 1) % mt_size;
    size_t cells = (size_t)n * (size_t)n;
    int *a = mt_alloc(cells * sizeof(*a)), *b = mt_alloc(cells * sizeof(*b));
    MPI_Datatype column, one;

    for (size_t i = 0; i < cells; i++) {
        a[i] = mt_rank * 100000007 + (int)i;
        b[i] = -1;
    }
    MPI_Type_vector(n, 1, n, MPI_INT, &one);
    MPI_Type_create_resized(one, 0, sizeof(int), &column);
    MPI_Type_commit(&column);
    MPI_Sendrecv(a, n, column, right, 1, b, n * n, MPI_INT, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            MT_CHECK(b[i * n + j] == left * 100000007 + j * n + i, "%d x %d transposed: row %d, column %d", n, n, i, j);
    /* One column into another one: nothing else may change. */
    for (size_t i = 0; i < cells; i++)
        b[i] = -1;
    MPI_Sendrecv(a + 1, 1, column, right, 2, b + n - 1, 1, column, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            MT_CHECK(b[i * n + j] == (j == n - 1 ? left * 100000007 + i * n + 1 : -1), "column: row %d, column %d", i,
                     j);
    MPI_Type_free(&one);
    MPI_Type_free(&column);
    free(a);
    free(b);
}

struct record {
    char kind;
    double value;
    short tail[3];
};

/* Structures with holes; the holes stay as they were. */
static void test_records(int count)
{
    static const int length[3] = {1, 1, 3};
    const MPI_Aint at[3] = {offsetof(struct record, kind), offsetof(struct record, value),
                            offsetof(struct record, tail)};
    MPI_Datatype kinds[3] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, raw, type;
    struct record *out = mt_alloc((size_t)count * sizeof(*out)), *in = mt_alloc((size_t)count * sizeof(*in));

    MPI_Type_create_struct(3, length, at, kinds, &raw);
    MPI_Type_create_resized(raw, 0, sizeof(struct record), &type);
    MPI_Type_commit(&type);
    memset(out, 0xEE, (size_t)count * sizeof(*out));
    memset(in, 0x11, (size_t)count * sizeof(*in));
    for (int i = 0; i < count; i++) {
        out[i].kind = (char)i;
        out[i].value = mt_rank + i / 3.0;
        for (int t = 0; t < 3; t++)
            out[i].tail[t] = (short)(i * 3 + t + mt_rank);
    }
    int right = (mt_rank + 1) % mt_size, left = (mt_rank + mt_size - 1) % mt_size;
    MPI_Sendrecv(out, count, type, right, 3, in, count, type, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) {
        const unsigned char *hole = (const unsigned char *)&in[i] + 1;
        MT_CHECK(in[i].kind == (char)i && in[i].value == left + i / 3.0, "record %d of %d", i, count);
        for (int t = 0; t < 3; t++)
            MT_CHECK(in[i].tail[t] == (short)(i * 3 + t + left), "tail of record %d of %d", i, count);
        MT_CHECK(*hole == 0x11, "record %d of %d: the hole was written", i, count);
    }
    MPI_Type_free(&raw);
    MPI_Type_free(&type);
    free(out);
    free(in);
}

/* A block inside of a 3-dimensional array, put there by a one-sided operation. */
static void test_block(void)
{
    enum { N = 24 };
    static const int whole[3] = {N, N, N}, part[3] = {5, 6, 7}, from[3] = {1, 2, 3}, to[3] = {11, 10, 9};
    int right = (mt_rank + 1) % mt_size, left = (mt_rank + mt_size - 1) % mt_size;
    int *a = mt_alloc(sizeof(int) * N * N * N), *b = mt_alloc(sizeof(int) * N * N * N);
    MPI_Datatype source, target;
    MPI_Win win;

    for (int i = 0; i < N * N * N; i++) {
        a[i] = mt_rank * N * N * N + i;
        b[i] = -1;
    }
    MPI_Type_create_subarray(3, whole, part, from, MPI_ORDER_C, MPI_INT, &source);
    MPI_Type_create_subarray(3, whole, part, to, MPI_ORDER_C, MPI_INT, &target);
    MPI_Type_commit(&source);
    MPI_Type_commit(&target);
    MPI_Win_create(b, sizeof(int) * N * N * N, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(a, 1, source, right, 0, 1, target, win);
    MPI_Win_fence(0, win);
    for (int x = 0; x < N; x++)
        for (int y = 0; y < N; y++)
            for (int z = 0; z < N; z++) {
                int u = x - to[0], v = y - to[1], w = z - to[2];
                int inside = u >= 0 && u < part[0] && v >= 0 && v < part[1] && w >= 0 && w < part[2];
                int at = ((u + from[0]) * N + v + from[1]) * N + w + from[2];
                MT_CHECK(b[(x * N + y) * N + z] == (inside ? left * N * N * N + at : -1), "block: %d %d %d", x, y, z);
            }
    MPI_Win_free(&win);
    MPI_Type_free(&source);
    MPI_Type_free(&target);
    free(a);
    free(b);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, MPI_THREAD_SINGLE);
    test_columns(3);
    test_columns(50);
    test_columns(400);
    test_records(1);
    test_records(100);
    test_records(20000);
    test_block();
    return mt_end();
}
