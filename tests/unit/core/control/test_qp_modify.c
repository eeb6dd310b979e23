// SPDX-License-Identifier: BSD-2-Clause
/* States of a QP and its attributes (IBA 11.2.5.2), and which requests may be posted in which state. */
#include <errno.h>

#include "tests/unit/core/core_fixture.h"

static struct fixture fix;

static void setup(void)
{
    fix_init(&fix);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(qp_state, .init = setup, .fini = teardown);

static const enum qp_state states[] = {QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD, QPS_ERR};
#define STATES (sizeof states / sizeof states[0])
#define MIGRATION (QPA_PATH_MIG_STATE)
#define RUNNING (QPA_CUR_STATE | QPA_ACCESS_FLAGS | QPA_MIN_RNR_TIMER | MIGRATION)

/* The transitions of the specification. `optional` is without the alternate path, which no RoCE device has. */
static const struct arrow {
    enum qp_state from, to;
    uint32_t optional;
} arrows[] = {
    {QPS_RESET, QPS_INIT, 0},
    {QPS_INIT, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS},
    {QPS_INIT, QPS_RTR, QPA_PKEY_INDEX | QPA_ACCESS_FLAGS},
    {QPS_RTR, QPS_RTS, RUNNING},
    {QPS_RTS, QPS_RTS, RUNNING},
    {QPS_RTS, QPS_SQD, QPA_EN_SQD_ASYNC_NOTIFY},
    {QPS_SQD, QPS_RTS, RUNNING},
    {QPS_SQD, QPS_SQD,
     QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS | QPA_AV | QPA_MAX_RD_ATOMIC | QPA_MAX_DEST_RD_ATOMIC |
         QPA_MIN_RNR_TIMER | QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | MIGRATION},
};

static const struct arrow *arrow_of(enum qp_state from, enum qp_state to)
{
    for (size_t i = 0; i < sizeof arrows / sizeof arrows[0]; i++) {
        if (arrows[i].from == from && arrows[i].to == to) {
            return &arrows[i];
        }
    }
    return NULL;
}

/* Modifies the QP, and checks that a refusal changes nothing. */
static int try(struct qp *qp, enum qp_state to, uint32_t mask, struct qp_attr a)
{
    struct qp_attr before, after;
    enum qp_state from = qp_state(qp);
    const char *why = NULL;
    memset(&before, 0, sizeof before);
    memset(&after, 0, sizeof after);
    qp_query(qp, &before);
    a.state = (uint8_t)to;
    a.cur_state = (uint8_t)from;
    int err = qp_modify(qp, &a, mask, &why);
    if (err == 0) {
        cr_assert_eq(qp_state(qp), mask & QPA_STATE ? to : from);
        return 0;
    }
    qp_query(qp, &after);
    cr_assert_eq(err, -EINVAL);
    cr_assert_not_null(why);
    cr_assert_eq(memcmp(&before, &after, sizeof before), 0, "a refused modify from %d to %d changed something", from,
                 to);
    return err;
}

static struct qp *qp_in(enum qp_state state)
{
    struct qp *qp = fix_qp(&fix);
    fix_bring(qp, state);
    return qp;
}

Test(qp_state, only_transitions_of_the_specification_are_allowed)
{
    for (size_t i = 0; i < STATES; i++) {
        for (size_t k = 0; k < STATES; k++) {
            enum qp_state from = states[i], to = states[k];
            struct qp *qp = qp_in(from);
            bool legal = to == QPS_RESET || to == QPS_ERR || arrow_of(from, to);
            int err = try(qp, to, QPA_STATE | fix_required(from, to), fix_attr());
            cr_expect_eq(err == 0, legal, "%d to %d: %d", from, to, err);
            qp_destroy(qp);
            fix.nqpmem--;
            free(fix.qpmem[fix.nqpmem]);
        }
    }
}

Test(qp_state, each_required_attribute_is_required)
{
    for (size_t i = 0; i < sizeof arrows / sizeof arrows[0]; i++) {
        const struct arrow *w = &arrows[i];
        uint32_t required = fix_required(w->from, w->to);
        struct qp *qp = qp_in(w->from);
        for (uint32_t bit = 1; bit <= QPA_RATE_LIMIT; bit <<= 1) {
            if (required & bit) {
                cr_expect_eq(try(qp, w->to, (QPA_STATE | required) & ~bit, fix_attr()), -EINVAL, "%d to %d without %#x",
                             w->from, w->to, bit);
            }
        }
        qp_destroy(qp);
        fix.nqpmem--;
        free(fix.qpmem[fix.nqpmem]);
    }
}

Test(qp_state, each_attribute_is_allowed_where_it_is_optional_and_nowhere_else)
{
    for (size_t i = 0; i < sizeof arrows / sizeof arrows[0]; i++) {
        const struct arrow *w = &arrows[i];
        uint32_t required = fix_required(w->from, w->to);
        for (uint32_t bit = 2; bit <= QPA_RATE_LIMIT; bit <<= 1) {
            if (required & bit) {
                continue;
            }
            struct qp *qp = qp_in(w->from);
            int err = try(qp, w->to, QPA_STATE | required | bit, fix_attr());
            cr_expect_eq(err == 0, (w->optional & bit) != 0, "%d to %d with %#x: %d", w->from, w->to, bit, err);
            qp_destroy(qp);
            fix.nqpmem--;
            free(fix.qpmem[fix.nqpmem]);
        }
    }
}

Test(qp_state, without_a_state_the_state_stays)
{
    struct qp *qp = qp_in(QPS_RTS);
    struct qp_attr a = fix_attr(), now;
    a.min_rnr_timer = 3;
    cr_expect_eq(try(qp, QPS_RTS, QPA_MIN_RNR_TIMER, a), 0);
    qp_query(qp, &now);
    cr_expect_eq(now.min_rnr_timer, 3);
    cr_expect_eq(try(qp, QPS_RTS, QPA_DEST_QPN, a), -EINVAL, "the peer is fixed once connected");
}

Test(qp_state, current_state_must_be_the_current_state)
{
    struct qp *qp = qp_in(QPS_RTS);
    struct qp_attr a = fix_attr();
    a.state = QPS_RTS;
    a.cur_state = QPS_SQD;
    cr_expect_eq(qp_modify(qp, &a, QPA_STATE | QPA_CUR_STATE, NULL), -EINVAL);
    a.cur_state = QPS_RTS;
    cr_expect_eq(qp_modify(qp, &a, QPA_STATE | QPA_CUR_STATE, NULL), 0);
}

/* Values beyond their bounds, each alone in an otherwise valid transition. */
Test(qp_state, values_have_bounds)
{
#define WRONG(from, to, field, value)                                                                                  \
    do {                                                                                                               \
        struct qp *qp = qp_in(from);                                                                                   \
        struct qp_attr a = fix_attr();                                                                                 \
        a.field = value;                                                                                               \
        cr_expect_eq(try(qp, to, QPA_STATE | fix_required(from, to), a), -EINVAL, #field " = " #value);                \
        a = fix_attr();                                                                                                \
        cr_expect_eq(try(qp, to, QPA_STATE | fix_required(from, to), a), 0, "then the sound one");                     \
        qp_destroy(qp);                                                                                                \
        fix.nqpmem--;                                                                                                  \
        free(fix.qpmem[fix.nqpmem]);                                                                                   \
    } while (0)
    WRONG(QPS_RESET, QPS_INIT, port, 0);
    WRONG(QPS_RESET, QPS_INIT, port, 2);
    WRONG(QPS_RESET, QPS_INIT, pkey_index, 1);
    WRONG(QPS_RESET, QPS_INIT, access, 1u << 20);
    WRONG(QPS_INIT, QPS_RTR, path_mtu, 0);
    WRONG(QPS_INIT, QPS_RTR, path_mtu, 5); /* the port has MTU 4 */
    WRONG(QPS_INIT, QPS_RTR, dest_qpn, 0x1000000);
    WRONG(QPS_INIT, QPS_RTR, max_dest_rd_atomic, ENGINE_MAX_RD_ATOMIC + 1);
    WRONG(QPS_INIT, QPS_RTR, min_rnr_timer, 32);
    WRONG(QPS_INIT, QPS_RTR, av.sgid_index, 1); /* there is one GID */
    WRONG(QPS_RTR, QPS_RTS, timeout, 32);
    WRONG(QPS_RTR, QPS_RTS, retry_cnt, 8);
    WRONG(QPS_RTR, QPS_RTS, rnr_retry, 8);
    WRONG(QPS_RTR, QPS_RTS, max_rd_atomic, ENGINE_MAX_RD_ATOMIC + 1);
}

Test(qp_state, query_returns_the_attributes_that_were_set)
{
    struct qp *qp = qp_in(QPS_RTS);
    struct qp_attr want = fix_attr(), got;
    qp_query(qp, &got);
    cr_expect_eq(got.state, QPS_RTS);
    cr_expect_eq(got.port, want.port);
    cr_expect_eq(got.path_mtu, want.path_mtu);
    cr_expect_eq(got.timeout, want.timeout);
    cr_expect_eq(got.retry_cnt, want.retry_cnt);
    cr_expect_eq(got.rnr_retry, want.rnr_retry);
    cr_expect_eq(got.min_rnr_timer, want.min_rnr_timer);
    cr_expect_eq(got.max_rd_atomic, want.max_rd_atomic);
    cr_expect_eq(got.max_dest_rd_atomic, want.max_dest_rd_atomic);
    cr_expect_eq(got.access, want.access);
    cr_expect_eq(got.dest_qpn, want.dest_qpn);
    cr_expect_eq(got.rq_psn, want.rq_psn);
    cr_expect_eq(got.sq_psn, want.sq_psn);
    cr_expect_eq(memcmp(&got.av, &want.av, sizeof got.av), 0);
    cr_expect_not(got.sq_draining);
}

Test(qp_state, psns_have_24_bits)
{
    struct qp *qp = qp_in(QPS_INIT);
    struct qp_attr a = fix_attr(), got;
    a.rq_psn = 0xff000005;
    cr_assert_eq(try(qp, QPS_RTR, QPA_STATE | fix_required(QPS_INIT, QPS_RTR), a), 0);
    qp_query(qp, &got);
    cr_expect_eq(got.rq_psn, 5);
}

/* --- unreliable types -------------------------------------------------------------------------- */

#define UC_RUNNING (QPA_CUR_STATE | QPA_ACCESS_FLAGS | MIGRATION)

/* The specification's columns for UC and UD, in the same form. */
static const struct arrow uc_arrows[] = {
    {QPS_RESET, QPS_INIT, 0},
    {QPS_INIT, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS},
    {QPS_INIT, QPS_RTR, QPA_PKEY_INDEX | QPA_ACCESS_FLAGS},
    {QPS_RTR, QPS_RTS, UC_RUNNING},
    {QPS_RTS, QPS_RTS, UC_RUNNING},
    {QPS_RTS, QPS_SQD, QPA_EN_SQD_ASYNC_NOTIFY},
    {QPS_SQD, QPS_RTS, UC_RUNNING},
    {QPS_SQD, QPS_SQD, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS | QPA_AV | MIGRATION},
    {QPS_SQE, QPS_RTS, QPA_CUR_STATE | QPA_ACCESS_FLAGS},
};
static const struct arrow ud_arrows[] = {
    {QPS_RESET, QPS_INIT, 0},
    {QPS_INIT, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY},
    {QPS_INIT, QPS_RTR, QPA_PKEY_INDEX | QPA_QKEY},
    {QPS_RTR, QPS_RTS, QPA_CUR_STATE | QPA_QKEY},
    {QPS_RTS, QPS_RTS, QPA_CUR_STATE | QPA_QKEY},
    {QPS_RTS, QPS_SQD, QPA_EN_SQD_ASYNC_NOTIFY},
    {QPS_SQD, QPS_RTS, QPA_CUR_STATE | QPA_QKEY},
    {QPS_SQD, QPS_SQD, QPA_PKEY_INDEX | QPA_QKEY},
    {QPS_SQE, QPS_RTS, QPA_CUR_STATE | QPA_QKEY},
};

static void discard(struct qp *qp)
{
    qp_destroy(qp);
    fix.nqpmem--;
    free(fix.qpmem[fix.nqpmem]);
}

/* A request that can't be executed moves the QP to SQE. */
static struct qp *unreliable_in(enum qp_type type, enum qp_state state)
{
    struct qp *qp = fix_qp_of(&fix, type);
    fix_bring(qp, state == QPS_SQE ? QPS_RTS : state);
    if (state == QPS_SQE) {
        static uint8_t buf[65536];
        struct tx_batch b = {.buf = buf, .cap = sizeof buf};
        struct sge sge = {FIX_VA, 8, 0};
        struct send_wr wr = {.opcode = WR_SEND, .num_sge = 1};
        cr_assert_eq(qp_post_send(qp, &wr, &sge, NULL), 0);
        cr_assert_eq(engine_tx(fix.e, &b, fix.now), 0);
        cr_assert_eq(qp_state(qp), QPS_SQE);
    }
    return qp;
}

static void check_column(enum qp_type type, const struct arrow *column, size_t n)
{
    static const enum qp_state from_states[] = {QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE, QPS_ERR};
    for (size_t i = 0; i < 7; i++) {
        for (size_t k = 0; k < 7; k++) {
            enum qp_state from = from_states[i], to = from_states[k];
            const struct arrow *w = NULL;
            for (size_t a = 0; a < n; a++) {
                w = column[a].from == from && column[a].to == to ? &column[a] : w;
            }
            uint32_t required = fix_required_of(type, from, to);
            for (uint32_t bit = 1; bit <= QPA_RATE_LIMIT; bit <<= 1) { /* bit 1 is the state alone */
                struct qp *qp = unreliable_in(type, from);
                bool always = (to == QPS_RESET || to == QPS_ERR) && (bit == QPA_STATE || bit == QPA_CUR_STATE);
                bool legal = w && !(required & bit) && ((w->optional | QPA_STATE) & bit);
                uint32_t mask = required & bit ? (QPA_STATE | required) & ~bit : QPA_STATE | required | bit;
                int err = try(qp, to, mask, fix_attr());
                cr_expect_eq(err == 0, legal || always, "type %d, %d to %d with%s %#x: %d", type, from, to,
                             required & bit ? "out" : "", bit, err);
                discard(qp);
            }
        }
    }
}

Test(qp_state, uc_follows_its_column_of_the_table)
{
    check_column(QPT_UC, uc_arrows, sizeof uc_arrows / sizeof uc_arrows[0]);
}

Test(qp_state, ud_follows_its_column_of_the_table)
{
    check_column(QPT_UD, ud_arrows, sizeof ud_arrows / sizeof ud_arrows[0]);
}

/* --- posting ----------------------------------------------------------------------------------- */

static int post_send(struct qp *qp)
{
    struct send_wr wr = {.opcode = WR_SEND, .flags = SEND_SIGNALED, .wr_id = 9};
    return qp_post_send(qp, &wr, NULL, NULL);
}

static int post_recv(struct qp *qp)
{
    struct recv_wr wr = {.wr_id = 5};
    return qp_post_recv(qp, &wr, NULL);
}

Test(qp_state, where_requests_can_be_posted)
{
    static const struct {
        enum qp_state state;
        int send, recv;
    } rows[] = {
        {QPS_RESET, -EINVAL, -EINVAL},
        {QPS_INIT, -EINVAL, 0},
        {QPS_RTR, -EINVAL, 0},
        {QPS_RTS, 0, 0},
        {QPS_SQD, 0, 0},
        {QPS_ERR, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct qp *qp = qp_in(rows[i].state);
        cr_expect_eq(post_send(qp), rows[i].send, "send in state %d", rows[i].state);
        cr_expect_eq(post_recv(qp), rows[i].recv, "receive in state %d", rows[i].state);
    }
}

static struct completion take(void)
{
    const struct completion *c = engine_peek_completion(fix.e);
    cr_assert_not_null(c);
    struct completion copy = *c;
    engine_drop_completion(fix.e);
    return copy;
}

static uint32_t tx(void)
{
    static uint8_t buf[65536];
    struct tx_batch b = {.buf = buf, .cap = sizeof buf};
    return engine_tx(fix.e, &b, fix.now);
}

Test(qp_state, err_flushes_requests_that_are_posted_later)
{
    struct qp *qp = qp_in(QPS_RTS);
    cr_assert_eq(post_recv(qp), 0);
    fix_bring(qp, QPS_ERR);
    cr_assert_eq(post_send(qp), 0);
    cr_expect_eq(tx(), 0, "nothing is sent");
    struct completion a = take(), b = take();
    cr_expect_neq(a.is_recv, b.is_recv);
    cr_expect_eq(a.status, WC_WR_FLUSH_ERR);
    cr_expect_eq(b.status, WC_WR_FLUSH_ERR);
    cr_assert_eq(post_recv(qp), 0);
    tx();
    cr_expect_eq(take().status, WC_WR_FLUSH_ERR);
    cr_expect_null(engine_peek_completion(fix.e));
}

Test(qp_state, reset_discards_requests_without_completions)
{
    struct qp *qp = qp_in(QPS_RTS);
    cr_assert_eq(post_recv(qp), 0);
    cr_assert_eq(post_send(qp), 0);
    cr_assert_gt(tx(), 0u);
    cr_assert_neq(engine_deadline(fix.e), NEVER);
    cr_assert_eq(fix_modify(qp, QPS_RESET), 0);
    cr_expect_eq(tx(), 0);
    cr_expect_null(engine_peek_completion(fix.e));
    cr_expect_eq(engine_deadline(fix.e), NEVER);
    cr_expect_eq(qp_send_room(qp), 4);
    cr_expect_eq(qp_recv_room(qp), 4);
    struct qp_attr left;
    qp_query(qp, &left);
    cr_expect(left.state == QPS_RESET && left.access == 0 && left.dest_qpn == 0 && left.timeout == 0 &&
                  left.av.dgid[15] == 0,
              "attributes are forgotten");
    fix_bring(qp, QPS_RTS); /* and the QP can be used again */
    cr_expect_eq(post_send(qp), 0);
    cr_expect_eq(tx(), 1);
}

Test(qp_state, destroy_forgets_everything)
{
    struct qp *qp = qp_in(QPS_RTS);
    uint32_t qpn = qp_number(qp);
    struct event ev;
    cr_assert_eq(post_recv(qp), 0);
    fix_bring(qp, QPS_ERR);
    tx();
    cr_assert_not_null(engine_peek_completion(fix.e));
    qp_destroy(qp);
    cr_expect_null(engine_peek_completion(fix.e), "completions not taken go with the QP");
    cr_expect_not(engine_pop_event(fix.e, &ev));
    cr_expect_null(qp_find(fix.e, qpn));
}

Test(qp_state, queues_have_bounds)
{
    struct qp *qp = qp_in(QPS_SQD); /* in SQD nothing is sent, so the queue fills up */
    for (uint32_t i = 0; i < 4; i++) {
        cr_expect_eq(qp_send_room(qp), 4 - i);
        cr_expect_eq(qp_recv_room(qp), 4 - i);
        cr_expect_eq(post_send(qp), 0);
        cr_expect_eq(post_recv(qp), 0);
    }
    cr_expect_eq(qp_send_room(qp), 0);
    cr_expect_eq(post_send(qp), -ENOMEM);
    cr_expect_eq(post_recv(qp), -ENOMEM);
}

Test(qp_state, requests_beyond_the_caps_are_refused)
{
    struct qp *qp = qp_in(QPS_SQD);
    struct sge sge[3] = {{FIX_VA, 8, 0}, {FIX_VA, 8, 0}, {FIX_VA, 8, 0}};
    uint8_t data[40] = {0};
    struct send_wr many = {.opcode = WR_SEND, .num_sge = 3};
    struct send_wr big = {.opcode = WR_SEND, .flags = SEND_INLINE, .inline_len = 33};
    struct send_wr fits = {.opcode = WR_SEND, .flags = SEND_INLINE, .inline_len = 32};
    struct send_wr inline_read = {.opcode = WR_RDMA_READ, .flags = SEND_INLINE, .inline_len = 8};
    struct sge small = {FIX_VA, 7, 0};
    struct send_wr small_atomic = {.opcode = WR_ATOMIC_FETCH_AND_ADD, .num_sge = 1};
    struct recv_wr recv = {.num_sge = 3};
    cr_expect_eq(qp_post_send(qp, &many, sge, NULL), -EINVAL);
    cr_expect_eq(qp_post_send(qp, &big, NULL, data), -EINVAL);
    cr_expect_eq(qp_post_send(qp, &inline_read, NULL, data), -EINVAL);
    cr_expect_eq(qp_post_send(qp, &small_atomic, &small, NULL), -EINVAL, "an atomic has 8 bytes");
    cr_expect_eq(qp_post_recv(qp, &recv, sge), -EINVAL);
    cr_expect_eq(qp_post_send(qp, &fits, NULL, data), 0);
    for (int op = WR_SEND_WITH_INV + 1; op < 256; op++) {
        if (op == WR_FLUSH || op == WR_ATOMIC_WRITE)
            continue;
        struct send_wr unknown = {.opcode = (uint8_t)op};
        cr_assert_eq(qp_post_send(qp, &unknown, NULL, NULL), -EINVAL, "opcode %d", op);
    }
    cr_expect_eq(qp_send_room(qp), 3);
}

Test(qp_state, messages_end_at_2_gib)
{
    struct qp *qp = qp_in(QPS_SQD);
    struct sge sge[2] = {{FIX_VA, 1u << 31, 0}, {FIX_VA, 1, 0}};
    struct send_wr wr = {.opcode = WR_RDMA_WRITE, .num_sge = 2};
    cr_expect_eq(qp_post_send(qp, &wr, sge, NULL), -EINVAL);
    wr.num_sge = 1;
    cr_expect_eq(qp_post_send(qp, &wr, sge, NULL), 0);
}

/* --- numbers ----------------------------------------------------------------------------------- */

Test(qp_state, qp_numbers_are_found_and_limited)
{
    struct qp *qp[8];
    struct qp_init init = {.type = QPT_RC, .pd = FIX_PD, .caps = {1, 1, 1, 1, 0}, .send_cq = &fix, .recv_cq = &fix};
    for (int i = 0; i < 8; i++) {
        qp[i] = fix_qp(&fix);
        cr_expect_geq(qp_number(qp[i]), 17u);
        for (int k = 0; k <= i; k++) {
            cr_expect_eq(qp_find(fix.e, qp_number(qp[k])), qp[k]);
            cr_expect(k == i || qp_number(qp[k]) != qp_number(qp[i]));
        }
    }
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(&init));
    struct qp *more = NULL;
    cr_expect_eq(qp_create(fix.e, &init, mem, &more), -ENOMEM);
    uint32_t old = qp_number(qp[3]);
    qp_destroy(qp[3]);
    cr_assert_eq(qp_create(fix.e, &init, mem, &more), 0);
    cr_expect_neq(qp_number(more), old, "a number is not used again at once");
}

Test(qp_state, numbers_wrap_before_the_multicast_qp)
{
    struct fixture high;
    fix_init(&high);
    high.cfg.first_qpn = 0xfffffe;
    memset(high.mem, 0, engine_size(&high.cfg));
    static const struct mem_ops ops = {.read = fix_read, .write = fix_write, .atomic = fix_atomic};
    high.e = engine_init(high.mem, &high.cfg, &ops, &high, &fix_no_refill, &high);
    cr_assert_not_null(high.e);
    cr_expect_eq(qp_number(fix_qp(&high)), 0xfffffe);
    for (uint32_t i = 0, last = 16; i < 7; i++) { /* numbers whose slot in the table is used are skipped */
        uint32_t n = qp_number(fix_qp(&high));
        cr_expect(n > last && n < 17 + 8, "%u", n);
        last = n;
    }
    fix_fini(&high);
}

/* Creates n QPs of an engine with this secret, and returns the number of the last one. */
static uint32_t last_number(const struct permute_secret *secret, int n)
{
    static const struct mem_ops ops = {.read = fix_read, .write = fix_write, .atomic = fix_atomic};
    struct fixture f;
    uint32_t qpn = 0;
    fix_init(&f);
    f.cfg.number_secret = *secret;
    memset(f.mem, 0, engine_size(&f.cfg));
    f.e = engine_init(f.mem, &f.cfg, &ops, &f, &fix_no_refill, &f);
    for (int i = 0; i < n; i++) {
        struct qp *qp = fix_qp(&f);
        cr_expect_eq(qp_find(f.e, qp_number(qp)), qp);
        cr_expect(qp_number(qp) > 16 && qp_number(qp) < 0xffffff);
        qpn = qp_number(qp);
    }
    fix_fini(&f);
    return qpn;
}

Test(qp_state, a_secret_hides_the_next_number)
{
    const struct permute_secret none = {{0, 0}}, a = {{1, 2}}, b = {{1, 3}};
    cr_expect_eq(last_number(&none, 3), last_number(&none, 2) + 1, "without a secret they count up");
    uint32_t two = last_number(&a, 2), three = last_number(&a, 3);
    cr_expect_eq(three, last_number(&a, 3), "the same secret gives the same numbers");
    cr_expect_neq(three, last_number(&b, 3));
    uint32_t step = three - two;
    cr_expect(step > 64 && step < UINT32_MAX - 64, "%u after %u", three, two);
}

Test(qp_state, a_qp_needs_a_domain_and_queues)
{
    struct qp_init good = {.type = QPT_RC, .pd = FIX_PD, .caps = {1, 1, 1, 1, 0}, .send_cq = &fix, .recv_cq = &fix};
    struct qp_init bad[] = {good, good, good, good, good};
    struct qp *qp = NULL;
    void *mem = fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(&good));
    bad[0].type = 5;
    bad[1].pd = 0;
    bad[2].send_cq = NULL;
    bad[3].recv_cq = NULL;
    bad[4].caps.max_send_sge = ENGINE_MAX_SGE + 1;
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(qp_create(fix.e, &bad[i], mem, &qp), -EINVAL, "%d", i);
    }
}

Test(qp_state, an_engine_refuses_a_wrong_configuration)
{
    static const struct mem_ops ops = {.read = fix_read, .write = fix_write, .atomic = fix_atomic};
    struct engine_config good = fix.cfg, bad[] = {good, good, good, good, good, good};
    bad[0].max_qp = 0;
    bad[1].completion_slots = 96;
    bad[2].num_gids = 0;
    bad[3].first_qpn = 1;
    bad[4].active_mtu = 6;
    bad[5].window_pkts = 0;
    for (int i = 0; i < 6; i++) {
        cr_expect_null(engine_init(fix.mem, &bad[i], &ops, &fix, &fix_no_refill, &fix), "%d", i);
    }
}

static size_t size_of(const struct qp_caps *caps)
{
    return qp_size(&(struct qp_init){.type = QPT_RC, .caps = *caps});
}

Test(qp_state, caps_have_limits)
{
    struct qp_caps good = {32768, 32768, ENGINE_MAX_SGE, ENGINE_MAX_SGE, ENGINE_MAX_INLINE};
    cr_expect_gt(size_of(&good), 0u);
    struct qp_caps bad[] = {good, good, good, good, good};
    bad[0].max_send_wr++;
    bad[1].max_recv_wr++;
    bad[2].max_send_sge++;
    bad[3].max_recv_sge++;
    bad[4].max_inline++;
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(size_of(&bad[i]), 0u, "cap %d", i);
    }
}
