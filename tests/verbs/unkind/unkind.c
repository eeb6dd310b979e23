// SPDX-License-Identifier: BSD-2-Clause
/* Programs that an unkind NIC exposes, and the right way beside each. A wrong program passes as long as the devices are
 * kind. tests/e2e/cli/unkind.sh runs them one by one. Usage: unkind KIND wrong|right */
#include "tests/verbs/vt.h"

#define ROUNDS 200
#define AT_SOURCE 0u
#define AT_TARGET 32768u

static struct vt_pair p;
static bool wrong;

static void fill(uint32_t at, char value, uint32_t len)
{
    memset(p.buf + at, value, len);
}

/* The first byte that differs; -1: all are equal. */
static long differs(uint32_t at, char value, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++) {
        if (((volatile char *)p.buf)[at + i] != value)
            return i;
    }
    return -1;
}

static struct ibv_wc take(struct ibv_cq *cq)
{
    struct ibv_wc wc = {.status = 255};
    need(vt_poll(cq, 1, &wc) == 1);
    return wc;
}

static void write_by(int i, uint32_t from, uint32_t to, uint32_t len, enum ibv_wr_opcode opcode)
{
    struct ibv_sge s = vt_sge(&p, from, len);
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)p.buf + to, p.mr->rkey}},
                       *bad;
    need(ibv_post_send(p.qp[i], &wr, &bad) == 0);
}

static void write_to(uint32_t from, uint32_t to, uint32_t len, enum ibv_wr_opcode opcode)
{
    write_by(0, from, to, len, opcode);
}

/* Until the byte has this value. */
static void await_byte(uint32_t at, char value)
{
    double end = vt_now() + vt_wait_seconds();
    while (((volatile char *)p.buf)[at] != value)
        need(vt_now() < end);
}

/* Wrong: the last byte of a WRITE is there, so the others are. */
static const char *placement(void)
{
    for (int round = 1; round <= ROUNDS; round++) {
        char value = (char)(round % 100 + 1);
        fill(AT_SOURCE, value, 4096);
        if (wrong) {
            write_to(AT_SOURCE, AT_TARGET, 4096, IBV_WR_RDMA_WRITE);
            await_byte(AT_TARGET + 4095, value);
        } else {
            need(vt_recv(&p, 1, 1, 0, 0) == 0);
            write_to(AT_SOURCE, AT_TARGET, 4096, IBV_WR_RDMA_WRITE_WITH_IMM);
            need(take(p.rcq).status == IBV_WC_SUCCESS);
        }
        if (differs(AT_TARGET, value, 4096) >= 0)
            return "the last byte of the message is there, but others are not";
        need(take(p.scq).status == IBV_WC_SUCCESS);
    }
    return NULL;
}

/* --- another process --- */

struct peer { /* what one end tells the other */
    uint32_t qpn, rkey;
    uint64_t addr;
};

static void tell(int fd, const void *what, size_t len)
{
    need(write(fd, what, len) == (ssize_t)len);
}

static void hear(int fd, void *what, size_t len)
{
    need(read(fd, what, len) == (ssize_t)len);
}

/* Connects qp[0] with that of the process at the other end of the pipes. */
static struct peer meet(int from, int to)
{
    struct peer own = {p.qp[0]->qp_num, p.mr->rkey, (uintptr_t)p.buf}, other;
    need(vt_to_init(p.qp[0]) == 0);
    tell(to, &own, sizeof(own));
    hear(from, &other, sizeof(other));
    need(vt_to_rtr(p.qp[0], other.qpn) == 0 && vt_to_rts(p.qp[0]) == 0);
    return other;
}

/* Writes data, waits for the completion, and then writes a flag. Then waits for the other process. */
static void write_flags(int from, int to)
{
    struct peer target = meet(from, to);
    for (int round = 1; round <= ROUNDS; round++) {
        char value = (char)(round % 100 + 1), go;
        hear(from, &go, 1);
        for (int flag = 0; flag < 2; flag++) {
            struct ibv_sge s = vt_sge(&p, AT_SOURCE, flag ? 8 : 1024);
            struct ibv_send_wr wr = {.sg_list = &s,
                                     .num_sge = 1,
                                     .opcode = flag && !wrong ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .wr.rdma = {target.addr + AT_TARGET + (flag ? 8192 : 0), target.rkey}},
                               *bad;
            fill(AT_SOURCE, value, s.length);
            need(ibv_post_send(p.qp[0], &wr, &bad) == 0 && take(p.scq).status == IBV_WC_SUCCESS);
        }
    }
    exit(0);
}

static void make(void)
{
    struct ibv_context *ctx = vt_open();
    need(ctx);
    vt_pair_make(&p, ctx, NULL);
}

/* Wrong: the flag is there, so the data are, which were acknowledged before the flag was written. */
static const char *visibility(void)
{
    int to[2], from[2];
    need(pipe(to) == 0 && pipe(from) == 0);
    if (fork() == 0) {
        close(to[1]); /* so that this process ends with the other one */
        close(from[0]);
        make();
        write_flags(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    make();
    meet(from[0], to[1]);
    for (int round = 1; round <= ROUNDS; round++) {
        char value = (char)(round % 100 + 1);
        need(wrong || vt_recv(&p, 0, 1, 0, 0) == 0);
        tell(to[1], "g", 1);
        if (wrong)
            await_byte(AT_TARGET + 8192, value);
        else
            need(take(p.rcq).status == IBV_WC_SUCCESS);
        if (differs(AT_TARGET, value, 1024) >= 0)
            return "the flag is there, but not what was written and acknowledged before";
    }
    return NULL;
}

/* Wrong: a request completes before those that were posted to another queue pair after its message came. */
static const char *completions(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct ibv_wc wc[2];
        need(vt_recv(&p, 1, 1, AT_TARGET, 64) == 0 && vt_send(&p, 0, 2, AT_SOURCE, 64, IBV_SEND_SIGNALED) == 0);
        need(take(p.rcq).status == IBV_WC_SUCCESS);
        write_by(1, AT_SOURCE, AT_TARGET + 64, 64, IBV_WR_RDMA_WRITE);
        wc[0] = take(p.scq);
        wc[1] = take(p.scq);
        need(wc[0].status == IBV_WC_SUCCESS && wc[1].status == IBV_WC_SUCCESS && wc[0].qp_num != wc[1].qp_num);
        if (wrong && wc[0].qp_num != p.qp[0]->qp_num)
            return "the second queue pair was first";
    }
    return NULL;
}

/* Wrong: an event was read, so a completion is there. */
static const char *events(void)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(p.ctx);
    struct ibv_cq *cq = ibv_create_cq(p.ctx, 16, NULL, channel, 0), *got;
    void *context;
    need(channel && cq && ibv_req_notify_cq(cq, 0) == 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(p.pd, &init), *usual = p.qp[0];
    need(qp && vt_to_init(qp) == 0 && vt_to_rtr(qp, qp->qp_num) == 0 && vt_to_rts(qp) == 0);
    p.qp[0] = qp;
    for (int round = 0; round < ROUNDS; round++) {
        struct ibv_wc wc;
        int n;
        usleep(200); /* the program has other work, too */
        write_to(AT_SOURCE, AT_TARGET, 64, IBV_WR_RDMA_WRITE);
        do {
            need(ibv_get_cq_event(channel, &got, &context) == 0);
            ibv_ack_cq_events(cq, 1);
            need(ibv_req_notify_cq(cq, 0) == 0);
            n = ibv_poll_cq(cq, 1, &wc);
        } while (!wrong && n == 0);
        if (n == 0)
            return "an event came, but no completion is there";
        need(n == 1 && wc.status == IBV_WC_SUCCESS);
    }
    p.qp[0] = usual;
    need(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_destroy_comp_channel(channel) == 0);
    return NULL;
}

/* Wrong: four messages have come, so one poll takes their completions. */
static const char *polls(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct ibv_wc wc[4];
        for (uint32_t i = 0; i < 4; i++)
            need(vt_recv(&p, 1, i, AT_TARGET + 64 * i, 64) == 0);
        for (uint32_t i = 0; i < 4; i++)
            need(vt_send(&p, 0, i, AT_SOURCE, 64, IBV_SEND_SIGNALED) == 0);
        for (int i = 0; i < 4; i++) /* they complete after the messages came */
            need(take(p.scq).status == IBV_WC_SUCCESS);
        int n = wrong ? ibv_poll_cq(p.rcq, 4, wc) : vt_poll(p.rcq, 4, wc);
        if (n != 4)
            return "a poll took fewer completions than there were";
    }
    return NULL;
}

/* Wrong: the receive buffer holds what the program left there, so no message has come, or it was short. */
static const char *buffers(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        fill(AT_SOURCE, 'x', 20);
        fill(AT_TARGET, 0, 4096);
        need(vt_recv(&p, 1, 1, AT_TARGET, 4096) == 0 && vt_send(&p, 0, 2, AT_SOURCE, 20, IBV_SEND_SIGNALED) == 0);
        struct ibv_wc wc = take(p.rcq);
        need(wc.status == IBV_WC_SUCCESS && take(p.scq).status == IBV_WC_SUCCESS);
        uint32_t len = wrong ? (uint32_t)strlen(p.buf + AT_TARGET) : wc.byte_len;
        if (len != 20 || differs(AT_TARGET, 'x', 20) >= 0)
            return "the text does not end where the message ends";
    }
    return NULL;
}

/* A context of its own for the second queue pair: another program. */
static void connect_strangers(struct vt_pair *b, uint8_t rnr_retry)
{
    struct ibv_context *other = vt_open();
    need(other);
    vt_pair_make(b, other, NULL);
    need(vt_to_init(p.qp[0]) == 0 && vt_to_init(b->qp[1]) == 0);
    need(vt_to_rtr(p.qp[0], b->qp[1]->qp_num) == 0 && vt_to_rtr(b->qp[1], p.qp[0]->qp_num) == 0);
    need(vt_to_rts(b->qp[1]) == 0);
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .timeout = 14,
                            .retry_cnt = 7,
                            .rnr_retry = rnr_retry,
                            .sq_psn = 1,
                            .max_rd_atomic = 1};
    need(ibv_modify_qp(p.qp[0], &a,
                       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* Wrong: after its answer is sent, the receiver still has time to post the next receive request. */
static const char *rnr(void)
{
    static struct vt_pair b;
    connect_strangers(&b, 0);
    need(vt_recv(&b, 1, 1, AT_TARGET, 64) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        need(vt_recv(&p, 0, 2, AT_TARGET, 64) == 0 && vt_send(&p, 0, 3, AT_SOURCE, 64, IBV_SEND_SIGNALED) == 0);
        if (take(p.scq).status == IBV_WC_RNR_RETRY_EXC_ERR)
            return "the next message was there before the receive request";
        need(take(b.rcq).wr_id == 1);
        if (!wrong)
            need(vt_recv(&b, 1, 1, AT_TARGET, 64) == 0);
        need(vt_send(&b, 1, 4, AT_SOURCE, 64, IBV_SEND_SIGNALED) == 0 && take(b.scq).status == IBV_WC_SUCCESS);
        if (wrong)
            need(vt_recv(&b, 1, 1, AT_TARGET, 64) == 0);
        need(take(p.rcq).wr_id == 2);
    }
    return NULL;
}

/* Wrong: the peer has answered, so the request is complete. */
static const char *acks(void)
{
    for (int round = 0; round < ROUNDS; round++) {
        struct ibv_wc wc;
        need(vt_recv(&p, 0, 1, AT_TARGET, 64) == 0 && vt_recv(&p, 1, 2, AT_TARGET + 64, 64) == 0);
        need(vt_send(&p, 0, 3, AT_SOURCE, 64, IBV_SEND_SIGNALED) == 0);
        need(take(p.rcq).wr_id == 2);
        need(vt_send(&p, 1, 4, AT_SOURCE, 64, round % 8 == 7 ? IBV_SEND_SIGNALED : 0) == 0);
        need(take(p.rcq).wr_id == 1);
        if (!wrong)
            need(take(p.scq).status == IBV_WC_SUCCESS);
        else if (ibv_poll_cq(p.scq, 1, &wc) != 1)
            return "the answer is there, but the request is not complete";
        if (round % 8 == 7)
            need(take(p.scq).status == IBV_WC_SUCCESS);
    }
    return NULL;
}

static const struct {
    const char *kind;
    const char *(*run)(void); /* what was wrong; NULL: nothing */
} programs[] = {
    {"placement", placement},
    {"visibility", visibility},
    {"completions", completions},
    {"events", events},
    {"polls", polls},
    {"buffers", buffers},
    {"rnr", rnr},
    {"acks", acks},
};

int main(int argc, char **argv)
{
    need(argc == 3);
    wrong = strcmp(argv[2], "wrong") == 0;
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        if (strcmp(programs[i].kind, argv[1]) != 0)
            continue;
        if (programs[i].run != visibility) /* it makes its own in two processes */
            make();
        if (programs[i].run != visibility && programs[i].run != rnr)
            vt_connect(&p);
        const char *what = programs[i].run();
        for (int q = 0; q < 2; q++) /* unkind or not: no order is promised */
            need(ibv_query_qp_data_in_order(p.qp[q], IBV_WR_RDMA_WRITE, 0) == 0);
        printf("%s\n", what ? what : "all is well");
        return what ? 1 : 0;
    }
    return 2;
}
