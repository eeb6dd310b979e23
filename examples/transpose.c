// SPDX-License-Identifier: BSD-2-Clause
/* Transposes a matrix on its way from one process to another. Neither process moves a byte.
 *
 *     pumice run --hosts 2 -- build/examples/transpose           between two hosts
 *     pumice run --hosts 1 -- build/examples/transpose --n 1024  within one device
 *
 * Rank 0 has a matrix of n rows. Rank 1 needs its transpose: row r of rank 0 is column r of rank 1. In the memory of
 * rank 1, a column is n cells that are a whole row apart. So rank 1 describes all its columns, one after the other,
 * as a layout, and binds a memory window to it. A user of the window's key sees the matrix column by column, from
 * address 0 on:
 *
 *     rank 1's memory                            the window
 *     a0 b0 c0                                   a0 a1 a2  b0 b1 b2  c0 c1 c2
 *     a1 b1 c1     layout: first along a column,
 *     a2 b2 c2     then on to the next column
 *
 * Rank 0 writes its row r to address r * (bytes of a row) of the window, with one RDMA WRITE of one SGE, as if the
 * window was ordinary memory. Then rank 1 checks every cell, and checks that the gaps behind its rows did not
 * change.
 *
 * The program starts both ranks itself. PUMICE_HOST puts each on its host. They exchange addresses and keys through
 * a socket pair. */
#include <errno.h>
#include <getopt.h>
#include <infiniband/verbs.h>
#include <pumice/layout.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEFAULT_N = 256, MAX_N = 8192, GAP = 3, DEPTH = 64, PSN = 77 };
static const double UNTOUCHED = -1; /* value of rank 1's memory before the transfer */

static unsigned n = DEFAULT_N;
static int other; /* socket to the other rank */

/* Each rank sends this to the other, so that they can connect. */
struct conn_info {
    union ibv_gid gid;
    uint32_t qpn;
    uint32_t rkey; /* of rank 1's window */
};

static struct rank {
    unsigned me;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct ibv_mw *mw;
    double *matrix; /* n rows of pitch() cells */
    struct conn_info mine, theirs;
    uint8_t gid_index;
} rank;

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "transpose: rank %u: %s: %s\n", rank.me, what, strerror(errno));
    exit(1);
}

/* Cells from one row of the matrix to the next. Behind each row is a gap that the transfer must not change. */
static size_t pitch(void)
{
    return n + GAP;
}

static size_t row_bytes(void)
{
    return n * sizeof(double);
}

static double value(size_t row, size_t column)
{
    return (double)(row * n + column);
}

/* --- exchanging messages -------------------------------------------------- */

static void tell(const void *data, size_t size)
{
    need(send(other, data, size, MSG_NOSIGNAL) == (ssize_t)size, "the other rank is gone");
}

static void hear(void *data, size_t size)
{
    need(recv(other, data, size, MSG_WAITALL) == (ssize_t)size, "the other rank is gone");
}

/* --- objects -------------------------------------------------------------- */

/* The index of the first GID of RoCE v2. On a NIC, index 0 is mostly one of RoCE v1. */
static uint8_t find_gid(struct ibv_context *ctx, union ibv_gid *gid)
{
    struct ibv_gid_entry entry;

    for (uint8_t i = 0; ibv_query_gid_ex(ctx, 1, i, &entry, 0) == 0; i++) {
        if (entry.gid_type != IBV_GID_TYPE_ROCE_V2)
            continue;
        *gid = entry.gid;
        return i;
    }
    need(false, "no GID of RoCE v2");
    return 0;
}

static void make_objects(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {.max_send_wr = DEPTH, .max_send_sge = 1}};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    size_t size = n * pitch() * sizeof(double);

    need(list && list[0] && (rank.ctx = ibv_open_device(list[0])) != NULL, "no device (run it by pumice run)");
    ibv_free_device_list(list);
    need((rank.matrix = malloc(size)) != NULL, "memory for the matrix");
    need((rank.pd = ibv_alloc_pd(rank.ctx)) != NULL, "protection domain");
    /* The region grants no remote access, so a peer can write rank 1's memory only through a window. */
    rank.mr = ibv_reg_mr(rank.pd, rank.matrix, size, IBV_ACCESS_LOCAL_WRITE | (rank.me == 1 ? IBV_ACCESS_MW_BIND : 0));
    need(rank.mr != NULL, "memory region");
    need((rank.cq = ibv_create_cq(rank.ctx, DEPTH, NULL, NULL, 0)) != NULL, "completion queue");
    init.send_cq = init.recv_cq = rank.cq;
    need((rank.qp = ibv_create_qp(rank.pd, &init)) != NULL, "queue pair");
    need(ibv_modify_qp(rank.qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
         "to INIT");
    rank.gid_index = find_gid(rank.ctx, &rank.mine.gid);
    rank.mine.qpn = rank.qp->qp_num;
}

/* In the reverse order: an object that another one uses can't be destroyed. */
static void destroy_objects(void)
{
    need(ibv_destroy_qp(rank.qp) == 0 && (!rank.mw || ibv_dealloc_mw(rank.mw) == 0), "destroy the queue pair");
    need(ibv_destroy_cq(rank.cq) == 0 && ibv_dereg_mr(rank.mr) == 0 && ibv_dealloc_pd(rank.pd) == 0 &&
             ibv_close_device(rank.ctx) == 0,
         "close the device");
    free(rank.matrix);
}

static void connect_qp(void)
{
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .rq_psn = PSN,
        .min_rnr_timer = 1,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.sgid_index = rank.gid_index, .hop_limit = 64}}};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = PSN};

    tell(&rank.mine, sizeof(rank.mine));
    hear(&rank.theirs, sizeof(rank.theirs));
    rtr.dest_qp_num = rank.theirs.qpn;
    rtr.ah_attr.grh.dgid = rank.theirs.gid;
    need(ibv_modify_qp(rank.qp, &rtr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "to RTR");
    need(ibv_modify_qp(rank.qp, &rts,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "to RTS");
}

static void wait_for_completion(const char *what)
{
    struct ibv_wc wc;
    int got;

    while ((got = ibv_poll_cq(rank.cq, 1, &wc)) == 0)
        continue;
    if (got == 1 && wc.status == IBV_WC_SUCCESS)
        return;
    fprintf(stderr, "transpose: rank %u: %s: %s%s%s\n", rank.me, what, ibv_wc_status_str(wc.status),
            wc.status == IBV_WC_MW_BIND_ERR ? ": " : "",
            wc.status == IBV_WC_MW_BIND_ERR ? pumice_layout_strerror(wc.vendor_err) : "");
    exit(1);
}

/* --- rank 1: the window over the columns ---------------------------------- */

static void bind_columns(void)
{
    struct pumice_mw_alloc_attr_ex attr = {.pd = rank.pd, .type = IBV_MW_TYPE_2, .max_descriptors = 1};
    struct pumice_mw_dimension dimensions[] = {
        {.stride = pitch() * sizeof(double), .count = n}, /* changes fastest: along a column, from row to row */
        {.stride = sizeof(double), .count = n}, /* then to the next column */
    };
    struct pumice_mw_bind_layout_entry cells = {
        .mem_obj_type = PUMICE_MW_ENTRY_USE_MR,
        .mr = rank.mr,
        .addr = (uintptr_t)rank.matrix,
        .length = sizeof(double),
        .interleaved = {.repeat_count = 1, .dimension_count = 2, .dimension = dimensions},
    };
    struct pumice_mw_bind_layout layout = {
        .type = PUMICE_MW_BIND_LAYOUT_TYPE_INTERLEAVED, .entry_count = 1, .entries = &cells};
    struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED}, *bad;

    need((rank.mw = pumice_alloc_mw_ex(&attr)) != NULL, "memory window");
    wr.bind_mw.mw = rank.mw;
    wr.bind_mw.rkey = ibv_inc_rkey(rank.mw->rkey);
    wr.bind_mw.bind_info = pumice_mw_bind_info(&layout, IBV_ACCESS_REMOTE_WRITE);
    need(ibv_post_send(rank.qp, &wr, &bad) == 0, "post the bind");
    wait_for_completion("bind the window");
    rank.mine.rkey = wr.bind_mw.rkey;
}

static bool is_transposed(void)
{
    for (size_t r = 0; r < n; r++) {
        for (size_t c = 0; c < pitch(); c++) {
            double expected = c < n ? value(c, r) : UNTOUCHED, found = rank.matrix[r * pitch() + c];
            if (found == expected)
                continue;
            fprintf(stderr, "transpose: row %zu, %s %zu is %g, not %g\n", r, c < n ? "column" : "gap", c, found,
                    expected);
            return false;
        }
    }
    return true;
}

static int receive_columns(void)
{
    bool done;

    for (size_t i = 0; i < n * pitch(); i++)
        rank.matrix[i] = UNTOUCHED;
    connect_qp();
    bind_columns();
    tell(&rank.mine.rkey, sizeof(rank.mine.rkey));
    hear(&done, sizeof(done));
    if (!is_transposed())
        return 1;
    printf("rank 1: all %u x %u cells are right, and the gaps untouched\n", n, n);
    return 0;
}

/* --- rank 0: its rows ----------------------------------------------------- */

static void post_row(size_t row)
{
    struct ibv_sge sge = {(uintptr_t)(rank.matrix + row * pitch()), (uint32_t)row_bytes(), rank.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = row,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {.remote_addr = row * row_bytes(), .rkey = rank.theirs.rkey}},
                       *bad;

    need(ibv_post_send(rank.qp, &wr, &bad) == 0, "post a row");
}

static int send_rows(void)
{
    bool done = true;

    for (size_t r = 0; r < n; r++)
        for (size_t c = 0; c < pitch(); c++)
            rank.matrix[r * pitch() + c] = value(r, c);
    connect_qp();
    hear(&rank.theirs.rkey, sizeof(rank.theirs.rkey));
    for (size_t posted = 0, written = 0; written < n; written++) {
        while (posted < n && posted - written < DEPTH)
            post_row(posted++);
        wait_for_completion("write a row");
    }
    printf("rank 0: %u rows of %zu bytes written, one SGE each\n", n, row_bytes());
    fflush(stdout);
    tell(&done, sizeof(done));
    return 0;
}

/* --- starting ------------------------------------------------------------- */

static int run_rank(unsigned number, int sockets[2])
{
    const char *hosts = getenv("PUMICE_HOSTS"); /* set by pumice run */

    rank.me = number;
    other = sockets[number];
    close(sockets[!number]);
    setenv("PUMICE_HOST", number == 1 && hosts && atoi(hosts) > 1 ? "1" : "0", 1);
    make_objects();
    int code = number == 0 ? send_rows() : receive_columns();
    destroy_objects();
    return code;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"n", 1, NULL, 'n'}, {0}};
    int sockets[2], status, failed = 0, c;
    char *end;

    while ((c = getopt_long(argc, argv, "n:", options, NULL)) != -1) {
        if (c != 'n')
            return 2;
        unsigned long number = strtoul(optarg, &end, 10);
        if (*end || number < 1 || number > MAX_N) {
            fprintf(stderr, "transpose: --n is 1 to %d, not %s\n", MAX_N, optarg);
            return 2;
        }
        n = (unsigned)number;
    }
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socket pair");
    for (unsigned i = 0; i < 2; i++) {
        pid_t pid = fork();
        need(pid >= 0, "fork");
        if (pid == 0)
            exit(run_rank(i, sockets));
    }
    close(sockets[0]); /* so that a rank notices if the other one ends */
    close(sockets[1]);
    for (unsigned i = 0; i < 2; i++)
        failed |= wait(&status) < 0 || status != 0;
    return failed;
}
