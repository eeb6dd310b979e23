// SPDX-License-Identifier: BSD-2-Clause
/* Datagrams: the 40 bytes of GRH, Q_Keys, which datagrams are dropped, and answers to the sender that a completion
 * names. */
#include "tests/verbs/ends.h"

#define GRH 40
static struct vt_end a, b;
static struct ibv_ah *to_b;

static struct ibv_ah_attr attr_to(struct vt_end *from, const union ibv_gid *gid)
{
    return (struct ibv_ah_attr){.is_global = 1,
                                .dlid = vt_port_attr(from->ctx).lid,
                                .port_num = vt_port(),
                                .grh = {.dgid = *gid,
                                        .hop_limit = 7,
                                        .traffic_class = 0x20,
                                        .flow_label = 0xa1234,
                                        .sgid_index = vt_gid_index(from->ctx)}};
}

static struct ibv_ah *ah_to(struct vt_end *from, const union ibv_gid *gid)
{
    struct ibv_ah_attr attr = attr_to(from, gid);
    return ibv_create_ah(from->pd, &attr);
}

static int send_to(struct ibv_ah *ah, uint32_t qpn, uint32_t qkey, uint32_t at, uint32_t len, unsigned flags)
{
    struct ibv_send_wr wr = {.wr_id = 5,
                             .opcode = IBV_WR_SEND_WITH_IMM,
                             .send_flags = flags | IBV_SEND_SIGNALED,
                             .imm_data = htonl(0x01020304),
                             .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = qkey}};
    return vt_end_post(&a, &wr, at, len);
}

static void reset(struct vt_end *e)
{
    struct ibv_wc wc;
    need(vt_to_state(e->qp, IBV_QPS_RESET) == 0 && vt_to_init(e->qp) == 0 && vt_to_rtr(e->qp, 0) == 0 &&
         vt_to_rts(e->qp) == 0);
    while (ibv_poll_cq(e->rcq, 1, &wc) > 0 || ibv_poll_cq(e->scq, 1, &wc) > 0)
        ;
}

/* IBA C10-93.1.1: such a message vanishes, without an error. Pumice and NICs report it. */
static void too_long(uint32_t len)
{
    need(vt_end_recv(&b, 1, 0, 16384) == 0);
    int rc = send_to(to_b, b.qp->qp_num, VT_QKEY, 0, len, 0);
    int status = rc ? -1 : (int)vt_next(a.scq).status;
    ok(vt_quiet(b.rcq), "more than an MTU does not arrive");
    ok_pumice(rc == 0 && status == IBV_WC_LOC_LEN_ERR, "and fails locally");
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    need(ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init) == 0);
    if (attr.qp_state == IBV_QPS_SQE) {
        attr.cur_qp_state = IBV_QPS_SQE, attr.qp_state = IBV_QPS_RTS;
        ok(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE) == 0, "SQE to RTS");
    } else {
        reset(&a);
    }
    reset(&b);
}

/* Is the header area the IP header of a datagram with len bytes of payload and immediate data, as attr_to asked for it? */
static bool is_ip_header(const uint8_t *h, uint32_t len)
{
    const uint32_t udp = 8 + 12 + 8 + 4 + (len + 3) / 4 * 4 + 4; /* UDP, BTH, DETH, ImmDt, padded payload, ICRC */
    if (a.gid.raw[0] == 0)
        return h[20] == 0x45 && h[21] == 0x20 && (h[22] << 8 | h[23]) == (int)(20 + udp) && h[28] == 7 && h[29] == 17 &&
               !memcmp(h + 32, a.gid.raw + 12, 4) && !memcmp(h + 36, b.gid.raw + 12, 4);
    return h[0] == (6 << 4 | 0x20 >> 4) && h[1] == 0x0a && h[2] == 0x12 && h[3] == 0x34 &&
           (h[4] << 8 | h[5]) == (int)udp && h[6] == 17 && h[7] == 7 && !memcmp(h + 8, a.gid.raw, 16) &&
           !memcmp(h + 24, b.gid.raw, 16);
}

static void sizes(void)
{
    struct ibv_port_attr port;
    need(ibv_query_port(a.ctx, vt_port(), &port) == 0);
    const uint32_t mtu = 128u << port.active_mtu, all[] = {0, 1, 24, 25, 64, 1000, 1024, mtu};
    bool right = true, grh = true, header = true;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        uint32_t len = all[i];
        for (uint32_t k = 0; k < len; k++)
            a.buf[k] = (char)(k * 7 + len);
        memset(b.buf, 0x55, 8192);
        need(vt_end_recv(&b, i, 0, GRH + len) == 0 && send_to(to_b, b.qp->qp_num, VT_QKEY, 0, len, 0) == 0);
        struct ibv_wc s = vt_next(a.scq), r = vt_next(b.rcq);
        right &= s.status == IBV_WC_SUCCESS && s.wr_id == 5 && r.status == IBV_WC_SUCCESS && r.wr_id == i &&
                 r.opcode == IBV_WC_RECV && r.byte_len == GRH + len && r.imm_data == htonl(0x01020304) &&
                 (r.wc_flags & IBV_WC_WITH_IMM) && !memcmp(b.buf + GRH, a.buf, len) && b.buf[GRH + len] == 0x55;
        grh &= (r.wc_flags & IBV_WC_GRH) && r.src_qp == a.qp->qp_num && r.qp_num == b.qp->qp_num;
        header &= r.slid == 0 && r.sl == (0x8 | (a.gid.raw[0] ? 1 : 2)) && is_ip_header((uint8_t *)b.buf, len);
    }
    ok(right, "messages of 0 bytes to one MTU arrive, behind 40 bytes");
    ok(grh, "the completion says so, and names the sender's QP");
    ok_pumice(
        header,
        "they are the IP header with the sender's traffic class, hop limit and flow label, as the completion says, "
        "too");
    too_long(mtu + 1);
}

static void dropped(void)
{
    need(vt_end_recv(&b, 1, 0, 1024) == 0);
    need(send_to(to_b, b.qp->qp_num, VT_QKEY + 1, 0, 8, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_quiet(b.rcq), "another Q_Key: sent, and dropped silently");
    need(send_to(to_b, b.qp->qp_num, 0x80000000u, 0, 8, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).status == IBV_WC_SUCCESS,
       "a Q_Key with its top bit set stands for the sender's own");
    reset(&b);
    need(send_to(to_b, b.qp->qp_num, VT_QKEY, 0, 8, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_quiet(b.rcq), "no receive request: dropped");
    need(send_to(to_b, 0xfffff0, VT_QKEY, 0, 8, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS, "no such QP: sent");
    need(vt_end_recv(&b, 2, 0, GRH + 7) == 0 && send_to(to_b, b.qp->qp_num, VT_QKEY, 0, 8, 0) == 0);
    need(vt_next(a.scq).status == IBV_WC_SUCCESS);
    struct ibv_wc wc;
    int n = 0;
    double end = vt_now() + 0.2;
    while (n == 0 && vt_now() < end)
        n = ibv_poll_cq(b.rcq, 1, &wc);
    /* The specification lets a responder drop it, as Pumice does, or complete it with an error. */
    ok(vt_is_pumice() ? n == 0 : n == 0 || wc.status == IBV_WC_LOC_LEN_ERR,
       "too small a buffer: dropped, or a length error");
    reset(&b);
}

/* The network has lost it, for all that the sender knows. */
static void unreachable(void)
{
    if (!vt_own("an address handle to an address without a route"))
        return;
    union ibv_gid nowhere = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2, [15] = 1}};
    if (a.gid.raw[0])
        nowhere = (union ibv_gid){.raw = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}};
    struct ibv_ah *ah = ah_to(&a, &nowhere);
    need(ah && vt_end_recv(&b, 3, 0, 1024) == 0 && send_to(ah, b.qp->qp_num, VT_QKEY, 0, 8, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS, "to an address without a route: sent");
    need(send_to(to_b, b.qp->qp_num, VT_QKEY, 0, 8, 0) == 0);
    ok(vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).wr_id == 3, "and the next one arrives elsewhere");
    need(ibv_destroy_ah(ah) == 0);
}

static void refused(void)
{
    /* Other libraries take the address handle of every request of a UD QP, without a look at the opcode. */
    struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma = {.rkey = 1}};
    ok_pumice(vt_end_post(&a, &wr, 0, 8) == EINVAL, "an RDMA WRITE: EINVAL");
    wr.opcode = IBV_WR_SEND;
    wr.wr.ud.ah = NULL;
    ok_pumice(vt_end_post(&a, &wr, 0, 8) == EINVAL, "a SEND without address handle: EINVAL");
    union ibv_gid gid = {.raw = {0xfd, 1}};
    errno = 0;
    if (a.gid.raw[0])
        gid = (union ibv_gid){.raw = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
    ok_pumice(!ah_to(&a, &gid) && errno == EINVAL, "an address of another family than the source: EINVAL");
}

/* If a program asks for explanations, one names the GID, index and address that don't fit together. */
static void explained(void)
{
    if (!vt_own("explanations of the client library") || a.gid.raw[0]) /* the texts are those of IPv4 */
        return;
    char said[512] = "";
    union ibv_gid gid = {.raw = {0xfd, 1}};
    struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = a.gid, .sgid_index = 99}};
    struct ibv_ah_attr other = attr_to(&a, &gid);
    int pipes[2], saved = dup(2);
    need(pipe(pipes) == 0 && dup2(pipes[1], 2) == 2);
    setenv("PUMICE_VERBOSE", "1", 1);
    bool none = !ibv_create_ah(a.pd, &other) && !ibv_create_ah(a.pd, &attr);
    unsetenv("PUMICE_VERBOSE");
    dup2(saved, 2);
    close(pipes[1]);
    close(saved);
    need(read(pipes[0], said, sizeof(said) - 1) > 0);
    close(pipes[0]);
    ok(none && strstr(said, "GID index 0 (::ffff:") && strstr(said, "to GID fd01::") && strstr(said, "GID index 99"),
       "with PUMICE_VERBOSE the library says why there is no address handle");
}

/* The receiver answers to whom the completion and the 40 bytes name. */
static void answers(void)
{
    need(vt_end_recv(&b, 1, 0, 1024) == 0 && vt_end_recv(&a, 2, 4096, 1024) == 0);
    strcpy(a.buf, "question");
    need(send_to(to_b, b.qp->qp_num, VT_QKEY, 0, 9, IBV_SEND_INLINE) == 0);
    need(vt_next(a.scq).status == IBV_WC_SUCCESS);
    struct ibv_wc wc = vt_next(b.rcq);
    struct ibv_ah_attr attr;
    need(wc.status == IBV_WC_SUCCESS);
    ok(ibv_init_ah_from_wc(b.ctx, vt_port(), &wc, (struct ibv_grh *)(void *)b.buf, &attr) == 0 && attr.is_global &&
           !memcmp(&attr.grh.dgid, &a.gid, 16) && attr.grh.sgid_index == vt_gid_index(b.ctx) &&
           attr.port_num == vt_port(),
       "ibv_init_ah_from_wc finds the sender and our own GID");
    struct ibv_ah *back = ibv_create_ah_from_wc(b.pd, &wc, (struct ibv_grh *)(void *)b.buf, vt_port());
    need(back);
    strcpy(b.buf + 2048, "answer");
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = back, .remote_qpn = wc.src_qp, .remote_qkey = VT_QKEY}};
    need(vt_end_post(&b, &wr, 2048, 7) == 0 && vt_next(b.scq).status == IBV_WC_SUCCESS);
    wc = vt_next(a.rcq);
    ok(wc.status == IBV_WC_SUCCESS && wc.byte_len == GRH + 7 && !strcmp(a.buf + 4096 + GRH, "answer"),
       "the answer arrives");
    ok(ibv_destroy_ah(back) == 0, "its handle goes");
    if (!vt_own("headers that do not come from the device"))
        return;
    memset(b.buf, 0, GRH);
    ok(ibv_init_ah_from_wc(b.ctx, 1, &wc, (struct ibv_grh *)(void *)b.buf, &attr) == -1 &&
           !ibv_create_ah_from_wc(b.pd, &wc, (struct ibv_grh *)(void *)b.buf, 1),
       "bytes that are no header give no handle");
    struct ibv_grh v6 = {.version_tclass_flow = htonl(6u << 28 | 0x12u << 20 | 0x34567), .hop_limit = 9};
    v6.sgid.raw[0] = 0xfd, v6.sgid.raw[15] = 1;
    memcpy(&v6.dgid, &b.gid, 16); /* an IPv6 header with a mapped address: enough for the search of the own GID */
    wc.wc_flags = IBV_WC_GRH;
    ok(ibv_init_ah_from_wc(b.ctx, 1, &wc, &v6, &attr) == 0 && attr.grh.traffic_class == 0x12 &&
           attr.grh.flow_label == 0x34567 && attr.grh.hop_limit == 9 && !memcmp(&attr.grh.dgid, &v6.sgid, 16),
       "an IPv6 header is read too");
}

static void extended(void)
{
    struct vt_end x;
    vt_end_open(&x, a.ctx);
    x.qp = vt_end_qp(&x, IBV_QPT_UD, NULL, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
    vt_needs_call(x.qp, "ibv_create_qp_ex of a UD QP with send_ops_flags");
    need(x.qp);
    need(vt_to_init(x.qp) == 0 && vt_to_rtr(x.qp, 0) == 0 && vt_to_rts(x.qp) == 0);
    struct ibv_ah *ah = ah_to(&x, &b.gid);
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(x.qp);
    need(ah && vt_end_recv(&b, 11, 0, 512) == 0 && vt_end_recv(&b, 12, 512, 512) == 0);
    strcpy(x.buf, "one");
    ibv_wr_start(q);
    q->wr_id = 1, q->wr_flags = 0;
    ibv_wr_send(q);
    ibv_wr_set_sge(q, x.mr->lkey, (uintptr_t)x.buf, 4); /* the setters come in any order */
    ibv_wr_set_ud_addr(q, ah, b.qp->qp_num, VT_QKEY);
    q->wr_id = 2, q->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_imm(q, htonl(9));
    ibv_wr_set_ud_addr(q, ah, b.qp->qp_num, VT_QKEY);
    ibv_wr_set_inline_data(q, "two", 4);
    ok(ibv_wr_complete(q) == 0, "two datagrams by ibv_wr_*");
    struct ibv_wc wc[2], sent = vt_next(x.scq);
    if (!ok(sent.wr_id == 2 && sent.status == IBV_WC_SUCCESS, "the second completes"))
        printf("#   %s\n", ibv_wc_status_str(sent.status));
    ok(vt_poll(b.rcq, 2, wc) == 2 && !strcmp(b.buf + GRH, "one") && !strcmp(b.buf + 512 + GRH, "two"), "both arrive");
    ok(wc[1].imm_data == htonl(9), "the second with its immediate data");
    if (vt_own("an RDMA WRITE by ibv_wr_*: EINVAL")) { /* other libraries have no function for it */
        ibv_wr_start(q);
        ibv_wr_rdma_write(q, 1, 2);
        ibv_wr_set_sge(q, x.mr->lkey, (uintptr_t)x.buf, 4);
        ok(ibv_wr_complete(q) == EINVAL, "an RDMA WRITE: EINVAL");
    }
    ibv_destroy_ah(ah);
    ok(vt_end_close(&x), "that QP is closed");
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_needs(ca, VT_UNRELIABLE);
    vt_needs(cb, VT_UNRELIABLE);
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    need((a.qp = vt_end_qp(&a, IBV_QPT_UD, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_UD, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    need((to_b = ah_to(&a, &b.gid)));
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    ok(ibv_query_qp(a.qp, &attr, IBV_QP_QKEY, &init) == 0 && attr.qkey == VT_QKEY && init.qp_type == IBV_QPT_UD,
       "the QP tells its Q_Key");
    sizes();
    dropped();
    unreachable();
    refused();
    explained();
    answers();
    extended();
    ok(ibv_destroy_ah(to_b) == 0 && vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    return vt_both(test);
}
