// SPDX-License-Identifier: BSD-2-Clause
/* QP 1: management datagrams in and out. */
#include <errno.h>

#include "tests/unit/core/core_fixture.h"
#include "wire/mad.h"

#define PEER 9u

static struct fixture fix;
static uint8_t out[1 << 18];
static uint8_t mad[MAD_LEN + 4];
static struct pkt pkt;
static struct rx_meta meta;

static void setup(void)
{
    fix_init(&fix);
    fix.now = 5000000000u;
    for (unsigned i = 0; i < sizeof mad; i++)
        mad[i] = (uint8_t)i;
    pkt = (struct pkt){.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                       .pkey = PKEY_DEFAULT,
                       .dest_qpn = MAD_QPN,
                       .deth = {.qkey = MAD_QKEY, .src_qpn = MAD_QPN},
                       .payload = mad,
                       .payload_len = MAD_LEN};
    meta = (struct rx_meta){.src_gid = {[15] = PEER}, .dst_gid = {[15] = 1}, .traffic_class = 0x20, .hop_limit = 63};
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(gsi, .init = setup, .fini = teardown);

static struct av to_peer(void)
{
    return (struct av){.dgid = {[15] = PEER}, .traffic_class = 0x40, .hop_limit = 64};
}

static bool received(struct gsi_mad *m)
{
    engine_rx(fix.e, &pkt, &meta, fix.now);
    return engine_pop_mad(fix.e, m);
}

Test(gsi, a_mad_reaches_the_owner_with_its_sender)
{
    struct gsi_mad m;
    cr_assert(received(&m));
    cr_expect_arr_eq(m.data, mad, MAD_LEN);
    cr_expect(m.av.dgid[15] == PEER && m.dgid[15] == 1);
    cr_expect(m.av.sgid_index == 0 && m.av.traffic_class == 0x20 && m.av.hop_limit == 63);
    cr_expect_not(engine_pop_mad(fix.e, &m));
    cr_expect_eq(engine_counters(fix.e)->gsi_mads_rcvd, 1);
}

Test(gsi, the_packet_of_a_mad)
{
    struct tx_batch b = {.buf = out, .cap = sizeof out};
    struct av av = to_peer();
    struct pkt p;
    cr_assert_eq(engine_send_mad(fix.e, &av, mad), 0);
    cr_assert_eq(engine_send_mad(fix.e, &av, mad), 0);
    cr_assert_eq(engine_tx(fix.e, &b, fix.now), 2);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(pkt_decode(out + b.pkt[i].off, b.pkt[i].len, &p), PKT_OK);
        cr_expect(p.opcode == (OP_SERVICE_UD | OP_SEND_ONLY) && p.dest_qpn == MAD_QPN && p.pkey == PKEY_DEFAULT);
        cr_expect(p.deth.qkey == MAD_QKEY && p.deth.src_qpn == MAD_QPN);
        cr_expect_eq(p.psn, i, "PSNs count up");
        cr_assert_eq(p.payload_len, MAD_LEN);
        cr_expect_arr_eq(p.payload, mad, MAD_LEN);
        cr_expect(b.pkt[i].av->dgid[15] == PEER && b.pkt[i].av->traffic_class == 0x40);
        cr_expect_eq(b.pkt[i].src_qpn, MAD_QPN);
    }
    cr_expect_eq(engine_tx(fix.e, &b, fix.now), 0);
    cr_expect_eq(engine_counters(fix.e)->gsi_mads_sent, 2);
}

/* The cause of the only report. */
static unsigned dropped_for(void)
{
    struct gsi_mad m;
    struct report r;
    cr_assert_not(received(&m));
    cr_assert(engine_pop_report(fix.e, &r));
    cr_assert_eq(r.kind, REPORT_DROP);
    return r.cause;
}

Test(gsi, other_packets_are_for_no_queue_pair)
{
    pkt.payload_len = MAD_LEN - 4;
    cr_expect_eq(dropped_for(), DROP_UNKNOWN_QP);
    pkt.payload_len = MAD_LEN + 4;
    cr_expect_eq(dropped_for(), DROP_UNKNOWN_QP);
    pkt.payload_len = MAD_LEN;
    pkt.deth.src_qpn = 17;
    cr_expect_eq(dropped_for(), DROP_UNKNOWN_QP, "programs can send from other QPs");
    pkt.deth.src_qpn = MAD_QPN;
    pkt.opcode = OP_SERVICE_UD | OP_SEND_ONLY_IMM;
    cr_expect_eq(dropped_for(), DROP_UNKNOWN_QP);
    pkt.opcode = OP_SERVICE_RC | OP_SEND_ONLY;
    cr_expect_eq(dropped_for(), DROP_UNKNOWN_QP);
    cr_expect_eq(engine_counters(fix.e)->rx_unknown_qp, 5);
}

Test(gsi, addresses_that_are_no_device_of_ours_or_can_get_no_answer)
{
    meta.dst_gid[15] = 2;
    cr_expect_eq(dropped_for(), DROP_UNKNOWN_QP);
    memset(meta.dst_gid, 0, 16);
    cr_expect_eq(dropped_for(), DROP_UNKNOWN_QP, "an empty entry of the GID table");
    meta.dst_gid[0] = 0xff;
    cr_expect_eq(dropped_for(), DROP_UNKNOWN_QP);
    meta.dst_gid[0] = 0;
    meta.dst_gid[15] = 1;
    meta.src_gid[0] = 0xff;
    cr_expect_eq(dropped_for(), DROP_UNKNOWN_QP);
}

Test(gsi, keys)
{
    struct gsi_mad m;
    pkt.deth.qkey = MAD_QKEY + 1;
    cr_expect_eq(dropped_for(), DROP_QKEY);
    cr_expect_eq(engine_counters(fix.e)->rx_bad_qkey, 1);
    pkt.deth.qkey = MAD_QKEY;
    pkt.pkey = 0x8001;
    cr_expect_eq(dropped_for(), DROP_PKEY);
    cr_expect_eq(engine_counters(fix.e)->rx_bad_pkey, 1);
    pkt.pkey = PKEY_DEFAULT & 0x7fff;
    cr_expect(received(&m), "a limited member may send");
}

Test(gsi, a_flood_is_dropped_and_counted)
{
    struct gsi_mad m;
    unsigned n = 0;
    for (unsigned i = 0; i < GSI_SLOTS + 10; i++) {
        mad[0] = (uint8_t)i;
        engine_rx(fix.e, &pkt, &meta, fix.now);
    }
    for (; engine_pop_mad(fix.e, &m); n++)
        cr_assert_eq(m.data[0], (uint8_t)n);
    cr_expect_eq(n, GSI_SLOTS);
    cr_expect_eq(engine_counters(fix.e)->gsi_mads_dropped, 10);
    cr_expect(received(&m), "there is room again");
}

Test(gsi, destinations_that_are_refused)
{
    struct av av = to_peer();
    av.sgid_index = 1;
    cr_expect_eq(engine_send_mad(fix.e, &av, mad), -EINVAL);
    av.sgid_index = 0;
    av.dgid[0] = 0xff;
    cr_expect_eq(engine_send_mad(fix.e, &av, mad), -EINVAL);
    memset(av.dgid, 0, 16);
    cr_expect_eq(engine_send_mad(fix.e, &av, mad), -EINVAL);
    av = to_peer();
    engine_set_gid(fix.e, 0, (uint8_t[16]){0});
    cr_expect_eq(engine_send_mad(fix.e, &av, mad), -EINVAL, "the address is gone");
}

/* The destinations in a batch stay valid while new MADs are queued. */
Test(gsi, many_mads_leave_in_several_batches)
{
    struct av av = to_peer();
    unsigned sent = 0;
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < GSI_SLOTS; i++) {
            av.dgid[14] = (uint8_t)i;
            cr_assert_eq(engine_send_mad(fix.e, &av, mad), 0);
        }
        cr_expect_eq(engine_send_mad(fix.e, &av, mad), -EAGAIN);
        for (unsigned i = 0; i < GSI_SLOTS;) {
            struct tx_batch b = {.buf = out, .cap = sizeof out};
            uint32_t n = engine_tx(fix.e, &b, fix.now);
            cr_assert(n > 0 && n <= GSI_BURST, "QPs also have their turn");
            while (engine_send_mad(fix.e, &(struct av){.dgid = {[15] = 7}}, mad) == 0)
                continue;
            for (unsigned k = 0; k < n; k++, sent++)
                cr_assert_eq(b.pkt[k].av->dgid[14], (uint8_t)i++);
            if (i < GSI_SLOTS)
                continue;
            while (engine_tx(fix.e, &(struct tx_batch){.buf = out, .cap = sizeof out}, fix.now))
                continue;
        }
    }
    cr_expect_eq(sent, 5 * GSI_SLOTS);
}
