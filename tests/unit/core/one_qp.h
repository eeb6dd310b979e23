// SPDX-License-Identifier: BSD-2-Clause
/* Tests of the two halves of one QP, packet by packet: the fixture, the packets that the QP sends, and the packets
 * that it gets. */
#ifndef PUMICE_TESTS_UNIT_CORE_ONE_QP_H
#define PUMICE_TESTS_UNIT_CORE_ONE_QP_H

#include "tests/unit/core/core_fixture.h"

static struct fixture fix;
static struct qp *qp;
static uint8_t buf[1 << 17];
static struct tx_batch batch; /* the packets that were sent last; their bytes are in buf */

/* For struct mem_ops, in tests that do not look at the data that the QP sends. */
static inline int no_read(void *ctx, const struct mem_segment *src, unsigned nsrc, const struct buf *dst, unsigned ndst)
{
    (void)ctx, (void)src, (void)nsrc, (void)dst, (void)ndst;
    return 0;
}

/* Sends the packets that are due, at most cap bytes. Returns the number of packets. */
static inline uint32_t transmit_up_to(size_t cap)
{
    batch.buf = buf;
    batch.cap = cap;
    batch.used = batch.n = 0;
    return engine_tx(fix.e, &batch, fix.now);
}

static inline uint32_t transmit(void)
{
    return transmit_up_to(sizeof buf);
}

/* Packet i of those sent last, from 0. */
static inline struct pkt sent(uint32_t i)
{
    struct pkt p;
    cr_assert_lt(i, batch.n);
    cr_assert_eq(pkt_decode(buf + batch.pkt[i].off, batch.pkt[i].len, &p), PKT_OK);
    return p;
}

/* Gives the QP a packet from the peer. */
static inline void arrive(struct pkt p)
{
    p.dest_qpn = qp_number(qp);
    p.psn &= PSN_MASK;
    fix_rx(&fix, &p);
}

static inline void nak(uint8_t syndrome, uint32_t psn)
{
    arrive((struct pkt){.opcode = OP_ACK, .psn = psn, .aeth = {.syndrome = syndrome}});
}

static inline void ack(uint32_t psn)
{
    nak(AETH_ACK | AETH_NO_CREDITS, psn);
}

#endif
