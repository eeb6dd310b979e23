// SPDX-License-Identifier: BSD-2-Clause
/* The GID table: all functions that read it agree, empty entries are refused, and the index in an address vector chooses
 * the source address of packets. */
#include "tests/verbs/ends.h"

#define GRH 40
#define ENTRIES 64
static struct vt_end a, b;
static struct ibv_gid_entry table[ENTRIES];
static ssize_t entries;

static void agreement(void)
{
    static const union ibv_gid zero;
    struct ibv_gid_entry one;
    union ibv_gid gid;
    bool same = true, empty = true;
    const struct ibv_port_attr port = vt_port_attr(a.ctx);
    entries = ibv_query_gid_table(a.ctx, table, ENTRIES, 0);
    ok(entries >= 1 && entries <= port.gid_tbl_len, "the table has as many entries as fit, and at least one");
    for (ssize_t i = 0, next = 0; i < port.gid_tbl_len; i++) {
        need(ibv_query_gid(a.ctx, vt_port(), (int)i, &gid) == 0);
        int rc = ibv_query_gid_ex(a.ctx, vt_port(), (uint32_t)i, &one, 0);
        if (rc == 0 && next < entries)
            same &= !memcmp(&one, &table[next], sizeof(one)) && !memcmp(&gid, &one.gid, sizeof(gid)) &&
                    one.gid_index == i && one.ndev_ifindex != 0;
        else
            empty &= rc == ENODATA && !memcmp(&gid, &zero, sizeof(gid));
        next += rc == 0;
    }
    ok(same, "ibv_query_gid, ibv_query_gid_ex and ibv_query_gid_table agree");
    ok(empty, "an empty entry reads as zeros, and as ENODATA");
    ok_pumice(entries >= 2 && entries < port.gid_tbl_len, "a host of a lab has two GIDs, and empty entries");
}

static struct ibv_ah *ah_from(uint8_t index, const union ibv_gid *to)
{
    struct ibv_ah_attr attr = {
        .is_global = 1, .port_num = vt_port(), .grh = {.dgid = *to, .sgid_index = index, .hop_limit = 64}};
    return ibv_create_ah(a.pd, &attr);
}

static void empty_entries(void)
{
    const struct ibv_port_attr port = vt_port_attr(a.ctx);
    uint8_t last = (uint8_t)(port.gid_tbl_len - 1);
    struct ibv_gid_entry one;
    if (ibv_query_gid_ex(a.ctx, vt_port(), last, &one, 0) == 0)
        return; /* the table is full */
    ok(vt_none(ah_from(last, &b.gid), EINVAL), "no address handle from an empty entry");
    struct ibv_qp_attr attr;
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && vt_to_init(a.qp) == 0);
    int mask = vt_rtr_attr(a.qp, 17, &b.gid, &attr);
    attr.ah_attr.grh.sgid_index = last;
    ok(ibv_modify_qp(a.qp, &attr, mask) != 0, "no connection from an empty entry");
    need(ibv_destroy_qp(a.qp) == 0);
}

static int to_rtr_from(struct ibv_qp *qp, uint32_t peer, uint8_t index, const union ibv_gid *gid)
{
    struct ibv_qp_attr attr;
    int mask = vt_rtr_attr(qp, peer, gid, &attr);
    attr.ah_attr.grh.sgid_index = index;
    return ibv_modify_qp(qp, &attr, mask);
}

/* A message over a connection whose ends both use this index. */
static bool connected(uint8_t index, const union ibv_gid *at_a, const union ibv_gid *at_b)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    need((a.qp = vt_end_qp(&a, IBV_QPT_RC, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_RC, NULL, 0)));
    need(vt_to_init(a.qp) == 0 && vt_to_init(b.qp) == 0);
    need(to_rtr_from(a.qp, b.qp->qp_num, index, at_b) == 0 && to_rtr_from(b.qp, a.qp->qp_num, index, at_a) == 0);
    need(vt_to_rts(a.qp) == 0 && vt_to_rts(b.qp) == 0 && vt_end_recv(&b, 1, 0, 64) == 0);
    strcpy(a.buf, "hello");
    need(vt_end_post(&a, &wr, 0, 6) == 0);
    bool right = vt_next(a.scq).status == IBV_WC_SUCCESS && vt_next(b.rcq).status == IBV_WC_SUCCESS &&
                 !strcmp(b.buf, "hello") && ibv_query_qp(a.qp, &attr, IBV_QP_AV, &init) == 0 &&
                 attr.ah_attr.grh.sgid_index == index;
    need(ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    return right;
}

static bool is_v4(const union ibv_gid *g)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return !memcmp(g->raw, prefix, sizeof(prefix));
}

/* A datagram from this index. Its header, its completion and a reply's address vector name the address. */
static bool datagram(uint8_t index, const union ibv_gid *at_a, const union ibv_gid *at_b)
{
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_ah_attr back;
    need((a.qp = vt_end_qp(&a, IBV_QPT_UD, NULL, 0)) && (b.qp = vt_end_qp(&b, IBV_QPT_UD, NULL, 0)));
    vt_link(a.qp, &a.gid, b.qp, &b.gid);
    wr.wr.ud = (typeof(wr.wr.ud)){.ah = ah_from(index, at_b), .remote_qpn = b.qp->qp_num, .remote_qkey = VT_QKEY};
    need(wr.wr.ud.ah && vt_end_recv(&b, 1, 0, 256) == 0 && vt_end_post(&a, &wr, 0, 6) == 0);
    need(vt_next(a.scq).status == IBV_WC_SUCCESS);
    struct ibv_wc wc = vt_next(b.rcq);
    bool v4 = is_v4(at_a);
    const char *src = v4 ? b.buf + 32 : b.buf + 8;
    bool right = wc.status == IBV_WC_SUCCESS && !memcmp(src, v4 ? at_a->raw + 12 : at_a->raw, v4 ? 4 : 16) &&
                 ibv_init_ah_from_wc(b.ctx, vt_port(), &wc, (struct ibv_grh *)(void *)b.buf, &back) == 0 &&
                 back.grh.sgid_index == index && !memcmp(&back.grh.dgid, at_a, sizeof(*at_a)) &&
                 (!vt_is_pumice() || wc.sl == (v4 ? 0x8 | 2 : 0x8 | 1));
    need(ibv_destroy_ah(wr.wr.ud.ah) == 0 && ibv_destroy_qp(a.qp) == 0 && ibv_destroy_qp(b.qp) == 0);
    return right;
}

static void traffic(void)
{
    bool reliable = true, unreliable = true;
    unsigned tried = 0;
    for (ssize_t i = 0; i < entries; i++) {
        struct ibv_gid_entry peer;
        uint8_t index = (uint8_t)table[i].gid_index;
        if (table[i].gid_type != IBV_GID_TYPE_ROCE_V2 || ibv_query_gid_ex(b.ctx, vt_port(), index, &peer, 0) != 0 ||
            is_v4(&peer.gid) != is_v4(&table[i].gid))
            continue;
        reliable &= connected(index, &table[i].gid, &peer.gid);
        unreliable &= datagram(index, &table[i].gid, &peer.gid);
        tried++;
    }
    ok(reliable, "connections use the address of their index");
    ok(unreliable, "datagrams come from the address of their index");
    ok_pumice(tried >= 2, "more than one was tried");
}

static void test(struct ibv_context *ca, struct ibv_context *cb)
{
    vt_needs(ca, VT_CONNECT);
    vt_needs(ca, VT_UNRELIABLE);
    vt_end_open(&a, ca);
    vt_end_open(&b, cb);
    agreement();
    empty_entries();
    traffic();
    a.qp = b.qp = NULL;
    ok(vt_end_close(&a) && vt_end_close(&b), "all is closed");
}

int main(void)
{
    return vt_both(test);
}
