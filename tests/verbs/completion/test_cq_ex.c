// SPDX-License-Identifier: BSD-2-Clause
/* Extended CQs and QPs: ibv_start_poll and its family, and ibv_wr_*. */
#include "tests/verbs/vt.h"

static struct vt_pair p;
static struct ibv_qp_ex *qpx;
static struct ibv_cq_ex *scq, *rcq;

static int start(struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr a = {0};
    double end = vt_now() + 5;
    int rc;
    while ((rc = ibv_start_poll(cq, &a)) == ENOENT && vt_now() < end)
        ;
    return rc;
}

static void creation(void)
{
    struct ibv_cq_init_attr_ex a = {.cqe = 16, .wc_flags = IBV_WC_EX_WITH_CVLAN};
    ok_pumice(!ibv_create_cq_ex(vt_ctx, &a) && errno == EOPNOTSUPP, "VLAN tags: EOPNOTSUPP");
    a.wc_flags = UINT64_C(1) << 40;
    ok(vt_none(ibv_create_cq_ex(vt_ctx, &a), EOPNOTSUPP), "unknown fields: EOPNOTSUPP");
    a.wc_flags = 0, a.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, a.flags = 1 << 9;
    ok_pumice(!ibv_create_cq_ex(vt_ctx, &a) && errno == EOPNOTSUPP, "unknown flags: EOPNOTSUPP");
    a.flags = 0, a.comp_mask = 1 << 9;
    ok(vt_none(ibv_create_cq_ex(vt_ctx, &a), EINVAL), "unknown attributes: EINVAL");
    a.comp_mask = 0, a.comp_vector = (uint32_t)vt_ctx->num_comp_vectors;
    ok(vt_none(ibv_create_cq_ex(vt_ctx, &a), EINVAL), "no such vector: EINVAL");
    a = (struct ibv_cq_init_attr_ex){.cqe = 0};
    ok(vt_none(ibv_create_cq_ex(vt_ctx, &a), EINVAL), "no entries: EINVAL");
}

/* The pair; QP 0 is an extended one. */
static void make(void)
{
    bool timed = !vt_lacks(vt_ctx, VT_TIMESTAMPS);
    struct ibv_cq_init_attr_ex a = {.cqe = 64, .wc_flags = IBV_WC_STANDARD_FLAGS};
    if (timed)
        a.wc_flags |=
            IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | (vt_is_pumice() ? IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK : 0);
    rcq = ibv_create_cq_ex(vt_ctx, &a);
    vt_needs_call(rcq, "ibv_create_cq_ex");
    need(rcq);
    a.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    a.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    need((scq = ibv_create_cq_ex(vt_ctx, &a)));
    p.scq = ibv_cq_ex_to_cq(scq);
    p.rcq = ibv_cq_ex_to_cq(rcq);
    vt_pair_make(&p, vt_ctx, NULL);
    ibv_destroy_qp(p.qp[0]);
    struct ibv_qp_init_attr_ex x = {.send_cq = p.scq,
                                    .recv_cq = p.rcq,
                                    .cap = {8, 8, 4, 4, 64},
                                    .qp_type = IBV_QPT_RC,
                                    .pd = p.pd,
                                    .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                    .send_ops_flags =
                                        IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_WRITE |
                                        IBV_QP_EX_WITH_RDMA_READ |
                                        (vt_lacks(vt_ctx, VT_ATOMICS) ? 0 : IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)};
    p.qp[0] = ibv_create_qp_ex(vt_ctx, &x);
    vt_needs_call(p.qp[0], "ibv_create_qp_ex with send_ops_flags");
    need(p.qp[0] && (qpx = ibv_qp_to_qp_ex(p.qp[0])));
}

static void refusals(void)
{
    make();
    if (vt_own("building in RESET: EINVAL")) {
        ibv_wr_start(qpx);
        ibv_wr_send(qpx);
        ibv_wr_set_inline_data(qpx, p.buf, 1);
        ok(ibv_wr_complete(qpx) == EINVAL, "building in RESET: EINVAL");
    }
    vt_connect(&p);
    ibv_wr_start(qpx);
    ibv_wr_send(qpx);
    ibv_wr_set_inline_data(qpx, p.buf, 65536);
    ok(vt_fails(ibv_wr_complete(qpx), EINVAL), "too much inline data: EINVAL");
    struct ibv_sge many[32] = {{0}};
    ibv_wr_start(qpx);
    ibv_wr_send(qpx);
    ibv_wr_set_sge_list(qpx, 32, many);
    ok(vt_fails(ibv_wr_complete(qpx), EINVAL), "too many SGEs: EINVAL");
    ibv_wr_start(qpx);
    for (int i = 0; i < 100; i++) {
        ibv_wr_send(qpx);
        ibv_wr_set_inline_data(qpx, p.buf, 1);
    }
    ok(vt_fails(ibv_wr_complete(qpx), ENOMEM), "more than the queue holds: ENOMEM");
    if (vt_own("TSO: EOPNOTSUPP")) { /* other libraries have no function for an operation that was not asked for */
        ibv_wr_start(qpx);
        ibv_wr_send_tso(qpx, p.buf, 1, 1);
        ok(ibv_wr_complete(qpx) == EOPNOTSUPP, "TSO: EOPNOTSUPP");
    }
    ibv_wr_start(qpx);
    ibv_wr_send(qpx);
    ibv_wr_set_inline_data(qpx, p.buf, 1);
    ibv_wr_abort(qpx);
    usleep(20000);
    struct ibv_poll_cq_attr a = {0}, unknown = {.comp_mask = 1};
    ok(ibv_start_poll(scq, &a) == ENOENT && ibv_start_poll(rcq, &a) == ENOENT, "nothing of all that was sent");
    ok(vt_fails(ibv_start_poll(scq, &unknown), EINVAL), "unknown poll attributes: EINVAL");
    ok(vt_pair_end(&p), "everything is destroyed");
}

static void traffic(void)
{
    struct ibv_data_buf bufs[3] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    struct timespec wall;
    bool atomics = !vt_lacks(vt_ctx, VT_ATOMICS), timed = !vt_lacks(vt_ctx, VT_TIMESTAMPS);
    make();
    vt_connect(&p);
    for (int i = 0; i < 2; i++)
        need(vt_recv(&p, 1, 100 + (uint64_t)i, 4096 + 64 * (uint32_t)i, 64) == 0);
    strcpy(p.buf, "from an SGE");
    strcpy(p.buf + 2048, "what is read");
    *(uint64_t *)(p.buf + 3072) = 40;
    ibv_wr_start(qpx);
    qpx->wr_id = 1, qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_imm(qpx, htonl(77));
    ibv_wr_set_inline_data_list(qpx, 3, bufs);
    qpx->wr_id = 2, qpx->wr_flags = 0;
    ibv_wr_send(qpx);
    ibv_wr_set_sge(qpx, p.mr->lkey, (uintptr_t)p.buf, 12);
    qpx->wr_id = 3, qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(qpx, p.mr->rkey, (uintptr_t)p.buf + 1024);
    ibv_wr_set_sge(qpx, p.mr->lkey, (uintptr_t)p.buf, 12);
    qpx->wr_id = 4;
    ibv_wr_rdma_read(qpx, p.mr->rkey, (uintptr_t)p.buf + 2048);
    ibv_wr_set_sge(qpx, p.mr->lkey, (uintptr_t)p.buf + 1100, 13);
    if (atomics) {
        qpx->wr_id = 5;
        ibv_wr_atomic_fetch_add(qpx, p.mr->rkey, (uintptr_t)p.buf + 3072, 2);
        ibv_wr_set_sge(qpx, p.mr->lkey, (uintptr_t)p.buf + 3080, 8);
    }
    ok(ibv_wr_complete(qpx) == 0, "five requests at once");

    need(start(rcq) == 0);
    clock_gettime(CLOCK_REALTIME, &wall);
    struct timespec mono;
    clock_gettime(CLOCK_MONOTONIC, &mono);
    uint64_t now = (uint64_t)mono.tv_sec * 1000000000u + (uint64_t)mono.tv_nsec;
    uint64_t wall_now = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    ok(rcq->wr_id == 100 && rcq->status == IBV_WC_SUCCESS && ibv_wc_read_opcode(rcq) == IBV_WC_RECV, "a message");
    ok(ibv_wc_read_byte_len(rcq) == 5, "its length");
    ok(ibv_wc_read_wc_flags(rcq) & IBV_WC_WITH_IMM && ibv_wc_read_imm_data(rcq) == htonl(77), "its immediate data");
    ok(ibv_wc_read_qp_num(rcq) == p.qp[1]->qp_num, "its QP");
    ok_pumice(ibv_wc_read_slid(rcq) == 0 && ibv_wc_read_sl(rcq) == 0 && ibv_wc_read_dlid_path_bits(rcq) == 0 &&
                  ibv_wc_read_vendor_err(rcq) == 0,
              "and no more");
    if (timed && vt_own("the time of a completion in nanoseconds, monotonic and of day")) {
        uint64_t ts = ibv_wc_read_completion_ts(rcq), wts = ibv_wc_read_completion_wallclock_ns(rcq);
        ok(ts <= now && now - ts < 5000000000u &&
               llabs((long long)(wall_now - wts) - (long long)(now - ts)) < 100000000,
           "its time, monotonic and of day");
    } else if (timed) {
        ok(ibv_wc_read_completion_ts(rcq) != 0, "its time");
    }
    ok(!memcmp(p.buf + 4096, "abcde", 5), "its data");
    int rc;
    double end = vt_now() + 5;
    while ((rc = ibv_next_poll(rcq)) == ENOENT && vt_now() < end)
        ;
    ok(rc == 0 && rcq->wr_id == 101 && ibv_wc_read_byte_len(rcq) == 12 && !strcmp(p.buf + 4160, "from an SGE"),
       "the second, by next_poll");
    ok(ibv_next_poll(rcq) == ENOENT, "no third");
    ibv_end_poll(rcq);

    static const enum ibv_wc_opcode want[] = {IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ, IBV_WC_FETCH_ADD};
    static const uint64_t ids[] = {1, 3, 4, 5};
    bool right = true;
    for (int i = 0; i < 3 + atomics && right; i++) {
        right = start(scq) == 0;
        if (right) {
            right = scq->wr_id == ids[i] && scq->status == IBV_WC_SUCCESS && ibv_wc_read_opcode(scq) == want[i];
            ibv_end_poll(scq);
        }
    }
    ok(right, "the sender's completions, of the signaled ones, in order");
    ok(!strcmp(p.buf + 1024, "from an SGE") && !strcmp(p.buf + 1100, "what is read") &&
           (!atomics || (*(uint64_t *)(p.buf + 3072) == 42 && *(uint64_t *)(p.buf + 3080) == 40)),
       "what they wrote, read and added");
    ok(vt_pair_end(&p), "everything is destroyed");
}

int main(void)
{
    vt_part("creation", creation);
    vt_part("refusals", refusals);
    vt_part("traffic", traffic);
    return vt_failed;
}
