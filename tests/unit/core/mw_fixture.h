// SPDX-License-Identifier: BSD-2-Clause
/* For tests of memory windows: a region, a QP, binds through the QP, and requests of its peer. */
#ifndef PUMICE_TESTS_UNIT_CORE_MW_FIXTURE_H
#define PUMICE_TESTS_UNIT_CORE_MW_FIXTURE_H

#include <errno.h>

#include "tests/unit/core/core_fixture.h"

static struct fixture fix;
static struct qp *qp;
static uint32_t mr; /* bytes START … of the fixture's memory, at the addresses IOVA … */
static uint32_t psn; /* the peer's next PSN */

#define LW ACCESS_LOCAL_WRITE
#define RW ACCESS_REMOTE_WRITE
#define RR ACCESS_REMOTE_READ
#define RA ACCESS_REMOTE_ATOMIC
#define BIND ACCESS_MW_BIND
#define ZERO ACCESS_ZERO_BASED
#define START 1024u
#define LENGTH 1024u
#define IOVA 0x5000u
#define OTHER_PD (FIX_PD + 1)

static inline uint32_t reg(uint32_t pd, uint32_t access)
{
    struct mr_init init = {
        .pd = pd, .space = 1, .va = FIX_VA + START, .iova = IOVA, .length = LENGTH, .access = access};
    uint32_t key = 0;
    cr_assert_eq(mr_register(fix.e, &init, &key), 0);
    return key;
}

static inline void setup(void)
{
    fix_init(&fix);
    for (uint32_t i = 0; i < FIX_MEM; i++)
        fix.bytes[i] = (uint8_t)(i * 7 + i / 256);
    mr = reg(FIX_PD, LW | BIND);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS);
    psn = 100;
}
static inline void teardown(void)
{
    fix_fini(&fix);
}
/* Replaces the QP that a refused request moved to ERR. */
static inline void renew(void)
{
    struct event ev;
    qp_destroy(qp);
    free(fix.qpmem[0]);
    qp = fix_qp(&fix);
    fix.qpmem[0] = fix.qpmem[--fix.nqpmem];
    fix_bring(qp, QPS_RTS);
    psn = 100;
    while (engine_pop_event(fix.e, &ev)) {
    }
}

static inline uint32_t alloc(uint8_t type)
{
    uint32_t key = 0;
    cr_assert_eq(mw_alloc(fix.e, FIX_PD, type, &key), 0);
    return key;
}

/* The key with another tag. */
static inline uint32_t tagged(uint32_t key, uint8_t tag)
{
    return (key & ~0xffu) | tag;
}

/* Posts a request, executes it, and returns the status of its completion. */
static inline uint8_t run(struct qp *on, struct send_wr wr)
{
    static uint8_t buf[16384];
    struct tx_batch b = {.buf = buf, .cap = sizeof buf};
    wr.flags |= SEND_SIGNALED;
    cr_assert_eq(qp_post_send(on, &wr, NULL, NULL), 0);
    cr_assert_eq(engine_tx(fix.e, &b, fix.now), 0u, "nothing is sent");
    const struct completion *c = engine_peek_completion(fix.e);
    cr_assert_not_null(c);
    uint8_t status = c->status;
    cr_expect_eq(c->opcode, wr.opcode == WR_BIND_MW ? WC_BIND_MW : WC_LOCAL_INV);
    cr_expect_eq(qp_state(on), status == WC_SUCCESS ? QPS_RTS : QPS_ERR);
    engine_drop_completion(fix.e);
    cr_expect_null(engine_peek_completion(fix.e));
    return status;
}

static inline uint8_t bind_on(struct qp *on, struct mw_bind b)
{
    return run(on, (struct send_wr){.opcode = WR_BIND_MW, .bind = b});
}

static inline uint8_t bind_it(struct mw_bind b)
{
    return bind_on(qp, b);
}

static inline uint8_t invalidate(uint32_t rkey)
{
    return run(qp, (struct send_wr){.opcode = WR_LOCAL_INV, .inv_rkey = rkey});
}

/* A bound window of type 2 over the whole region. */
static inline uint32_t window_2(uint32_t access)
{
    uint32_t key = tagged(alloc(MW_TYPE_2), 0x2b);
    cr_assert_eq(
        bind_it((struct mw_bind){.mw_key = key, .mr_key = mr, .access = access, .addr = IOVA, .length = LENGTH}),
        WC_SUCCESS);
    return key;
}

enum kind {
    WRITE,
    READ,
    ATOMIC,
};

/* One request of the peer. Returns the syndrome of the NAK; 0: the request was executed. */
static inline uint8_t ask_of(struct qp *target, uint32_t *at, enum kind kind, uint32_t key, uint64_t va, uint32_t len)
{
    static const uint8_t opcodes[] = {OP_WRITE_ONLY, OP_READ_REQUEST, OP_FETCH_ADD};
    static uint8_t out[16384], data[256];
    struct pkt a;
    struct pkt p = {.opcode = opcodes[kind], .psn = (*at)++, .ackreq = true, .dest_qpn = qp_number(target)};
    p.reth.va = p.atomic.va = va;
    p.reth.rkey = p.atomic.rkey = key;
    p.reth.length = len;
    if (kind == WRITE) {
        p.payload = data;
        p.payload_len = len;
        p.pad = (uint8_t)pkt_pad(len);
    }
    cr_assert_eq(fix_exchange(&fix, &p, out, &a), 0, "no answer");
    return (a.aeth.syndrome & AETH_KIND_MASK) == AETH_ACK ? 0 : a.aeth.syndrome;
}

static inline uint8_t ask(enum kind kind, uint32_t key, uint64_t va, uint32_t len)
{
    uint8_t syndrome = ask_of(qp, &psn, kind, key, va, len);
    if (syndrome)
        renew();
    return syndrome;
}

#endif
