// SPDX-License-Identifier: BSD-2-Clause
/* Unreliable datagrams (IBA 9.8.3). */
#include <errno.h>

#include "tests/unit/core/core_fixture.h"
#include "wire/grh.h"

#define QKEY 0x1234u /* as in fix_attr */
#define MTU 2048u /* of the port */

static struct fixture fix;
static struct qp *qp;
static uint32_t key;
static uint8_t payload[4096];
static uint8_t out[65536];

static void setup(void)
{
    fix_init(&fix);
    struct mr_init mr = {.pd = FIX_PD, .space = 1, .va = FIX_VA, .iova = FIX_VA, .length = FIX_MEM};
    mr.access = ACCESS_LOCAL_WRITE;
    cr_assert_eq(mr_register(fix.e, &mr, &key), 0);
    qp = fix_qp_of(&fix, QPT_UD);
    fix_bring(qp, QPS_RTS);
    for (unsigned i = 0; i < sizeof payload; i++) {
        payload[i] = (uint8_t)(i * 11 + 3);
    }
}
static void teardown(void)
{
    fix_fini(&fix);
}
TestSuite(ud, .init = setup, .fini = teardown);

static void post_recv(uint64_t wr_id, uint32_t off, uint32_t len)
{
    struct sge sge = {FIX_VA + off, len, key};
    struct recv_wr wr = {.wr_id = wr_id, .num_sge = 1};
    cr_assert_eq(qp_post_recv(qp, &wr, &sge), 0);
}

static struct send_wr send_to(uint8_t host, uint32_t qpn)
{
    struct send_wr wr = {.opcode = WR_SEND, .flags = SEND_SIGNALED, .num_sge = 1};
    wr.ud.av.dgid[15] = host;
    wr.ud.qpn = qpn;
    wr.ud.qkey = 0x77;
    return wr;
}

static int post(const struct send_wr *wr, uint32_t len)
{
    struct sge sge = {FIX_VA, len, key};
    return qp_post_send(qp, wr, &sge, payload);
}

static struct pkt datagram(uint32_t len)
{
    return (struct pkt){.opcode = OP_SERVICE_UD | OP_SEND_ONLY,
                        .dest_qpn = qp_number(qp),
                        .deth = {.qkey = QKEY, .src_qpn = 0xabcdef},
                        .payload = payload,
                        .payload_len = len,
                        .imm = {9, 8, 7, 6}};
}

static void none(void)
{
    struct pkt p;
    cr_expect_null(engine_peek_completion(fix.e), "no completion");
    cr_expect_eq(fix_tx(&fix, out, &p, 1), 0, "nothing is ever answered");
}

/* --- requester --------------------------------------------------------------------------------- */

Test(ud, each_request_has_its_own_destination)
{
    struct tx_batch b = {.buf = out, .cap = sizeof out};
    for (uint8_t i = 1; i <= 3; i++) {
        struct send_wr wr = send_to((uint8_t)(10 + i), 1000u + i);
        wr.wr_id = i;
        cr_assert_eq(post(&wr, 100u * i), 0);
    }
    cr_assert_eq(engine_tx(fix.e, &b, fix.now), 3);
    for (uint32_t i = 1; i <= 3; i++) {
        struct pkt p;
        cr_assert_eq(pkt_decode(out + b.pkt[i - 1].off, b.pkt[i - 1].len, &p), PKT_OK);
        cr_expect_eq(p.opcode, OP_SERVICE_UD | OP_SEND_ONLY);
        cr_expect_eq(p.dest_qpn, 1000 + i);
        cr_expect_eq(p.psn, 199 + i);
        cr_expect_eq(p.deth.qkey, 0x77u);
        cr_expect_eq(p.deth.src_qpn, qp_number(qp));
        cr_expect_eq(p.payload_len, 100 * i);
        cr_expect_not(p.ackreq);
        cr_expect_eq(b.pkt[i - 1].av->dgid[15], 10 + i, "completed, and still there for who sends it");
        struct completion c = fix_take(&fix);
        cr_expect(c.wr_id == i && c.status == WC_SUCCESS);
    }
    none();
}

Test(ud, immediate_data_and_inline_data)
{
    struct pkt p;
    struct send_wr wr = send_to(5, 1000);
    wr.opcode = WR_SEND_WITH_IMM;
    wr.flags |= SEND_INLINE | SEND_SOLICITED;
    wr.num_sge = 0;
    wr.inline_len = 32;
    memcpy(wr.imm, "abcd", 4);
    cr_assert_eq(qp_post_send(qp, &wr, NULL, payload), 0);
    cr_assert_eq(fix_tx(&fix, out, &p, 1), 1);
    cr_expect_eq(p.opcode, OP_SERVICE_UD | OP_SEND_ONLY_IMM);
    cr_expect(p.solicited);
    cr_expect_eq(memcmp(p.imm, "abcd", 4), 0);
    cr_expect_eq(memcmp(p.payload, payload, 32), 0);
}

Test(ud, the_top_bit_of_a_q_key_selects_the_q_key_of_the_qp)
{
    struct pkt p;
    struct send_wr wr = send_to(5, 1000);
    wr.ud.qkey = 0x80000077;
    cr_assert_eq(post(&wr, 1), 0);
    cr_assert_eq(fix_tx(&fix, out, &p, 1), 1);
    cr_expect_eq(p.deth.qkey, QKEY);
}

Test(ud, a_datagram_is_one_packet)
{
    struct pkt p;
    struct send_wr wr = send_to(5, 1000);
    cr_assert_eq(post(&wr, MTU), 0);
    cr_expect_eq(fix_tx(&fix, out, &p, 1), 1);
    cr_expect_eq(p.payload_len, MTU);
    cr_expect_eq(fix_take(&fix).status, WC_SUCCESS);
    cr_assert_eq(post(&wr, MTU + 1), 0);
    cr_expect_eq(fix_tx(&fix, out, &p, 1), 0);
    cr_expect_eq(fix_take(&fix).status, WC_LOC_LEN_ERR);
    cr_expect_eq(qp_state(qp), QPS_SQE);
    struct qp_attr a = {.state = QPS_RTS};
    cr_assert_eq(qp_modify(qp, &a, QPA_STATE, NULL), 0);
    cr_assert_eq(post(&wr, 7), 0);
    cr_expect_eq(fix_tx(&fix, out, &p, 1), 1);
    cr_expect_eq(p.psn, 201);
}

Test(ud, an_address_of_the_other_family_is_an_error_of_the_request)
{
    struct pkt p;
    struct send_wr good = send_to(5, 1000), bad = send_to(5, 1000), group = send_to(5, QPN_MULTICAST);
    bad.ud.av.dgid[10] = bad.ud.av.dgid[11] = 0xff; /* ::ffff:0.0.0.5, from an IPv6 address */
    memcpy(group.ud.av.dgid, (uint8_t[16]){[10] = 0xff, [11] = 0xff, [12] = 239, [15] = 1}, 16);
    cr_assert_eq(post(&group, 7), 0);
    cr_expect_eq(fix_tx(&fix, out, &p, 1), 1, "groups are the owner's business");
    cr_expect_eq(fix_take(&fix).status, WC_SUCCESS);
    cr_assert(post(&bad, 7) == 0 && post(&good, 7) == 0);
    cr_expect_eq(fix_tx(&fix, out, &p, 1), 0, "nothing behind it leaves");
    cr_expect_eq(fix_take(&fix).status, WC_LOC_QP_OP_ERR);
    cr_expect_eq(fix_take(&fix).status, WC_WR_FLUSH_ERR);
    cr_expect_eq(qp_state(qp), QPS_SQE);
}

Test(ud, other_operations_are_refused)
{
    struct send_wr wr = send_to(5, 1000);
    wr.ud.qpn = 0x1000000;
    cr_expect_eq(post(&wr, 1), -EINVAL);
    wr = send_to(5, 1000);
    wr.ud.av.sgid_index = 1; /* there is only one GID */
    cr_expect_eq(post(&wr, 1), -EINVAL);
    for (uint8_t op = 0; op < 32; op++) {
        wr = send_to(5, 1000);
        wr.opcode = op;
        cr_expect_eq(post(&wr, 8) == 0, op == WR_SEND || op == WR_SEND_WITH_IMM, "opcode %u", op);
    }
}

/* --- responder --------------------------------------------------------------------------------- */

/* Returns the receive buffer as its user sees it after polling the completion. */
static const uint8_t *received(const struct completion *c, uint32_t off)
{
    memcpy(fix.bytes + off, c->data, c->inline_len);
    return fix.bytes + off;
}

Test(ud, the_receive_buffer_has_the_header_and_the_datagram)
{
    static const uint32_t lens[] = {0, 1, 24, 25, 500, MTU};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        struct pkt p = datagram(lens[i]);
        uint8_t grh[GRH_LEN];
        struct grh g = {.src = {[15] = 2}, .dst = {[15] = 1}, .hop_limit = 64};
        g.len = (uint16_t)(20 + (lens[i] + 3) / 4 * 4 + 4);
        grh_build(&g, grh);
        post_recv(i, 0, GRH_LEN + lens[i]);
        p.psn = (uint32_t)(i * 997); /* PSNs have no meaning for UD */
        fix_rx(&fix, &p);
        struct completion c = fix_take(&fix);
        cr_expect(c.wr_id == i && c.status == WC_SUCCESS && c.opcode == WC_RECV);
        cr_expect_eq(c.byte_len, GRH_LEN + lens[i]);
        cr_expect_eq(c.flags, WC_GRH);
        cr_expect_eq(c.src_qp, 0xabcdef);
        cr_expect_eq(c.inline_len, lens[i] <= 24 ? GRH_LEN + lens[i] : GRH_LEN);
        const uint8_t *at = received(&c, 0);
        cr_expect_eq(memcmp(at, grh, GRH_LEN), 0, "%u bytes", lens[i]);
        cr_expect_eq(memcmp(at + GRH_LEN, payload, lens[i]), 0, "%u bytes", lens[i]);
    }
    none();
}

Test(ud, immediate_data_and_solicited_events)
{
    struct pkt p = datagram(4);
    post_recv(1, 0, 64);
    p.opcode = OP_SERVICE_UD | OP_SEND_ONLY_IMM;
    p.solicited = true;
    fix_rx(&fix, &p);
    struct completion c = fix_take(&fix);
    cr_expect_eq(c.flags, WC_GRH | WC_WITH_IMM);
    cr_expect_eq(memcmp(c.imm, "\x9\x8\x7\x6", 4), 0);
    cr_expect(c.solicited);
}

Test(ud, any_address_may_send_with_the_q_key)
{
    struct rx_meta meta = {.src_gid = {[15] = 200}, .dst_gid = {[15] = 1}};
    struct pkt p = datagram(4);
    p.pkey = PKEY_DEFAULT;
    post_recv(1, 0, 64);
    p.deth.qkey++;
    engine_rx(fix.e, &p, &meta, 0);
    none();
    cr_expect_eq(engine_counters(fix.e)->rx_bad_qkey, 1u);
    p.deth.qkey--;
    engine_rx(fix.e, &p, &meta, 0);
    cr_expect_eq(fix_take(&fix).wr_id, 1);
}

Test(ud, without_a_receive_request_or_room_in_it_a_datagram_is_dropped)
{
    struct pkt p = datagram(30);
    fix_rx(&fix, &p);
    none();
    cr_expect_eq(engine_counters(fix.e)->rx_no_recv, 1u);
    post_recv(1, 0, GRH_LEN + 29);
    fix_rx(&fix, &p);
    none();
    cr_expect_eq(engine_counters(fix.e)->rx_refused, 1u);
    p.payload_len = 29;
    fix_rx(&fix, &p);
    cr_expect_eq(fix_take(&fix).wr_id, 1, "the request is there for one that fits");
    post_recv(2, 0, 8000);
    p.payload_len = MTU + 1;
    fix_rx(&fix, &p);
    none();
    cr_expect_eq(qp_state(qp), QPS_RTS);
}

Test(ud, packets_of_other_services_are_dropped)
{
    struct pkt p = datagram(30);
    post_recv(1, 0, 100);
    p.opcode = OP_SERVICE_RC | OP_SEND_ONLY;
    fix_rx(&fix, &p);
    p.opcode = OP_SERVICE_UC | OP_SEND_ONLY;
    fix_rx(&fix, &p);
    none();
}

Test(ud, a_bad_receive_request_ends_the_qp)
{
    struct sge sge[2] = {{FIX_VA, GRH_LEN, key}, {FIX_VA, 64, key + 1}};
    struct recv_wr wr = {.wr_id = 5, .num_sge = 2};
    struct pkt p = datagram(3);
    cr_assert_eq(qp_post_recv(qp, &wr, sge), 0);
    post_recv(6, 0, 64);
    fix_rx(&fix, &p);
    struct completion c = fix_take(&fix);
    cr_expect(c.wr_id == 5 && c.status == WC_LOC_PROT_ERR);
    c = fix_take(&fix);
    cr_expect(c.wr_id == 6 && c.status == WC_WR_FLUSH_ERR);
    cr_expect_eq(qp_state(qp), QPS_ERR);
    none();
}

Test(ud, a_bad_header_area_is_detected_even_in_the_completion)
{
    struct sge sge[2] = {{FIX_VA, GRH_LEN, key + 1}, {FIX_VA, 64, key}};
    struct recv_wr wr = {.wr_id = 5, .num_sge = 2};
    struct pkt p = datagram(0);
    cr_assert_eq(qp_post_recv(qp, &wr, sge), 0);
    fix_rx(&fix, &p);
    cr_expect_eq(fix_take(&fix).status, WC_LOC_PROT_ERR);
}

static struct srq *srq_of(void *mem, uint32_t pd)
{
    struct srq_init init = {.pd = pd, .max_wr = 4, .max_sge = 1, .owner = &fix};
    struct srq *srq = NULL;
    cr_assert_eq(srq_create(fix.e, &init, mem, &srq), 0);
    return srq;
}

Test(ud, receive_requests_may_come_from_an_srq)
{
    void *mem = fix_zalloc(srq_size(4, 1));
    struct srq *srq = srq_of(mem, FIX_PD);
    struct qp_init init = {
        .type = QPT_UD, .pd = FIX_PD, .srq = srq, .caps = {4, 0, 1, 0, 0}, .send_cq = &fix, .recv_cq = &fix};
    fix.qpmem[fix.nqpmem++] = fix_zalloc(qp_size(&init));
    cr_assert_eq(qp_create(fix.e, &init, fix.qpmem[fix.nqpmem - 1], &qp), 0);
    fix_bring(qp, QPS_RTS);
    struct sge small = {FIX_VA, GRH_LEN, key}, big = {FIX_VA, 200, key};
    struct recv_wr wr = {.wr_id = 31, .num_sge = 1};
    cr_assert_eq(srq_post_recv(srq, &wr, &small), 0);
    struct pkt p = datagram(30);
    fix_rx(&fix, &p);
    none();
    cr_expect_eq(srq_posted(srq), 1u, "what is too small goes back");
    p.payload_len = 0;
    fix_rx(&fix, &p);
    struct completion c = fix_take(&fix);
    cr_expect(c.wr_id == 31 && c.srq_owner == &fix);
    wr.wr_id = 32;
    cr_assert_eq(srq_post_recv(srq, &wr, &big), 0);
    p.payload_len = 30;
    fix_rx(&fix, &p);
    cr_expect_eq(fix_take(&fix).byte_len, 70u);
    qp_destroy(qp);
    cr_expect_eq(srq_destroy(srq), 0);
    free(mem);
}

/* --- attributes -------------------------------------------------------------------------------- */

Test(ud, attributes)
{
    struct qp_attr a;
    qp_query(qp, &a);
    cr_expect_eq(a.qkey, QKEY);
    cr_expect_eq(a.path_mtu, fix.cfg.active_mtu, "the port's");
    cr_expect_eq(a.sq_psn, 200u);
    a = (struct qp_attr){.qkey = 99};
    cr_assert_eq(qp_modify(qp, &a, QPA_QKEY, NULL), 0, "it may be changed in RTS");
    struct pkt p = datagram(3);
    post_recv(1, 0, 64);
    fix_rx(&fix, &p);
    none();
    p.deth.qkey = 99;
    fix_rx(&fix, &p);
    fix_take(&fix);
    cr_expect_eq(qp_modify(qp, &a, QPA_ACCESS_FLAGS, NULL), -EINVAL, "a datagram never touches memory by key");
}
