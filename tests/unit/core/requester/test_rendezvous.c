// SPDX-License-Identifier: BSD-2-Clause
/* Rendezvous: the READs and FINs that the engine sends, their completions, and their failures. */
#include <errno.h>

#include "tests/unit/core/tm_engine.h"

#define SLOTS 64 /* the most requests that the offload has in a send queue */

TestSuite(tm_rndv, .init = tm_setup, .fini = tm_teardown); /* max_send_wr of the QPs is 0, max_rd_atomic 3 */

static struct tm_params small = {.max_num_tags = 256, .max_ops = 64, .trace_slots = 64};

/* Expects that p is the FIN for the request of rndv_message. */
static void expect_fin(const struct pkt *p, uint64_t tag, uint32_t len, int line)
{
    struct tmh tmh;
    struct rvh rvh;
    cr_assert(p && p->payload_len == 32, "line %d: a FIN", line);
    cr_assert(tmh_decode(p->payload, 32, &tmh) && rvh_decode(p->payload + TMH_LEN, 16, &rvh));
    cr_expect(tmh.opcode == TMH_FIN && tmh.app_ctx == 0xabcd0123 && tmh.tag == tag, "line %d", line);
    cr_expect(tmh.reserved[0] == 7 && tmh.reserved[1] == 8 && tmh.reserved[2] == 9, "line %d: copied", line);
    cr_expect(rvh.va == 0x7777000 && rvh.rkey == 0x55aa && rvh.len == len, "line %d", line);
    cr_expect(p->ackreq, "line %d", line);
}
#define EXPECT_FIN(p, tag, len) expect_fin(p, tag, len, __LINE__)

Test(tm_rndv, match_read_fin)
{
    add(3, 9, 500);
    cr_expect_eq(rndv(0, 9, 300), ACKED);
    struct completion c = EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, 3, 0);
    cr_expect_eq(c.tm_tag, 9);
    EXPECT_NOTHING();
    const struct pkt *read = sent(OP_READ_REQUEST, 0);
    cr_assert_not_null(read);
    cr_expect(read->reth.va == 0x7777000 && read->reth.rkey == 0x55aa && read->reth.length == 300);
    cr_expect_null(sent(OP_SEND_ONLY, 0), "no FIN yet");
    cr_expect_eq(tm_state().consumed, 1);
    answer_read(0, read);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_DATA_VALID, 3, 300);
    cr_expect(tagged_data(3, 300));
    cr_expect_eq(tm_state().consumed, 0, "the slot is free, whether or not the FIN arrives");
    const struct pkt *fin = sent(OP_SEND_ONLY, 0);
    EXPECT_FIN(fin, 9, 300);
    answer(0, fin->psn, ACKED);
    EXPECT_NOTHING();
    cr_expect(tm_state().counters.rndv_fin == 1 && tm_state().hw_cnt == 0);
    cr_expect_eq(tm_state().counters.rx_exp_rndv, 1);
}

Test(tm_rndv, no_data)
{
    add(0, 9, 500);
    cr_expect_eq(rndv(0, 9, 0), ACKED);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, BOTH, 0, 0);
    EXPECT_NOTHING();
    cr_expect_null(sent(OP_READ_REQUEST, 0));
    EXPECT_FIN(sent(OP_SEND_ONLY, 0), 9, 0);
}

Test(tm_rndv, buffers_too_short)
{
    static const struct {
        uint32_t room, byte_len;
    } cases[] = {{0, 0}, {31, 31}, {32, 32}, {99, 32}};
    for (uint32_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        add(i, 9, cases[i].room);
        cr_expect_eq(rndv(0, 9, 100), ACKED);
        struct completion c = EXPECT(0, OF_TM_ENTRY, WC_TM_RNDV_INCOMPLETE, WC_TM_RECV, BOTH, i, cases[i].byte_len);
        cr_expect_eq(c.tm_tag, 9);
        cr_expect_eq(num_out, 1, "an ACK, nothing else");
        const uint8_t *at = fix.bytes + (TAG_VA - FIX_VA) + 512 * i;
        cr_expect_eq(memcmp(at, rndv_message(9, 100), cases[i].byte_len), 0, "case %u", i);
        cr_expect_eq(at[cases[i].byte_len], 0, "case %u: not beyond", i);
        cr_expect_eq(qp_state(qp[0]), QPS_RTS);
    }
    add(5, 9, 100);
    cr_expect_eq(rndv(0, 9, 100), ACKED);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, 5, 0);
    cr_expect_not_null(sent(OP_READ_REQUEST, 0));
}

/* If a QP may not READ, the program has to do the rendezvous. */
Test(tm_rndv, no_reads_allowed)
{
    struct qp *q = qp[0] = tm_qp(0, srq);
    struct qp_attr a = fix_attr();
    fix_bring(q, QPS_RTR);
    add(0, 9, 500);
    cr_expect_eq(rndv(0, 9, 100), ACKED);
    EXPECT(0, OF_TM_ENTRY, WC_TM_RNDV_INCOMPLETE, WC_TM_RECV, BOTH, 0, 32);
    a.max_rd_atomic = 0;
    a.state = QPS_RTS;
    cr_assert_eq(qp_modify(q, &a, QPA_STATE | fix_required(QPS_RTR, QPS_RTS), NULL), 0);
    add(1, 9, 500);
    cr_expect_eq(rndv(0, 9, 100), ACKED);
    EXPECT(0, OF_TM_ENTRY, WC_TM_RNDV_INCOMPLETE, WC_TM_RECV, BOTH, 1, 32);
}

/* --- many at once ------------------------------------------------------------------------------ */

/* READs are sent as max_rd_atomic (3) allows, without waiting for FINs. FINs are sent in the order of READs. */
Test(tm_rndv, reads_are_pipelined)
{
    for (uint32_t i = 0; i < 5; i++)
        add(i, 10 + i, 500);
    struct pkt reads[5];
    unsigned n = 0;
    for (uint32_t i = 0; i < 5; i++) {
        cr_expect_eq(rndv(0, 10 + i, 100 + i), ACKED);
        EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, i, 0);
        if (sent(OP_READ_REQUEST, 0))
            reads[n++] = *sent(OP_READ_REQUEST, 0);
    }
    cr_assert_eq(n, 3);
    for (uint32_t i = 0; i < 5; i++) {
        answer_read(0, &reads[i]);
        EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_DATA_VALID, i, 100 + i);
        while (n < 5 && sent(OP_READ_REQUEST, 0)) {
            reads[n++] = *sent(OP_READ_REQUEST, 0);
            break;
        }
    }
    EXPECT_NOTHING();
}

/* More rendezvous than the offload has slots. They wait in their entries, and none is forgotten. */
Test(tm_rndv, more_than_slots)
{
    enum { MANY = 3 * SLOTS };
    unsigned reads = 0, fins = 0, matches = 0, valid = 0;
    static struct pkt todo[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        add(i, 9, 8);
        uint32_t len = i % 8 == 7 ? 0 : 8;
        cr_expect_eq(rndv(0, 9, len), ACKED);
        for (unsigned k = 0; k < num_out; k++)
            if (out[k].opcode == OP_READ_REQUEST)
                todo[reads++] = out[k];
            else
                fins += out[k].opcode == OP_SEND_ONLY;
        while (engine_peek_completion(fix.e)) {
            struct completion c = fix_take(&fix);
            cr_assert(c.of == OF_TM_ENTRY && c.status == WC_SUCCESS);
            matches += (c.flags & WC_TM_MATCH) != 0;
            valid += (c.flags & WC_TM_DATA_VALID) != 0;
        }
    }
    cr_expect_eq(matches, MANY, "each match is told at once");
    cr_expect_lt(valid, MANY / 8, "those without data wait behind others");
    for (unsigned done = 0; done < reads; done++) {
        answer_read(0, &todo[done]); /* also acknowledges the FINs that were sent before that READ */
        uint32_t last = 0;
        do {
            last = 0;
            for (unsigned k = 0; k < num_out; k++) {
                if (out[k].opcode == OP_READ_REQUEST)
                    todo[reads++] = out[k];
                if (out[k].opcode == OP_SEND_ONLY) {
                    fins++;
                    last = out[k].psn;
                }
            }
            if (last && reads == done + 1)
                answer(0, last, ACKED);
        } while (last && reads == done + 1);
        cr_assert_leq(reads, MANY);
        while (engine_peek_completion(fix.e)) {
            struct completion c = fix_take(&fix);
            cr_assert(c.of == OF_TM_ENTRY && c.status == WC_SUCCESS && c.flags == WC_TM_DATA_VALID,
                      "READ %u: of %u, status %u, flags %x", done, c.of, c.status, c.flags);
            valid++;
        }
    }
    cr_expect_eq(reads, MANY - MANY / 8);
    cr_expect_eq(fins, MANY);
    cr_expect_eq(valid, MANY);
    cr_expect_eq(tm_state().consumed, 0);
}

/* A rendezvous that waits only for room for its completion starts as soon as there is some. */
Test(tm_rndv, waiting_for_room)
{
    struct tm_op op = {.opcode = TM_SYNC, .flags = TM_OP_SIGNALED};
    struct pkt first = {.opcode = 0};
    for (uint32_t i = 0; i < SLOTS / 2; i++) {
        add(i, 9, 8);
        cr_expect_eq(rndv(0, 9, 8), ACKED);
        if (i == 0)
            first = *sent(OP_READ_REQUEST, 0);
    }
    add(100, 9, 8);
    cr_expect_eq(rndv(0, 9, 0), ACKED);
    while (engine_peek_completion(fix.e))
        cr_expect_eq(fix_take(&fix).flags, WC_TM_MATCH);
    for (uint32_t i = 1; i < fix.cfg.completion_slots; i++)
        cr_assert_eq(srq_post_op(srq, &op, 0), 0);
    answer_read(0, &first); /* takes the last slot of the completion queue */
    for (uint32_t i = 0; i < fix.cfg.completion_slots; i++)
        fix_take(&fix);
    EXPECT_NOTHING();
    turn();
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_DATA_VALID, 100, 0);
}

/* --- with the program's own sends -------------------------------------------------------------- */

static void own_setup(void)
{
    tm_setup_with(&small, 4);
}
TestSuite(tm_rndv_own, .init = own_setup, .fini = tm_teardown);

static int post_send(uint32_t slot)
{
    struct send_wr wr = {.wr_id = slot, .slot = slot, .opcode = WR_SEND};
    return qp_post_send(qp[0], &wr, NULL, NULL);
}

Test(tm_rndv_own, sends_and_rendezvous_share_the_queue)
{
    for (uint32_t i = 0; i < 8; i++)
        add(i, 9, 100);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(post_send(i), 0);
    cr_expect_eq(post_send(9), -ENOMEM);
    cr_expect_eq(qp_send_room(qp[0]), 0);
    cr_expect_eq(rndv(0, 9, 50), ACKED);
    /* The four sends were posted before the message came, so its READ is sent after them. */
    cr_assert_not_null(sent(OP_READ_REQUEST, 0));
    uint32_t read_psn = sent(OP_READ_REQUEST, 0)->psn;
    struct pkt read = *sent(OP_READ_REQUEST, 0);
    cr_expect_eq(sent(OP_SEND_ONLY, 3)->psn, read_psn - 1);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, 0, 0);
    answer(0, read_psn - 1, ACKED);
    for (uint32_t i = 0; i < 4; i++) {
        struct completion c = fix_take(&fix);
        cr_expect(c.of == OF_REQUEST && c.cq == &qp_cq && c.slot == i && c.opcode == WC_SEND && !c.is_recv);
    }
    cr_expect_eq(qp_send_room(qp[0]), 4, "the offload's requests don't take the program's room");
    cr_assert_eq(post_send(5), 0);
    turn();
    cr_expect_eq(sent(OP_SEND_ONLY, 0)->psn, read_psn + 1, "nor does the READ hold up what follows");
    answer_read(0, &read);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_DATA_VALID, 0, 50);
    cr_assert_not_null(sent(OP_SEND_ONLY, 0));
    EXPECT_FIN(sent(OP_SEND_ONLY, 0), 9, 50);
    answer(0, sent(OP_SEND_ONLY, 0)->psn, ACKED);
    struct completion c = fix_take(&fix);
    cr_expect(c.of == OF_REQUEST && c.slot == 5, "sq_sig_all is about the program's requests");
    EXPECT_NOTHING();
}

/* A message may invalidate a memory window. */
Test(tm_rndv_own, invalidation)
{
    uint32_t region, window;
    struct mr_init mr = {.pd = FIX_PD,
                         .space = 1,
                         .va = FIX_VA,
                         .iova = FIX_VA,
                         .length = FIX_MEM,
                         .access = ACCESS_LOCAL_WRITE | ACCESS_MW_BIND};
    cr_assert_eq(mr_register(fix.e, &mr, &region), 0);
    cr_assert_eq(mw_alloc(fix.e, FIX_PD, MW_TYPE_2, &window), 0);
    post_buffers(1);
    for (uint32_t i = 0; i < 3; i++) {
        window = (window & ~0xffu) | (i + 1);
        struct send_wr wr = {.opcode = WR_BIND_MW};
        wr.bind = (struct mw_bind){
            .mw_key = window, .mr_key = region, .access = ACCESS_REMOTE_READ, .addr = FIX_VA, .length = 64};
        cr_assert_eq(qp_post_send(qp[0], &wr, NULL, NULL), 0);
        turn();
        cr_assert_eq(fix_take(&fix).status, WC_SUCCESS);
        if (i < 2)
            add(i, 9, 100);
        const uint8_t *m = i == 1 ? rndv_message(9, 50) : message(TMH_EAGER, 9);
        struct pkt p = {.opcode = OP_SEND_ONLY_INV,
                        .psn = psn[0]++,
                        .dest_qpn = qp_number(qp[0]),
                        .inv_rkey = window,
                        .payload = m,
                        .payload_len = 32,
                        .ackreq = true};
        fix_rx(&fix, &p);
        turn();
        struct completion c = fix_take(&fix);
        static const uint8_t flags[] = {BOTH, WC_TM_MATCH, 0};
        cr_expect(c.status == WC_SUCCESS && c.opcode == WC_TM_RECV, "message %u: %u, %u", i, c.status, c.opcode);
        cr_expect_eq(c.flags, flags[i] | WC_WITH_INV, "message %u: flags %x", i, c.flags);
        cr_expect_eq(c.inv_rkey, window);
        EXPECT_NOTHING();
        if (i == 1) { /* a later bind waits for earlier sends */
            answer_read(0, sent(OP_READ_REQUEST, 0));
            cr_expect_eq(fix_take(&fix).flags, WC_TM_DATA_VALID);
            answer(0, sent(OP_SEND_ONLY, 0)->psn, ACKED);
        }
    }
    /* A window that is not bound can't be invalidated: the entry is lost with the QP. */
    add(5, 9, 100);
    struct pkt p = {.opcode = OP_SEND_ONLY_INV,
                    .psn = psn[0]++,
                    .dest_qpn = qp_number(qp[0]),
                    .inv_rkey = window,
                    .payload = message(TMH_EAGER, 9),
                    .payload_len = 32,
                    .ackreq = true};
    fix_rx(&fix, &p);
    turn();
    while (engine_peek_completion(fix.e)) {
        struct completion c = fix_take(&fix);
        cr_expect(c.status == WC_WR_FLUSH_ERR, "status %u", c.status);
    }
    cr_expect_eq(qp_state(qp[0]), QPS_ERR);
    cr_expect_eq(tm_state().consumed, 0);
}

/* --- errors ------------------------------------------------------------------------------------ */

static void expect_flushed(uint32_t slot, uint8_t status, int line)
{
    struct completion c = expect_wc(-1, (struct expected){OF_TM_ENTRY, status, WC_TM_RECV, 0, slot, 0}, line);
    cr_expect(c.is_recv);
    EXPECT_NOTHING();
    cr_expect(tm_state().consumed == 0, "line %d", line);
}

static const struct pkt *matched_rndv(int i)
{
    add(0, 9, 300);
    cr_assert_eq(rndv(i, 9, 300), ACKED);
    EXPECT(i, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, 0, 0);
    cr_assert_not_null(sent(OP_READ_REQUEST, 0));
    return sent(OP_READ_REQUEST, 0);
}

Test(tm_rndv, the_read_is_refused)
{
    uint32_t at = matched_rndv(0)->psn;
    answer(0, at, NAK_REMOTE_ACCESS);
    expect_flushed(0, WC_REM_ACCESS_ERR, __LINE__);
    cr_expect_eq(qp_state(qp[0]), QPS_ERR);
    cr_expect_null(sent(OP_SEND_ONLY, 0), "no FIN");
}

Test(tm_rndv, the_peer_is_silent)
{
    matched_rndv(0);
    for (int i = 0; i < 200 && qp_state(qp[0]) == QPS_RTS && engine_deadline(fix.e) != NEVER; i++) {
        fix.now = engine_deadline(fix.e);
        engine_expire(fix.e, fix.now);
        turn();
    }
    expect_flushed(0, WC_RETRY_EXC_ERR, __LINE__);
}

Test(tm_rndv, the_tagged_buffers_key_is_bad)
{
    add_with(0, 9, 300, key + 256);
    cr_assert_eq(rndv(0, 9, 300), ACKED);
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, 0, 0);
    cr_expect_null(sent(OP_READ_REQUEST, 0));
    turn();
    expect_flushed(0, WC_LOC_PROT_ERR, __LINE__);
}

Test(tm_rndv, the_qp_is_destroyed_during_a_rendezvous)
{
    for (int way = 0; way < 3; way++) {
        matched_rndv(way);
        if (way == 0)
            cr_assert_eq(fix_modify(qp[way], QPS_ERR), 0);
        else if (way == 1)
            cr_assert_eq(fix_modify(qp[way], QPS_RESET), 0);
        else
            qp_destroy(qp[way]);
        turn();
        expect_flushed(0, WC_WR_FLUSH_ERR, __LINE__);
    }
    /* After a reset, the QP works as before. */
    fix_bring(qp[1], QPS_RTS);
    psn[1] = 100;
    answer_read(1, matched_rndv(1));
    EXPECT(1, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_DATA_VALID, 0, 300);
    EXPECT_FIN(sent(OP_SEND_ONLY, 0), 9, 300);
}

Test(tm_rndv, waiting_rendezvous_are_flushed)
{
    enum { MANY = 2 * SLOTS };
    for (int way = 0; way < 3; way++) {
        for (uint32_t i = 0; i < MANY; i++) {
            add(i, 9, 8);
            cr_expect_eq(rndv(way, 9, 8), ACKED);
            EXPECT(way, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, i, 0);
        }
        if (way == 0)
            cr_assert_eq(fix_modify(qp[way], QPS_ERR), 0);
        else if (way == 1)
            cr_assert_eq(fix_modify(qp[way], QPS_RESET), 0);
        else
            qp_destroy(qp[way]);
        bool seen[MANY] = {false};
        for (int batch = 0; batch < 5; batch++) { /* the completion queue holds 64 */
            turn();
            while (engine_peek_completion(fix.e)) {
                struct completion c = fix_take(&fix);
                cr_expect(c.of == OF_TM_ENTRY && c.status == WC_WR_FLUSH_ERR && !seen[c.slot], "way %d", way);
                seen[c.slot] = true;
            }
        }
        for (uint32_t i = 0; i < MANY; i++)
            cr_expect(seen[i], "way %d: entry %u", way, i);
        cr_expect_eq(tm_state().consumed, 0);
    }
}

/* The sender has no receive request for the FIN. After several RNR NAKs the QP fails with an event, because no
 * completion can report it. */
Test(tm_rndv, the_fin_finds_no_receive_request)
{
    answer_read(0, matched_rndv(0));
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_DATA_VALID, 0, 300);
    cr_assert_not_null(sent(OP_SEND_ONLY, 0));
    uint32_t fin = sent(OP_SEND_ONLY, 0)->psn;
    unsigned fins = 1;
    for (int i = 0; i < 20 && qp_state(qp[0]) == QPS_RTS; i++) {
        answer(0, fin, AETH_RNR | 1);
        fix.now = engine_deadline(fix.e);
        engine_expire(fix.e, fix.now);
        turn();
        fins += sent(OP_SEND_ONLY, 0) != NULL;
    }
    cr_expect_eq(fins, 7, "rnr_retry is 6: %u", fins);
    cr_expect_eq(qp_state(qp[0]), QPS_ERR);
    EXPECT_NOTHING();
    cr_expect_eq(next_event().type, EVENT_QP_FATAL);
}

/* --- the strict profile ------------------------------------------------------------------------ */

static void strict_setup(void)
{
    struct tm_params p = {.max_num_tags = 8, .max_ops = 8, .profile = TM_PROFILE_MLX5};
    tm_setup_with(&p, 4);
}
Test(tm_strict, mlx5, .init = strict_setup, .fini = tm_teardown)
{
    cr_expect_eq(post_send(0), -EINVAL, "the send queue is the device's");
    struct sge sge = {TAG_VA, 500, key};
    struct tm_op op = {.opcode = TM_ADD, .tag = 9, .mask = EXACT, .recv_wr_id = 7000, .num_sge = 1, .sge = &sge};
    srq_post_op(srq, &op, 0);
    post_buffers(32);
    cr_expect_eq(rndv(0, 9, 300), AETH_RNR | 12, "fewer than 33 buffers");
    fix.refill_srq = srq;
    fix.refill_left = 1;
    cr_expect_eq(rndv(0, 9, 300), ACKED, "the owner had one more");
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_MATCH, 0, 0);
    answer_read(0, sent(OP_READ_REQUEST, 0));
    EXPECT(0, OF_TM_ENTRY, WC_SUCCESS, WC_TM_RECV, WC_TM_DATA_VALID, 0, 300);
    EXPECT_FIN(sent(OP_SEND_ONLY, 0), 9, 300);
}
