// SPDX-License-Identifier: BSD-2-Clause
/* Derived datatypes: memory that is not contiguous, on one side or on both sides. */
#include "tests/mpi/mt.h"

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

/* Blocks of different lengths at irregular byte addresses, from odd addresses to others. The bytes between them must
 * not change. */
static void test_scattered(int blocks)
{
    size_t room = (size_t)blocks * 700, data = 0;
    int right = (mt_rank + 1) % mt_size, left = (mt_rank + mt_size - 1) % mt_size;
    int *length = mt_alloc((size_t)blocks * sizeof(int));
    MPI_Aint *from = mt_alloc((size_t)blocks * sizeof(*from)), *to = mt_alloc((size_t)blocks * sizeof(*to));
    unsigned char *out = mt_alloc(room), *in = mt_alloc(room), *want = mt_alloc(room);
    MPI_Datatype source, target;

    for (int i = 0; i < blocks; i++) {
        length[i] = i * 37 % 300; /* the first one has none */
        from[i] = i * 700 + i * 13 % 400;
        to[i] = (blocks - 1 - i) * 700 + i * 7 % 400; /* the last one first */
        data += (size_t)length[i];
    }
    MPI_Type_create_hindexed(blocks, length, from, MPI_BYTE, &source);
    MPI_Type_create_hindexed(blocks, length, to, MPI_BYTE, &target);
    MPI_Type_commit(&source);
    MPI_Type_commit(&target);
    mt_fill(out, room, (unsigned)mt_rank);
    memset(in, 0x77, room);
    MPI_Status st;
    int count;
    MPI_Sendrecv(out, 1, source, right, 4, in, 1, target, left, 4, MPI_COMM_WORLD, &st);
    MPI_Get_count(&st, MPI_BYTE, &count);
    MT_CHECK((size_t)count == data, "%d scattered blocks: %d bytes", blocks, count);
    mt_fill(out, room, (unsigned)left);
    memset(want, 0x77, room);
    for (int i = 0; i < blocks; i++)
        memcpy(want + to[i], out + from[i], (size_t)length[i]);
    for (size_t i = 0; i < room; i++)
        MT_CHECK(in[i] == want[i], "%d scattered blocks: byte %zu", blocks, i);
    MPI_Type_free(&source);
    MPI_Type_free(&target);
    free(length);
    free(from);
    free(to);
    free(out);
    free(in);
    free(want);
}

/* Every third block of a neighbour's window, together of more than a rendezvous's size: written, added to, and read
 * back, by origins whose memory is contiguous or has other strides. */
static void test_strided_window(int blocks)
{
    enum { BLOCK = 32, HALF = BLOCK / 2 };
    int right = (mt_rank + 1) % mt_size, left = (mt_rank + mt_size - 1) % mt_size, n = blocks * BLOCK;
    int *window = mt_alloc(3 * (size_t)n * sizeof(int)), *out = mt_alloc((size_t)n * sizeof(int));
    int *in = mt_alloc(2 * (size_t)n * sizeof(int));
    MPI_Datatype third, second;
    MPI_Win win;

    MPI_Type_vector(blocks, BLOCK, 3 * BLOCK, MPI_INT, &third);
    MPI_Type_vector(2 * blocks, HALF, BLOCK, MPI_INT, &second);
    MPI_Type_commit(&third);
    MPI_Type_commit(&second);
    for (int i = 0; i < 3 * n; i++)
        window[i] = -1;
    for (int i = 0; i < n; i++)
        out[i] = mt_rank * 10000019 + i;
    memset(in, 0xFF, 2 * (size_t)n * sizeof(int));
    MPI_Win_create(window, 3 * (MPI_Aint)n * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
    MPI_Put(out, n, MPI_INT, right, BLOCK, 1, third, win);
    MPI_Win_flush(right, win);
    MPI_Accumulate(out, n, MPI_INT, right, BLOCK, 1, third, MPI_SUM, win);
    MPI_Win_flush(right, win);
    MPI_Get(in, 1, second, right, BLOCK, 1, third, win);
    MPI_Win_unlock(right, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, mt_rank, 0, win);
    for (int i = 0; i < 3 * n; i++) {
        int written = i / BLOCK % 3 == 1, at = i / (3 * BLOCK) * BLOCK + i % BLOCK;
        MT_CHECK(window[i] == (written ? 2 * (left * 10000019 + at) : -1), "window of %d blocks: element %d is %d",
                 blocks, i, window[i]);
    }
    MPI_Win_unlock(mt_rank, win);
    for (int i = 0; i < 2 * n; i++) {
        int got = i % BLOCK < HALF, at = i / BLOCK * HALF + i % HALF;
        MT_CHECK(in[i] == (got ? 2 * out[at] : -1), "got from a window of %d blocks: element %d is %d", blocks, i,
                 in[i]);
    }
    MPI_Win_free(&win);
    MPI_Type_free(&third);
    MPI_Type_free(&second);
    free(window);
    free(out);
    free(in);
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
    test_scattered(3);
    test_scattered(2000);
    test_block();
    test_strided_window(1);
    test_strided_window(500);
    return mt_end();
}
