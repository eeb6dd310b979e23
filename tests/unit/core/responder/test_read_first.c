// SPDX-License-Identifier: BSD-2-Clause
/* Tests the order of READs and later requests: a READ returns the contents of its memory before the requests that follow
 * it. */
#include "daemon/core/qp/qp.h" /* first: its parameters are named as a variable of the following */

#include "tests/unit/core/one_qp.h"

#include "daemon/core/base/psn.h"
#include "daemon/core/qp/engine_state.h"

#define LONG 5000u /* bytes of a READ that does not fit its resource */

static uint32_t key;
static uint8_t old[LONG];

static void start(uint32_t read_copy_bytes)
{
    fix_init(&fix);
    fix.e->copies.size = read_copy_bytes;
    struct mr_init mr = {.pd = FIX_PD,
                         .space = 1,
                         .va = FIX_VA,
                         .iova = FIX_VA,
                         .length = FIX_MEM,
                         .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ};
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    qp = fix_qp(&fix);
    fix_bring(qp, QPS_RTS); /* expects PSN 100 */
    for (uint32_t i = 0; i < LONG; i++)
        fix.bytes[i] = old[i] = (uint8_t)(i * 7 + 1);
}
static void setup(void)
{
    start(2 * LONG);
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(read_first, .init = setup, .fini = teardown);

static void read_arrives(uint32_t psn, uint32_t off, uint32_t len)
{
    arrive((struct pkt){.opcode = OP_READ_REQUEST, .psn = psn, .reth = {FIX_VA + off, key, len}});
}

/* A WRITE of 256 new bytes. */
static void write_arrives(uint32_t psn, uint32_t off)
{
    static uint8_t data[256];
    memset(data, 0xee, sizeof(data));
    arrive((struct pkt){.opcode = OP_WRITE_ONLY,
                        .psn = psn,
                        .ackreq = true,
                        .reth = {FIX_VA + off, key, sizeof(data)},
                        .payload = data,
                        .payload_len = sizeof(data)});
}

/* Packets [first, first + n) of the batch are responses with the old bytes from `off` on. */
static void expect_old(uint32_t first, uint32_t n, uint32_t off)
{
    for (uint32_t i = first; i < first + n; i++) {
        struct pkt p = sent(i);
        cr_assert(p.opcode >= OP_READ_RESP_FIRST && p.opcode <= OP_READ_RESP_ONLY, "packet %u is %#x", i, p.opcode);
        cr_expect_arr_eq(p.payload, old + off, p.payload_len, "packet %u", i);
        off += p.payload_len;
    }
}

Test(read_first, a_short_read)
{
    read_arrives(100, 10, 64);
    write_arrives(101, 0);
    cr_expect_eq(fix.bytes[10], 0xee);
    cr_assert_eq(transmit(), 2);
    expect_old(0, 1, 10);
    cr_expect_eq(sent(1).opcode, OP_ACK);
}

/* Short READs that come together are read by one call, also if a request between them is not short. */
Test(read_first, short_reads_are_read_together)
{
    qp->attr.max_dest_rd_atomic = 8;
    uint32_t packets = psn_count(1000, 256);
    read_arrives(100, 10, 64);
    read_arrives(101, 0, 0);
    read_arrives(102, 200, 1000);
    read_arrives(102 + packets, 7, 1);
    read_arrives(103 + packets, 300, 64);
    cr_expect_eq(fix.reads, 0, "before the responses");
    cr_assert_eq(transmit(), packets + 4);
    cr_expect_eq(fix.reads, 2);
    expect_old(0, 1, 10);
    cr_expect_eq(sent(1).payload_len, 0);
    expect_old(2, packets, 200);
    expect_old(2 + packets, 1, 7);
    expect_old(3 + packets, 1, 300);
    read_arrives(104 + packets, 400, 64);
    cr_assert_eq(transmit(), 1);
    expect_old(0, 1, 400);
}

Test(read_first, short_reads_before_a_write_are_read_together)
{
    qp->attr.max_dest_rd_atomic = 8;
    read_arrives(100, 0, 64);
    read_arrives(101, 64, 64);
    read_arrives(102, 128, 64);
    write_arrives(103, 0);
    cr_expect_eq(fix.reads, 1);
    cr_expect_eq(fix.writes, 1);
    cr_assert_eq(transmit(), 4);
    expect_old(0, 1, 0);
    expect_old(1, 1, 64);
    expect_old(2, 1, 128);
}

/* The others are answered. */
Test(read_first, one_short_read_whose_memory_is_gone)
{
    qp->attr.max_dest_rd_atomic = 8;
    struct mr_init mr = {
        .pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM, .access = ACCESS_REMOTE_READ};
    uint32_t other;
    cr_assert_eq(mr_register(fix.e, &mr, &other), 0);
    read_arrives(100, 0, 64);
    read_arrives(101, 64, 64);
    arrive((struct pkt){.opcode = OP_READ_REQUEST, .psn = 102, .reth = {FIX_VA, other, 64}});
    read_arrives(103, 128, 64);
    cr_assert_eq(mr_deregister(fix.e, other), 0);
    cr_assert_eq(transmit(), 3);
    expect_old(0, 1, 0);
    expect_old(1, 1, 64);
    cr_expect_eq(sent(2).aeth.syndrome, NAK_REMOTE_ACCESS);
    cr_expect_eq(sent(2).psn, 102);
}

/* Each READ that meets unmapped memory is counted. */
Test(read_first, short_reads_of_unmapped_memory)
{
    qp->attr.max_dest_rd_atomic = 8;
    fix.unmapped = true;
    for (uint32_t i = 0; i < 3; i++)
        read_arrives(100 + i, 64 * i, 64);
    cr_assert_eq(transmit(), 3);
    cr_expect_eq(engine_counters(fix.e)->mem_unmapped, 3);
}

Test(read_first, a_repeated_short_read_returns_the_same_data)
{
    read_arrives(100, 10, 64);
    cr_assert_eq(transmit(), 1);
    write_arrives(101, 0);
    cr_assert_eq(transmit(), 1);
    read_arrives(100, 10, 64);
    cr_assert_eq(transmit(), 1);
    expect_old(0, 1, 10);
}

Test(read_first, a_repeated_long_read_reads_again)
{
    read_arrives(100, 0, 65);
    cr_assert_eq(transmit(), 1);
    expect_old(0, 1, 0);
    write_arrives(101, 0);
    cr_assert_eq(transmit(), 1);
    read_arrives(100, 0, 65);
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sent(0).payload[0], 0xee);
}

Test(read_first, long_reads)
{
    uint32_t packets = psn_count(LONG, 256);
    read_arrives(100, 0, LONG);
    read_arrives(100 + packets, 100, 1000);
    write_arrives(104 + packets, 0);
    write_arrives(105 + packets, 300);
    cr_assert_eq(transmit(), packets + 4 + 1);
    expect_old(0, packets, 0);
    expect_old(packets, 4, 100);
    cr_expect_eq(sent(packets + 4).psn, 105 + packets);
}

/* The first part of the response has left before the WRITE comes. */
Test(read_first, the_rest_of_a_long_read)
{
    uint32_t packets = psn_count(LONG, 256);
    read_arrives(100, 0, LONG);
    uint32_t n = transmit_up_to(2000);
    cr_assert(n > 0 && n < packets);
    expect_old(0, n, 0);
    write_arrives(100 + packets, n * 256);
    cr_assert_eq(transmit(), packets - n + 1);
    expect_old(0, packets - n, n * 256);
}

Test(read_first, a_send_does_not_overtake_a_read)
{
    struct recv_wr wr = {.num_sge = 0};
    uint32_t packets = psn_count(LONG, 256);
    cr_assert_eq(qp_post_recv(qp, &wr, NULL), 0);
    read_arrives(100, 0, LONG);
    arrive((struct pkt){.opcode = OP_SEND_ONLY, .psn = 100 + packets, .ackreq = true});
    cr_assert(engine_peek_completion(fix.e));
    memset(fix.bytes, 0, LONG); /* the program, which has seen the message */
    cr_assert_eq(transmit(), packets + 1);
    expect_old(0, packets, 0);
}

/* Memory for copies is used again: many more bytes than there are. */
Test(read_first, copies_do_not_accumulate)
{
    uint32_t psn = 100;
    for (int i = 0; i < 20; i++) {
        memcpy(fix.bytes, old, LONG);
        read_arrives(psn, 0, LONG);
        psn += psn_count(LONG, 256);
        write_arrives(psn++, 0);
        cr_assert_eq(transmit(), psn_count(LONG, 256) + 1, "%d", i);
        expect_old(0, psn_count(LONG, 256), 0);
    }
    cr_expect_eq(engine_counters(fix.e)->send_seq_err, 0);
}

Test(read_first, without_room_the_later_request_waits, .init = NULL)
{
    uint32_t packets = psn_count(LONG, 256);
    start(100);
    read_arrives(100, 0, LONG);
    write_arrives(100 + packets, 0);
    write_arrives(101 + packets, 0);
    cr_expect_eq(fix.writes, 0);
    cr_assert_eq(transmit(), packets + 1);
    expect_old(0, packets, 0);
    struct pkt nak = sent(packets);
    cr_expect_eq(nak.opcode, OP_ACK);
    cr_expect_eq(nak.aeth.syndrome, NAK_PSN_SEQUENCE);
    cr_expect_eq(nak.psn, 100 + packets);
    write_arrives(100 + packets, 0);
    cr_expect_eq(fix.writes, 1);
    cr_assert_eq(transmit(), 1);
    cr_expect_eq(sent(0).aeth.syndrome, AETH_ACK | AETH_NO_CREDITS);
}

Test(read_first, a_qp_that_ends_gives_its_copies_back)
{
    uint32_t packets = psn_count(LONG, 256);
    for (int i = 0; i < 5; i++) {
        read_arrives(100, 0, LONG);
        write_arrives(100 + packets, 0);
        if (i % 2)
            fix_bring(qp, QPS_ERR);
        cr_assert_eq(fix_modify(qp, QPS_RESET), 0);
        cr_assert_eq(transmit(), 0);
        fix_bring(qp, QPS_RTS);
    }
    read_arrives(100, 0, LONG);
    write_arrives(100 + packets, 0);
    cr_expect_eq(transmit(), packets + 1, "there is room");
}
