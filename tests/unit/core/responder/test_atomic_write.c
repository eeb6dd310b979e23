// SPDX-License-Identifier: BSD-2-Clause
/* ATOMIC WRITE and FLUSH (IBA A19), requester and responder. */
#include <errno.h>

#include "tests/unit/core/one_qp.h"

/* keys of the same memory: with all rights, without FLUSH_GLOBAL, and with READ only */
static uint32_t key, plain, readable;
static const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};

#define IOVA 0x5000u
#define ALL (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC)

static uint32_t reg(uint32_t access)
{
    struct mr_init init = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = IOVA, .length = 1024, .access = access};
    uint32_t k = 0;
    cr_assert_eq(mr_register(fix.e, &init, &k), 0);
    return k;
}

/* Creates a QP that grants `access` to its peer. It expects PSN 100, sends from PSN 200, and may have 3 READs
 * outstanding, and 2 of its peer. */
static void make_qp(uint32_t access)
{
    struct qp_attr a = fix_attr();
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS);
    a.access = access;
    cr_assert_eq(qp_modify(qp, &a, QPA_ACCESS_FLAGS, NULL), 0);
}

static void setup(void)
{
    fix_init(&fix);
    key = reg(ACCESS_LOCAL_WRITE | ALL | ACCESS_FLUSH_GLOBAL);
    plain = reg(ACCESS_LOCAL_WRITE | ALL);
    readable = reg(ACCESS_REMOTE_READ);
    make_qp(ALL | ACCESS_FLUSH_GLOBAL);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(atomic_write, .init = setup, .fini = teardown);

static struct pkt atomic_write(uint32_t psn, uint64_t va)
{
    return (struct pkt){.opcode = OP_ATOMIC_WRITE,
                        .psn = psn,
                        .ackreq = true,
                        .reth = {.va = va, .rkey = key, .length = 8},
                        .payload = bytes,
                        .payload_len = 8};
}

static struct pkt flush(uint32_t psn, uint8_t placement, uint8_t selectivity)
{
    return (struct pkt){.opcode = OP_FLUSH,
                        .psn = psn,
                        .ackreq = true,
                        .feth = {.placement = placement, .selectivity = selectivity},
                        .reth = {.va = IOVA, .rkey = key, .length = 1024}};
}

static void expect_response(uint32_t psn, uint32_t msn)
{
    cr_assert_eq(transmit(), 1u);
    struct pkt p = sent(0);
    cr_expect_eq(p.opcode, OP_READ_RESP_ONLY);
    cr_expect_eq(p.psn, psn);
    cr_expect_eq(p.payload_len, 0u);
    cr_expect_eq(p.aeth.syndrome, AETH_ACK | AETH_NO_CREDITS);
    cr_expect_eq(p.aeth.msn, msn, "MSN %u", p.aeth.msn);
}

/* Expects that the packet is refused. A new QP replaces the one that failed. */
static void expect_refusal(struct pkt p, uint8_t syndrome, const char *what)
{
    struct event ev;
    unsigned writes = fix.writes;
    arrive(p);
    cr_assert_eq(transmit(), 1u, "%s", what);
    cr_expect_eq(sent(0).aeth.syndrome, syndrome, "%s: %#x", what, sent(0).aeth.syndrome);
    cr_expect_eq(qp_state(qp), QPS_ERR, "%s", what);
    cr_expect_eq(fix.writes, writes, "%s", what);
    cr_assert(engine_pop_event(fix.e, &ev));
    cr_expect_eq(ev.type, syndrome == NAK_REMOTE_ACCESS ? EVENT_QP_ACCESS_ERR : EVENT_QP_REQ_ERR, "%s", what);
    uint32_t access = ALL | ACCESS_FLUSH_GLOBAL;
    qp_destroy(qp);
    free(fix.qpmem[--fix.nqpmem]);
    make_qp(access);
}

/* --- ATOMIC WRITE, the responder --------------------------------------------------------------- */

Test(atomic_write, atomic_write_keeps_the_byte_order)
{
    arrive(atomic_write(100, IOVA + 16));
    expect_response(100, 1);
    cr_expect_eq(memcmp(fix.bytes + 16, bytes, 8), 0);
    cr_expect_eq(fix.bytes[15], 0);
    cr_expect_eq(fix.bytes[24], 0);
    cr_expect_eq(transmit(), 0u, "the response is the acknowledgement");
}

Test(atomic_write, duplicates_are_answered_and_not_written)
{
    arrive(atomic_write(100, IOVA));
    expect_response(100, 1);
    memset(fix.bytes, 0x77, 8);
    arrive((struct pkt){.opcode = OP_WRITE_ONLY, .psn = 101, .ackreq = true});
    cr_expect_eq(transmit(), 1u);
    for (int i = 0; i < 3; i++) {
        arrive(atomic_write(100, IOVA));
        expect_response(100, 1);
    }
    cr_expect_eq(fix.writes, 1u);
    cr_expect_eq(fix.bytes[0], 0x77);
}

Test(atomic_write, another_operation_with_the_same_psn_is_no_duplicate)
{
    arrive(atomic_write(100, IOVA));
    expect_response(100, 1);
    arrive(flush(100, FLUSH_GLOBAL, FLUSH_RANGE));
    arrive((struct pkt){.opcode = OP_FETCH_ADD, .psn = 100, .atomic = {.va = IOVA, .rkey = key}});
    arrive((struct pkt){.opcode = OP_READ_REQUEST, .psn = 100, .reth = {.va = IOVA, .rkey = key}});
    cr_expect_eq(transmit(), 0u);
}

Test(atomic_write, refusals)
{
    struct pkt p = atomic_write(100, IOVA);
    for (uint64_t off = 1; off < 8; off++)
        expect_refusal(atomic_write(100, IOVA + off), NAK_INVALID_REQUEST, "misaligned");
    p.reth.length = 4;
    expect_refusal(p, NAK_INVALID_REQUEST, "RETH length");
    p.reth.length = 0;
    expect_refusal(p, NAK_INVALID_REQUEST, "RETH length");
    p = atomic_write(100, IOVA + 1024);
    expect_refusal(p, NAK_REMOTE_ACCESS, "beyond the region");
    p = atomic_write(100, IOVA);
    p.reth.rkey ^= 1;
    expect_refusal(p, NAK_REMOTE_ACCESS, "key");
    p.reth.rkey = readable;
    expect_refusal(p, NAK_REMOTE_ACCESS, "rights of the region");
    struct qp_attr a = {.access = ALL & ~(uint32_t)ACCESS_REMOTE_WRITE};
    cr_assert_eq(qp_modify(qp, &a, QPA_ACCESS_FLAGS, NULL), 0);
    expect_refusal(atomic_write(100, IOVA), NAK_INVALID_REQUEST, "rights of the QP");
}

Test(atomic_write, the_address_in_memory_must_be_aligned)
{
    struct mr_init init = {.pd = FIX_PD,
                           .space = 1,
                           .va = FIX_VA + 4,
                           .iova = IOVA,
                           .length = 64,
                           .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE};
    struct pkt p = atomic_write(100, IOVA);
    cr_assert_eq(mr_register(fix.e, &init, &p.reth.rkey), 0);
    expect_refusal(p, NAK_INVALID_REQUEST, "misaligned memory");
    p.reth.va += 4;
    expect_refusal(p, NAK_INVALID_REQUEST, "misaligned address");
}

Test(atomic_write, atomic_write_takes_a_responder_resource)
{
    arrive(atomic_write(100, IOVA));
    arrive(flush(101, FLUSH_GLOBAL, FLUSH_RANGE));
    arrive(atomic_write(102, IOVA)); /* max_dest_rd_atomic is 2 */
    cr_assert_eq(transmit(), 3u);
    cr_expect_eq(sent(0).opcode, OP_READ_RESP_ONLY);
    cr_expect_eq(sent(1).opcode, OP_READ_RESP_ONLY);
    cr_expect_eq(sent(2).aeth.syndrome, NAK_INVALID_REQUEST);
}

Test(atomic_write, atomic_write_in_the_middle_of_a_message_is_invalid)
{
    static const uint8_t data[256];
    struct pkt p = {.opcode = OP_WRITE_FIRST,
                    .psn = 100,
                    .payload = data,
                    .payload_len = 256,
                    .reth = {.va = IOVA, .rkey = key, .length = 512}};
    arrive(p);
    unsigned writes = fix.writes;
    arrive(atomic_write(101, IOVA));
    cr_assert_geq(transmit(), 1u);
    cr_expect_eq(sent(batch.n - 1).aeth.syndrome, NAK_INVALID_REQUEST);
    cr_expect_eq(fix.writes, writes);
}

Test(atomic_write, responses_keep_the_order_of_requests)
{
    arrive((struct pkt){.opcode = OP_READ_REQUEST, .psn = 100, .reth = {.va = IOVA, .rkey = key, .length = 8}});
    arrive(atomic_write(101, IOVA));
    arrive((struct pkt){.opcode = OP_WRITE_ONLY, .psn = 102, .ackreq = true});
    cr_assert_eq(transmit(), 3u);
    cr_expect_eq(sent(0).payload_len, 8u);
    cr_expect_eq(sent(1).payload_len, 0u);
    cr_expect_eq(sent(1).psn, 101u);
    cr_expect_eq(sent(2).opcode, OP_ACK);
}

Test(atomic_write, unmapped_memory)
{
    struct event ev;
    fix.gone = true;
    arrive(atomic_write(100, IOVA));
    cr_assert_eq(transmit(), 1u);
    cr_expect_eq(sent(0).aeth.syndrome, NAK_REMOTE_OPERATION);
    cr_assert(engine_pop_event(fix.e, &ev));
    cr_expect_eq(ev.type, EVENT_QP_FATAL);
}

/* --- FLUSH, the responder ---------------------------------------------------------------------- */

Test(atomic_write, a_flush_is_answered_after_earlier_requests)
{
    struct pkt write = {.opcode = OP_WRITE_ONLY,
                        .psn = 100,
                        .reth = {.va = IOVA, .rkey = key, .length = 8},
                        .payload = bytes,
                        .payload_len = 8};
    arrive(write);
    arrive(flush(101, FLUSH_GLOBAL, FLUSH_RANGE));
    expect_response(101, 2);
    cr_expect_eq(memcmp(fix.bytes, bytes, 8), 0);
    arrive(flush(101, FLUSH_GLOBAL, FLUSH_RANGE));
    expect_response(101, 2);
    struct pkt whole = flush(102, FLUSH_GLOBAL, FLUSH_REGION);
    whole.reth.va = 0; /* ignored */
    whole.reth.length = UINT32_MAX;
    arrive(whole);
    expect_response(102, 3);
}

Test(atomic_write, flushes_that_are_refused)
{
    struct pkt p;
    expect_refusal(flush(100, 0, FLUSH_RANGE), NAK_INVALID_REQUEST, "no placement");
    expect_refusal(flush(100, 4, FLUSH_RANGE), NAK_INVALID_REQUEST, "unknown placement");
    expect_refusal(flush(100, FLUSH_GLOBAL | 4, FLUSH_RANGE), NAK_INVALID_REQUEST, "unknown placement");
    expect_refusal(flush(100, FLUSH_GLOBAL, 2), NAK_INVALID_REQUEST, "unknown selectivity");
    expect_refusal(flush(100, FLUSH_PERSISTENT, FLUSH_RANGE), NAK_INVALID_REQUEST, "the QP does not grant it");
    p = flush(100, FLUSH_GLOBAL, FLUSH_RANGE);
    p.reth.length = (1u << 31) + 1;
    expect_refusal(p, NAK_INVALID_REQUEST, "too long");
    p.reth.length = 1025;
    expect_refusal(p, NAK_REMOTE_ACCESS, "a byte more than the region");
    for (uint8_t selectivity = 0; selectivity < 2; selectivity++) {
        p = flush(100, FLUSH_GLOBAL, selectivity);
        p.reth.rkey = plain;
        expect_refusal(p, NAK_REMOTE_ACCESS, "rights of the region");
        p.reth.rkey = key ^ 1;
        expect_refusal(p, NAK_REMOTE_ACCESS, "key");
    }
    struct qp_attr a = {.access = ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT};
    for (uint8_t placement = FLUSH_PERSISTENT; placement <= 3; placement++) {
        cr_assert_eq(qp_modify(qp, &a, QPA_ACCESS_FLAGS, NULL), 0);
        expect_refusal(flush(100, placement, FLUSH_RANGE), NAK_REMOTE_ACCESS, "no region is persistent");
    }
}

Test(atomic_write, no_region_is_persistent)
{
    struct mr_init init = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = IOVA, .length = 8};
    uint32_t k;
    init.access = ACCESS_FLUSH_PERSISTENT;
    cr_expect_eq(mr_register(fix.e, &init, &k), -EINVAL);
}

Test(atomic_write, a_window_can_be_flushed_if_its_region_can)
{
    uint32_t mr = reg(ACCESS_LOCAL_WRITE | ACCESS_MW_BIND | ACCESS_FLUSH_GLOBAL), mw;
    uint32_t other = reg(ACCESS_LOCAL_WRITE | ACCESS_MW_BIND);
    cr_assert_eq(mw_alloc(fix.e, FIX_PD, MW_TYPE_2, &mw), 0);
    struct send_wr wr = {.opcode = WR_BIND_MW, .flags = SEND_SIGNALED};
    wr.bind =
        (struct mw_bind){.mw_key = mw, .mr_key = mr, .access = ACCESS_FLUSH_GLOBAL, .addr = IOVA + 8, .length = 8};
    cr_assert_eq(qp_post_send(qp, &wr, NULL, NULL), 0);
    cr_assert_eq(transmit(), 0u);
    cr_expect_eq(engine_peek_completion(fix.e)->status, WC_SUCCESS);
    engine_drop_completion(fix.e);
    struct pkt p = flush(100, FLUSH_GLOBAL, FLUSH_REGION);
    p.reth.rkey = mw;
    arrive(p);
    expect_response(100, 1);
    p = flush(101, FLUSH_GLOBAL, FLUSH_RANGE);
    p.reth = (struct pkt_reth){.va = IOVA + 8, .rkey = mw, .length = 8};
    arrive(p);
    expect_response(101, 2);
    cr_assert_eq(mw_dealloc(fix.e, mw), 0);
    cr_assert_eq(mw_alloc(fix.e, FIX_PD, MW_TYPE_2, &mw), 0);
    wr.bind.mw_key = mw;
    wr.bind.mr_key = other;
    cr_assert_eq(qp_post_send(qp, &wr, NULL, NULL), 0);
    cr_assert_eq(transmit(), 0u);
    cr_expect_eq(engine_peek_completion(fix.e)->status, WC_MW_BIND_ERR);
}

/* --- the requester ----------------------------------------------------------------------------- */

static struct send_wr atomic_write_wr(void)
{
    struct send_wr wr = {.opcode = WR_ATOMIC_WRITE, .flags = SEND_SIGNALED, .remote_addr = 0x1230, .rkey = 77};
    memcpy(&wr.compare_add, bytes, 8);
    return wr;
}

static struct send_wr flush_wr(uint8_t placement, uint8_t selectivity, uint32_t length)
{
    struct send_wr wr = {.opcode = WR_FLUSH, .flags = SEND_SIGNALED, .remote_addr = 0x1238, .rkey = 78};
    wr.flush = (struct flush){.length = length, .placement = placement, .selectivity = selectivity};
    return wr;
}

static int post(struct send_wr wr)
{
    return qp_post_send(qp, &wr, NULL, NULL);
}

static void respond(uint32_t psn, uint32_t len)
{
    arrive((struct pkt){.opcode = OP_READ_RESP_ONLY, .psn = psn, .payload = bytes, .payload_len = len});
}

static void expect_wc(uint8_t opcode, uint8_t status)
{
    const struct completion *c = engine_peek_completion(fix.e);
    cr_assert_not_null(c);
    cr_expect_eq(c->opcode, opcode, "opcode %u", c->opcode);
    cr_expect_eq(c->status, status, "status %u", c->status);
    engine_drop_completion(fix.e);
}

Test(atomic_write, posts_that_are_allowed_and_refused)
{
    struct sge sge = {IOVA, 8, key};
    struct send_wr wr = atomic_write_wr();
    wr.num_sge = 1;
    sge.length = 7;
    cr_expect_eq(qp_post_send(qp, &wr, &sge, NULL), -EINVAL);
    sge.length = 9;
    cr_expect_eq(qp_post_send(qp, &wr, &sge, NULL), -EINVAL);
    wr.num_sge = 0;
    wr.flags |= SEND_INLINE;
    wr.inline_len = 8;
    cr_expect_eq(qp_post_send(qp, &wr, NULL, bytes), -EINVAL);
    cr_expect_eq(post(flush_wr(0, 0, 8)), -EINVAL);
    cr_expect_eq(post(flush_wr(4, 0, 8)), -EINVAL);
    cr_expect_eq(post(flush_wr(1, 2, 8)), -EINVAL);
    cr_expect_eq(post(flush_wr(1, 0, (1u << 31) + 1)), -EINVAL);
    cr_expect_eq(post(flush_wr(3, 1, 0)), 0);
    cr_expect_eq(post(flush_wr(1, 0, 1u << 31)), 0);
}

Test(atomic_write, the_requests_on_the_wire)
{
    cr_assert_eq(post(atomic_write_wr()), 0);
    cr_assert_eq(post(flush_wr(FLUSH_GLOBAL | FLUSH_PERSISTENT, FLUSH_REGION, 5000)), 0);
    cr_assert_eq(transmit(), 2u);
    struct pkt p = sent(0);
    cr_expect(p.opcode == OP_ATOMIC_WRITE && p.psn == 200 && p.ackreq);
    cr_expect(p.reth.va == 0x1230 && p.reth.rkey == 77 && p.reth.length == 8);
    cr_assert_eq(p.payload_len, 8u);
    cr_expect_eq(memcmp(p.payload, bytes, 8), 0);
    p = sent(1);
    cr_expect(p.opcode == OP_FLUSH && p.psn == 201 && p.ackreq && p.payload_len == 0);
    cr_expect(p.reth.va == 0x1238 && p.reth.rkey == 78 && p.reth.length == 5000);
    cr_expect(p.feth.placement == 3 && p.feth.selectivity == FLUSH_REGION);
}

/* The eight bytes may be in memory, at an address that is not the program's. */
Test(atomic_write, bytes_of_an_sge)
{
    struct sge list[] = {{IOVA + 16, 3, key}, {IOVA + 32, 5, key}};
    struct send_wr wr = atomic_write_wr();
    wr.num_sge = 2;
    memcpy(fix.bytes + 16, "abc", 3);
    memcpy(fix.bytes + 32, "defgh", 5);
    cr_assert_eq(qp_post_send(qp, &wr, list, NULL), 0);
    cr_assert_eq(transmit(), 1u);
    struct pkt p = sent(0);
    cr_assert_eq(p.payload_len, 8u);
    cr_expect_eq(memcmp(p.payload, "abcdefgh", 8), 0);
    respond(200, 0);
    expect_wc(WC_ATOMIC_WRITE, WC_SUCCESS);
    list[1].lkey ^= 1;
    cr_assert_eq(qp_post_send(qp, &wr, list, NULL), 0);
    cr_expect_eq(transmit(), 0u);
    expect_wc(WC_ATOMIC_WRITE, WC_LOC_PROT_ERR);
}

Test(atomic_write, only_a_response_completes_the_request)
{
    cr_assert_eq(post(atomic_write_wr()), 0);
    cr_assert_eq(post(flush_wr(FLUSH_GLOBAL, FLUSH_RANGE, 8)), 0);
    cr_assert_eq(transmit(), 2u);
    arrive((struct pkt){.opcode = OP_ACK, .psn = 201, .aeth = {.syndrome = AETH_ACK}});
    cr_expect_null(engine_peek_completion(fix.e));
    cr_expect_eq(transmit(), 2u, "the responses were lost");
    respond(200, 0);
    expect_wc(WC_ATOMIC_WRITE, WC_SUCCESS);
    respond(201, 0);
    expect_wc(WC_FLUSH, WC_SUCCESS);
    cr_expect_eq(engine_counters(fix.e)->atomic_writes, 1u);
    cr_expect_eq(engine_counters(fix.e)->flushes, 1u);
    struct qp_info i;
    qp_info(qp, &i);
    cr_expect(i.inflight_bytes == 0 && i.reads_outstanding == 0);
}

Test(atomic_write, a_response_with_data_is_an_error)
{
    cr_assert_eq(post(atomic_write_wr()), 0);
    cr_assert_eq(transmit(), 1u);
    respond(200, 8);
    expect_wc(WC_ATOMIC_WRITE, WC_BAD_RESP_ERR);
}

Test(atomic_write, an_atomic_response_does_not_complete_it)
{
    cr_assert_eq(post(atomic_write_wr()), 0);
    cr_assert_eq(transmit(), 1u);
    arrive((struct pkt){.opcode = OP_ATOMIC_ACK, .psn = 200});
    cr_expect_null(engine_peek_completion(fix.e));
    respond(200, 0);
    expect_wc(WC_ATOMIC_WRITE, WC_SUCCESS);
}

Test(atomic_write, atomic_write_and_flush_take_credits)
{
    for (int i = 0; i < 4; i++) /* max_rd_atomic is 3 */
        cr_assert_eq(post(i % 2 ? atomic_write_wr() : flush_wr(1, 0, 8)), 0);
    cr_expect_eq(transmit(), 3u);
    respond(200, 0);
    cr_expect_eq(transmit(), 1u);
}

Test(atomic_write, a_fence_waits_for_atomic_write_and_flush)
{
    struct send_wr fenced = {.opcode = WR_SEND, .flags = SEND_FENCE | SEND_INLINE};
    cr_assert_eq(post(flush_wr(1, 0, 8)), 0);
    cr_assert_eq(qp_post_send(qp, &fenced, NULL, ""), 0);
    cr_expect_eq(transmit(), 1u);
    respond(200, 0);
    cr_expect_eq(transmit(), 1u);
    cr_expect_eq(sent(0).opcode, OP_SEND_ONLY);
}

Test(atomic_write, refused_requests_fail)
{
    cr_assert_eq(post(flush_wr(FLUSH_PERSISTENT, 0, 8)), 0);
    cr_assert_eq(transmit(), 1u);
    arrive((struct pkt){.opcode = OP_ACK, .psn = 200, .aeth = {.syndrome = NAK_REMOTE_ACCESS}});
    expect_wc(WC_FLUSH, WC_REM_ACCESS_ERR);
}
