// SPDX-License-Identifier: BSD-2-Clause
/* Measures the cost of layouts. It moves a column of a matrix of 4,096 x 4,096 doubles, and faces of a cube of 256 x
 * 256 x 256,
 *
 *     gather    from their places in rank 0 to a buffer of rank 1
 *     scatter   from a buffer of rank 0 to their places in rank 1, which is notified and answers
 *
 * in four ways:
 *
 *     layout    a memory window, local or remote: one request with one SGE
 *     list      one request with an SGE for each item, if so many are allowed (scatter: the receiver's list)
 *     pack      the program copies the items to or from a buffer of its own, and the request uses this buffer
 *     raw       process_vm_readv (gather) and process_vm_writev (scatter) of the same items: no network at all
 *
 *     pumice run --hosts 2 -- build/tests/bench/layout [REPETITIONS [MILLISECONDS]]
 *
 * Each repetition runs each of them in turn, for MILLISECONDS or once. It prints the median time of one transfer, and
 * the medians of the ratios within each repetition. It checks every way once before it measures. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <pumice/layout.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { N = 4096, EDGE = 256, CELL = sizeof(double), PSN = 77, REPETITIONS_MAX = 1000 };
#define MATRIX ((size_t)N * N * CELL) /* the cube has as many bytes */
#define BUFFER ((size_t)EDGE * EDGE * CELL) /* bytes of the largest shape */

/* A shape is one entry of one dimension: neighbouring dimensions of a face are one pattern. */
static const struct shape {
    const char *name;
    size_t start, length, stride, count; /* in bytes, but for the count of pieces */
} shapes[] = {
    {"column, 16 cells", 5 * CELL, CELL, N *CELL, 16},
    {"column, 256 cells", 5 * CELL, CELL, N *CELL, 256},
    {"column, all 4,096 cells", 5 * CELL, CELL, N *CELL, N},
    {"face [i][7][k], rows of 2 KiB", 7 * EDGE *CELL, EDGE *CELL, EDGE *EDGE *CELL, EDGE},
    {"face [i][j][7], single cells", 7 * CELL, CELL, EDGE *CELL, EDGE *EDGE},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };
enum way { LAYOUT, LIST, PACK, RAW, WAYS };
enum direction { GATHER, SCATTER };

/* The messages between the ranks. */
struct card {
    union ibv_gid gid;
    uint32_t qpn[SHAPES + 1];
    uint32_t rkey[SHAPES]; /* of the windows */
    uint32_t buffer_rkey;
    uint64_t matrix, buffer; /* their addresses */
};

static struct rank {
    unsigned me;
    pid_t child; /* rank 1, as rank 0 knows it */
    int other; /* socket to the other rank */
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_qp *qp[SHAPES + 1]; /* one for each shape, whose receives have its list, and one for all the rest */
    struct ibv_mr *matrix_mr, *buffer_mr;
    uint8_t *matrix, *buffer;
    uint32_t lkey[SHAPES]; /* of the windows */
    uint32_t max_sge;
    struct card mine, theirs;
} rank;

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "layout: rank %u: %s: %s\n", rank.me, what, strerror(errno));
    exit(1);
}

static double now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static size_t bytes(const struct shape *s)
{
    return s->length * s->count;
}

static bool fits_list(const struct shape *s)
{
    return s->count <= rank.max_sge;
}

static void tell(const void *data, size_t size)
{
    need(send(rank.other, data, size, MSG_NOSIGNAL) == (ssize_t)size, "the other rank is gone");
}

static void hear(void *data, size_t size)
{
    if (recv(rank.other, data, size, MSG_WAITALL) != (ssize_t)size)
        exit(rank.me == 1 ? 0 : 1); /* for rank 1 that is the end */
}

/* --- objects ----------------------------------------------------------------------------------- */

static uint8_t *pages(size_t size)
{
    uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    need(p != MAP_FAILED, "memory");
    memset(p, 1, size);
    return p;
}

static struct ibv_qp *make_qp(const struct ibv_device_attr *device)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .send_cq = rank.send_cq, .recv_cq = rank.recv_cq};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

    rank.max_sge = (uint32_t)device->max_sge;
    init.cap = (struct ibv_qp_cap){.max_send_wr = 8, .max_recv_wr = 8};
    init.cap.max_send_sge = init.cap.max_recv_sge = rank.max_sge;
    struct ibv_qp *qp = ibv_create_qp(rank.pd, &init);
    need(qp != NULL, "queue pair");
    need(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "to INIT");
    return qp;
}

static void make_objects(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_device_attr device;
    unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

    need(list && list[0] && (rank.ctx = ibv_open_device(list[0])) != NULL, "no device (run it by pumice run)");
    ibv_free_device_list(list);
    need(ibv_query_device(rank.ctx, &device) == 0, "query");
    need((rank.pd = ibv_alloc_pd(rank.ctx)) != NULL, "protection domain");
    rank.matrix = pages(MATRIX);
    rank.buffer = pages(BUFFER);
    rank.matrix_mr = ibv_reg_mr(rank.pd, rank.matrix, MATRIX, access | IBV_ACCESS_MW_BIND);
    rank.buffer_mr = ibv_reg_mr(rank.pd, rank.buffer, BUFFER, access);
    need(rank.matrix_mr && rank.buffer_mr, "memory region");
    need((rank.send_cq = ibv_create_cq(rank.ctx, 16, NULL, NULL, 0)) != NULL, "completion queue");
    need((rank.recv_cq = ibv_create_cq(rank.ctx, 64, NULL, NULL, 0)) != NULL, "completion queue");
    for (unsigned i = 0; i <= SHAPES; i++) {
        rank.qp[i] = make_qp(&device);
        rank.mine.qpn[i] = rank.qp[i]->qp_num;
    }
    need(ibv_query_gid(rank.ctx, 1, 0, &rank.mine.gid) == 0, "GID");
    rank.mine.buffer_rkey = rank.buffer_mr->rkey;
    rank.mine.matrix = (uintptr_t)rank.matrix;
    rank.mine.buffer = (uintptr_t)rank.buffer;
}

static void connect_qp(unsigned i)
{
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_4096,
                              .dest_qp_num = rank.theirs.qpn[i],
                              .rq_psn = PSN,
                              .min_rnr_timer = 1,
                              .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 64}}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = PSN};

    rtr.ah_attr.grh.dgid = rank.theirs.gid;
    need(ibv_modify_qp(rank.qp[i], &rtr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "to RTR");
    need(ibv_modify_qp(rank.qp[i], &rts,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "to RTS");
}

static struct ibv_wc next(struct ibv_cq *cq, const char *what)
{
    struct ibv_wc wc;
    int got;

    while ((got = ibv_poll_cq(cq, 1, &wc)) == 0)
        continue;
    if (got != 1 || wc.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "layout: rank %u: %s: %s\n", rank.me, what, ibv_wc_status_str(wc.status));
        exit(1);
    }
    return wc;
}

static void post_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    wr->send_flags |= IBV_SEND_SIGNALED;
    need(ibv_post_send(qp, wr, &bad) == 0, "post send");
}

/* Binds a window to each shape; the keys serve at both ends. */
static void bind_shapes(void)
{
    struct pumice_mw_alloc_attr_ex attr = {.pd = rank.pd, .type = IBV_MW_TYPE_2, .max_descriptors = 1};

    for (unsigned i = 0; i < SHAPES; i++) {
        const struct shape *s = &shapes[i];
        struct pumice_mw_dimension dim = {.stride = s->stride, .count = s->count};
        struct pumice_mw_bind_layout_entry entry = {
            .mem_obj_type = PUMICE_MW_ENTRY_USE_MR,
            .mr = rank.matrix_mr,
            .addr = (uintptr_t)rank.matrix + s->start,
            .length = s->length,
            .interleaved = {.repeat_count = 1, .dimension_count = 1, .dimension = &dim}};
        struct pumice_mw_bind_layout layout = {
            .type = PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED, .entry_count = 1, .entries = &entry};
        struct ibv_mw *mw = pumice_alloc_mw_ex(&attr);
        struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};

        need(mw != NULL, "memory window");
        wr.bind_mw.mw = mw;
        wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
        wr.bind_mw.bind_info = pumice_mw_bind_info(&layout, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        post_send(rank.qp[SHAPES], &wr); /* its rkey is of this queue pair alone */
        next(rank.send_cq, "bind");
        rank.mine.rkey[i] = wr.bind_mw.rkey;
        mw->rkey = wr.bind_mw.rkey;
        need(pumice_mw_get_lkey(mw, &rank.lkey[i]) == 0, "lkey");
    }
}

static uint32_t make_list(const struct shape *s, struct ibv_sge *list)
{
    for (uint32_t i = 0; i < s->count; i++)
        list[i] = (struct ibv_sge){(uintptr_t)rank.matrix + s->start + i * s->stride, (uint32_t)s->length,
                                   rank.matrix_mr->lkey};
    return (uint32_t)s->count;
}

/* --- copying by the program -------------------------------------------------------------------- */

static void pack(const struct shape *s)
{
    const uint8_t *from = rank.matrix + s->start;

    if (s->length == CELL) /* a size that the compiler knows, as a real program would have it */
        for (size_t i = 0; i < s->count; i++)
            memcpy(rank.buffer + i * CELL, from + i * s->stride, CELL);
    else
        for (size_t i = 0; i < s->count; i++)
            memcpy(rank.buffer + i * s->length, from + i * s->stride, s->length);
}

static void unpack(const struct shape *s)
{
    uint8_t *to = rank.matrix + s->start;

    if (s->length == CELL)
        for (size_t i = 0; i < s->count; i++)
            memcpy(to + i * s->stride, rank.buffer + i * CELL, CELL);
    else
        for (size_t i = 0; i < s->count; i++)
            memcpy(to + i * s->stride, rank.buffer + i * s->length, s->length);
}

/* The pieces of a shape in rank 1's memory, from (gather) or to (scatter) a buffer here. */
static void raw_copy(const struct shape *s, enum direction way)
{
    struct iovec pieces[IOV_MAX];

    for (size_t i = 0; i < s->count;) {
        struct iovec local = {rank.buffer + i * s->length, 0};
        unsigned long n = 0;
        ssize_t done;

        for (; n < IOV_MAX && i < s->count; n++, i++) {
            pieces[n].iov_base = (void *)(uintptr_t)(rank.theirs.matrix + s->start + i * s->stride);
            pieces[n].iov_len = s->length;
        }
        local.iov_len = n * s->length;
        done = way == GATHER ? process_vm_readv(rank.child, &local, 1, pieces, n, 0)
                             : process_vm_writev(rank.child, &local, 1, pieces, n, 0);
        need(done == (ssize_t)local.iov_len, "process_vm");
    }
}

/* --- rank 1 ------------------------------------------------------------------------------------ */

static void post_receive(unsigned qp)
{
    struct ibv_recv_wr wr = {.wr_id = qp}, *bad;
    struct ibv_sge list[256];

    if (qp < SHAPES) {
        wr.num_sge = (int)make_list(&shapes[qp], list);
        wr.sg_list = list;
    }
    need(ibv_post_recv(rank.qp[qp], &wr, &bad) == 0, "post receive");
}

/* A message with immediate data n > 0 is to be unpacked as shape n - 1. Each is answered on the queue pair it came
 * by. */
static void answer(void)
{
    struct ibv_wc wc = next(rank.recv_cq, "receive");
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
    uint32_t what = wc.wc_flags & IBV_WC_WITH_IMM ? ntohl(wc.imm_data) : 0;

    if (what)
        unpack(&shapes[what - 1]);
    post_receive((unsigned)wc.wr_id);
    post_send(rank.qp[wc.wr_id], &wr);
    next(rank.send_cq, "answer");
}

/* While rank 0 is busy with other things, rank 1 sleeps. */
static void run_rank1(void)
{
    for (unsigned i = 0; i <= SHAPES; i++)
        if (i == SHAPES || fits_list(&shapes[i]))
            post_receive(i);
    tell(&rank.mine, sizeof(rank.mine));
    for (;;) {
        unsigned messages;

        hear(&messages, sizeof(messages));
        while (messages--)
            answer();
    }
}

/* --- rank 0 ------------------------------------------------------------------------------------ */

static void gather(unsigned i, enum way way)
{
    const struct shape *s = &shapes[i];
    struct ibv_sge list[256] = {{(uintptr_t)rank.buffer, (uint32_t)bytes(s), rank.buffer_mr->lkey}};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = list, .num_sge = 1};

    if (way == RAW) {
        raw_copy(s, GATHER);
        return;
    }
    if (way == LAYOUT) {
        list[0].addr = 0;
        list[0].lkey = rank.lkey[i];
    } else if (way == LIST) {
        wr.num_sge = (int)make_list(s, list);
    } else {
        pack(s);
    }
    wr.wr.rdma.remote_addr = rank.theirs.buffer;
    wr.wr.rdma.rkey = rank.theirs.buffer_rkey;
    post_send(rank.qp[SHAPES], &wr);
    next(rank.send_cq, "gather");
}

static void scatter(unsigned i, enum way way)
{
    const struct shape *s = &shapes[i];
    struct ibv_sge sge = {(uintptr_t)rank.buffer, (uint32_t)bytes(s), rank.buffer_mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .sg_list = &sge, .num_sge = 1};
    unsigned qp = way == LIST ? i : SHAPES;

    if (way == RAW) {
        raw_copy(s, SCATTER);
        return;
    }
    if (way == LAYOUT) {
        wr.wr.rdma.rkey = rank.theirs.rkey[i];
    } else if (way == LIST) {
        wr.opcode = IBV_WR_SEND;
    } else {
        wr.imm_data = htonl(1 + i);
        wr.wr.rdma.remote_addr = rank.theirs.buffer;
        wr.wr.rdma.rkey = rank.theirs.buffer_rkey;
    }
    post_receive(qp);
    post_send(rank.qp[qp], &wr);
    next(rank.send_cq, "scatter");
    next(rank.recv_cq, "answer");
}

static void transfer(unsigned i, enum way way, enum direction direction, unsigned times)
{
    if (direction == SCATTER && way != RAW)
        tell(&times, sizeof(times));
    while (times--) {
        if (direction == GATHER)
            gather(i, way);
        else
            scatter(i, way);
    }
}

/* Moves data that was not there before, and looks whether they arrived. */
static void check(unsigned i, enum way way, enum direction direction)
{
    static uint8_t stamp;
    const struct shape *s = &shapes[i];
    uint8_t *expected = malloc(bytes(s)), *found = malloc(bytes(s));
    struct iovec local = {found, bytes(s)}, remote = {(void *)(uintptr_t)rank.theirs.buffer, bytes(s)};

    need(expected && found, "memory");
    stamp++;
    for (size_t k = 0; k < bytes(s); k++)
        expected[k] = (uint8_t)(stamp + k % 251);
    memcpy(rank.buffer, expected, bytes(s));
    if (direction == GATHER) {
        unpack(s);
        memset(rank.buffer, 0, bytes(s));
        transfer(i, way, direction, 1);
        need(process_vm_readv(rank.child, &local, 1, &remote, 1, 0) == (ssize_t)bytes(s), "process_vm_readv");
    } else {
        transfer(i, way, direction, 1);
        memset(rank.buffer, 0, bytes(s));
        raw_copy(s, GATHER);
        memcpy(found, rank.buffer, bytes(s));
    }
    errno = 0;
    need(memcmp(expected, found, bytes(s)) == 0, "what arrived is wrong");
    free(expected);
    free(found);
}

/* --- measuring --------------------------------------------------------------------------------- */

static double result[WAYS][REPETITIONS_MAX]; /* us of one transfer */

static double measure(unsigned i, enum way way, enum direction direction, double ms)
{
    double start = now_us(), end;
    unsigned done = 0, times = 1;

    do {
        transfer(i, way, direction, times);
        done += times;
        end = now_us();
        times = done; /* rank 1 is told of ever more at once, so that it doesn't sleep between them */
    } while (end - start < ms * 1e3);
    return (end - start) / done;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of the values, or of their ratios to others. */
static double median(const double *values, const double *others, unsigned n)
{
    static double sorted[REPETITIONS_MAX];

    for (unsigned i = 0; i < n; i++)
        sorted[i] = others ? values[i] / others[i] : values[i];
    qsort(sorted, n, sizeof(sorted[0]), by_value);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

static void print_row(const struct shape *s, unsigned repetitions)
{
    printf("  %-30s %6zu %7zu |", s->name, s->count, bytes(s));
    for (unsigned way = 0; way < WAYS; way++) {
        if (way == LIST && !fits_list(s))
            printf(" %9s", "-");
        else
            printf(" %9.1f", median(result[way], NULL, repetitions));
    }
    printf(" |");
    for (unsigned way = LIST; way < WAYS; way++) {
        if (way == LIST && !fits_list(s))
            printf(" %7s", "-");
        else
            printf(" %7.2f", median(result[LAYOUT], result[way], repetitions));
    }
    printf("\n");
    fflush(stdout);
}

static void run_table(enum direction direction, unsigned repetitions, double ms)
{
    printf("%-32s %6s %7s | %9s %9s %9s %9s | %8s %8s %8s\n", direction == GATHER ? "gather" : "scatter", "pieces",
           "bytes", "layout us", "list", "pack", "raw", /* a ÷ has two bytes */ "÷ list", "÷ pack", "÷ raw");
    for (unsigned i = 0; i < SHAPES; i++) {
        for (enum way way = 0; way < RAW; way++)
            if (way != LIST || fits_list(&shapes[i]))
                check(i, way, direction);
        for (unsigned r = 0; r < repetitions; r++)
            for (enum way way = 0; way < WAYS; way++)
                if (way != LIST || fits_list(&shapes[i]))
                    result[way][r] = measure(i, way, direction, ms);
        print_row(&shapes[i], repetitions);
    }
}

int main(int argc, char **argv)
{
    unsigned repetitions = argc > 1 ? (unsigned)atoi(argv[1]) : 15;
    double ms = argc > 2 ? atof(argv[2]) : 10;
    const char *hosts = getenv("PUMICE_HOSTS");
    bool two = hosts && atoi(hosts) > 1;
    int sockets[2];

    if (repetitions < 1 || repetitions > REPETITIONS_MAX || ms < 0) {
        fprintf(stderr, "usage: layout [REPETITIONS [MILLISECONDS]]\n");
        return 2;
    }
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socket pair");
    need((rank.child = fork()) >= 0, "fork");
    rank.me = rank.child == 0;
    if (rank.me == 1)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    rank.other = sockets[rank.me];
    close(sockets[!rank.me]);
    setenv("PUMICE_HOST", rank.me == 1 && two ? "1" : "0", 1);
    make_objects();
    tell(&rank.mine, sizeof(rank.mine));
    hear(&rank.theirs, sizeof(rank.theirs));
    for (unsigned i = 0; i <= SHAPES; i++)
        connect_qp(i);
    bind_shapes();
    if (rank.me == 1)
        run_rank1();
    hear(&rank.theirs, sizeof(rank.theirs)); /* with the windows' keys, and receives posted */
    printf("%s; lists of up to %u\n", two ? "between two hosts" : "within one device", rank.max_sge);
    run_table(GATHER, repetitions, ms);
    run_table(SCATTER, repetitions, ms);
    return 0;
}
