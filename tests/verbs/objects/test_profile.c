// SPDX-License-Identifier: BSD-2-Clause
/* Profiles (pumiced --profile): what the device says of itself is what the adapter says, and what the adapter refuses is
 * refused with the same error number. VT_PROFILE names the profile of the daemons. The numbers are those of
 * docs/profiles.md. */
#include <fcntl.h>

#include "src/verbs/base/verbs_v45.h"
#include "tests/verbs/later.h"
#include "tests/verbs/vt.h"

enum {
    UC = 1 << 0,
    XRC = 1 << 1,
    SRQ = 1 << 2,
    SRQ_RESIZE = 1 << 3,
    MW = 1 << 4,
    ODP = 1 << 5,
    FLUSH = 1 << 6,
    ATOMICS = 1 << 7,
    MCAST = 1 << 8,
    DM = 1 << 9,
    TM = 1 << 10,
    QP_EX = 1 << 11,
    CQ_EX = 1 << 12,
    TIMES = 1 << 13,
    MODERATION = 1 << 14,
    REREG = 1 << 15,
    COUNTERS = 1 << 16,
    ALL = (1 << 17) - 1,
};
#define MLX5 (ALL & ~(FLUSH | SRQ_RESIZE | COUNTERS))

static const struct profile {
    const char *name;
    uint32_t vendor, part;
    int max_qp_wr, max_sge, max_rd_atomic, max_init_rd_atomic, max_cqe, ack_delay;
    uint32_t has;
    /* The largest inline size of an RC QP with one SGE, and the size that it is granted if it asks for 64 bytes; 0: at
     * least 64. */
    uint32_t inline_max, inline_64;
    int bad_type; /* errno for a QP type that it does not have */
    uint32_t max_msg;
    bool deep; /* an RC QP can have max_send_wr 16384 */
    int gids; /* entries of the GID table */
} profiles[] = {
    {"default", 0xffffff, 1, 16384, 32, 128, 128, 262144, 15, ALL, 1024, 0, 0, 1u << 31, true, 16},
    {"connectx-4", 0x2c9, 0x1013, 32768, 30, 16, 16, 262144, 16, MLX5 & ~TM, 828, 124, 0, 1u << 30, false, 255},
    {"connectx-6", 0x2c9, 0x101b, 32768, 30, 16, 16, 262144, 16, MLX5, 828, 124, 0, 1u << 30, false, 255},
    {"bluefield-3", 0x2c9, 0xa2dc, 32768, 30, 16, 16, 262144, 16, MLX5, 828, 124, 0, 1u << 30, false, 255},
    {"e810", 0x8086, 0x1592, 4063, 13, 127, 128, 262144, 0, MW | MCAST | CQ_EX | REREG, 101, 64, EOPNOTSUPP, 0x7fffffff,
     false, 32},
    {"bcm57508", 0x14e4, 0x1750, 16384, 6, 126, 126, 262144, 16, SRQ | ATOMICS | QP_EX | TIMES, 96, 64, EINVAL,
     1u << 30, true, 256},
    {"rxe", 0xffffff, 0, 32768, 32, 128, 128, 32767, 15,
     UC | SRQ | SRQ_RESIZE | MW | FLUSH | ATOMICS | MCAST | QP_EX | CQ_EX, 512, 64, EOPNOTSUPP, 0x800000, true, 1024},
};
static const struct profile *profile;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

/* Did the call make an object where the profile has it, and fail with `error` where it has not? */
static bool made(const void *object, uint32_t part, int error)
{
    return profile->has & part ? object != NULL : !object && errno == error;
}
static bool done(int rc, uint32_t part, int error)
{
    return profile->has & part ? rc == 0 : rc == error;
}

/* --- what it says -------------------------------------------------------------------------------- */

static void identity(void)
{
    const struct ibv_device_attr_ex a = vt_attr(vt_ctx);
    const struct ibv_device_attr *o = &a.orig_attr;
    const struct ibv_port_attr port = vt_port_attr(vt_ctx);
    ok(o->vendor_id == profile->vendor && o->vendor_part_id == profile->part, "vendor and part");
    ok(o->max_qp_wr == profile->max_qp_wr && o->max_sge == profile->max_sge && o->max_sge_rd == profile->max_sge,
       "max_qp_wr, max_sge and max_sge_rd");
    ok(o->max_qp_rd_atom == profile->max_rd_atomic && o->max_qp_init_rd_atom == profile->max_init_rd_atomic,
       "READs and atomics of a QP");
    ok(o->max_cqe == profile->max_cqe && o->local_ca_ack_delay == profile->ack_delay, "max_cqe and ACK delay");
    ok(port.max_msg_sz == profile->max_msg, "max_msg_sz");
    ok(port.gid_tbl_len == profile->gids, "length of the GID table");
    union ibv_gid gid, zero = {0};
    ok(ibv_query_gid(vt_ctx, 1, profile->gids - 1, &gid) == 0 && !memcmp(&gid, &zero, sizeof(gid)),
       "its last entry is empty");
    ok(ibv_query_gid(vt_ctx, 1, profile->gids, &gid) == -1, "there is none behind it");
}

/* --- the GID table ------------------------------------------------------------------------------- */

static bool has_v1(void)
{
    return profile->vendor == 0x2c9 || profile->vendor == 0x14e4;
}

static bool type_file(int index, const char *type)
{
    char path[160], text[32] = "";
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/types/%d",
             ibv_get_device_name(vt_ctx->device), index);
    FILE *f = fopen(path, "r");
    bool read = f && fgets(text, sizeof(text), f);
    if (f)
        fclose(f);
    text[strcspn(text, "\n")] = 0;
    return read && !strcmp(text, type);
}

/* The device has two addresses. */
static void gid_table(void)
{
    const int step = has_v1() ? 2 : 1;
    struct ibv_gid_entry table[1024];
    ok(ibv_query_gid_table(vt_ctx, table, 1024, 0) == 2 * step, "each address once, or of RoCE v1 and v2");
    for (int i = 0; i < 2 * step; i++) {
        const bool v1 = has_v1() && i % 2 == 0;
        union ibv_gid gid;
        ok(table[i].gid_index == (uint32_t)i &&
               table[i].gid_type == (v1 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2) && table[i].ndev_ifindex,
           v1 ? "an entry of RoCE v1" : "an entry of RoCE v2");
        ok(ibv_query_gid(vt_ctx, 1, i, &gid) == 0 && !memcmp(&gid, &table[i].gid, sizeof(gid)), "its GID");
        ok(type_file(i, v1 ? "IB/RoCE v1" : "RoCE v2"), "its file in /sys/class/infiniband");
    }
    if (has_v1())
        ok(!memcmp(&table[0].gid, &table[1].gid, 16) && !memcmp(&table[2].gid, &table[3].gid, 16) &&
               memcmp(&table[0].gid, &table[2].gid, 16) != 0,
           "two addresses, each twice");
}

/* A connection from the address of GID index `from` to that of index `to`. */
static void connect_by(int from, int to)
{
    struct vt_pair p = {0};
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    union ibv_gid gid[2];
    struct ibv_wc wc;
    const int index[2] = {from, to};
    vt_pair_make(&p, vt_ctx, NULL);
    need(ibv_query_gid(vt_ctx, 1, from, &gid[0]) == 0 && ibv_query_gid(vt_ctx, 1, to, &gid[1]) == 0);
    for (int i = 0; i < 2; i++) {
        need(vt_to_init(p.qp[i]) == 0);
        int mask = vt_rtr_attr(p.qp[i], p.qp[!i]->qp_num, &gid[!i], &a);
        a.ah_attr.grh.sgid_index = (uint8_t)index[i];
        ok(ibv_modify_qp(p.qp[i], &a, mask) == 0 && vt_to_rts(p.qp[i]) == 0, "a QP with this GID index");
        ok(ibv_query_qp(p.qp[i], &a, IBV_QP_AV, &init) == 0 && a.ah_attr.grh.sgid_index == index[i],
           "ibv_query_qp returns the index");
    }
    need(vt_recv(&p, 1, 1, 4096, 4096) == 0);
    ok(vt_send(&p, 0, 2, 0, 16, IBV_SEND_SIGNALED) == 0 && vt_poll(p.scq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS,
       "a SEND completes");
    need(vt_pair_end(&p));
}

/* A datagram leaves from the address of its handle's GID index. An address handle for the answer has an index of RoCE
 * v2. */
static void datagram_by(int from)
{
    struct vt_pair p = {.type = IBV_QPT_UD};
    struct ibv_wc wc[2];
    union ibv_gid gid;
    need(ibv_query_gid(vt_ctx, 1, from, &gid) == 0);
    struct ibv_ah_attr to = {
        .is_global = 1, .port_num = 1, .grh = {.dgid = vt_gid(vt_ctx), .sgid_index = (uint8_t)from, .hop_limit = 64}};
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    struct ibv_ah *ah = ibv_create_ah(p.pd, &to);
    need(ah && vt_recv(&p, 1, 1, 4096, 4096) == 0);
    struct ibv_sge s = vt_sge(&p, 0, 16);
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = ah, .remote_qpn = p.qp[1]->qp_num, .remote_qkey = VT_QKEY}},
                       *bad;
    need(ibv_post_send(p.qp[0], &wr, &bad) == 0);
    ok(vt_poll(p.rcq, 1, wc) == 1 && wc[0].status == IBV_WC_SUCCESS, "a datagram from this GID index arrives");
    ok(!memcmp(p.buf + 4096 + 20 + 12, gid.raw + 12, 4), "its source is the address of the index");
    ok(ibv_init_ah_from_wc(vt_ctx, 1, wc, (struct ibv_grh *)(void *)(p.buf + 4096), &to) == 0 &&
           to.grh.sgid_index == vt_gid_index(vt_ctx),
       "the answer has the index of RoCE v2");
    need(vt_poll(p.scq, 1, wc) == 1 && ibv_destroy_ah(ah) == 0 && vt_pair_end(&p));
}

static void absence(void)
{
    const struct ibv_device_attr_ex a = vt_attr(vt_ctx);
    const struct ibv_device_attr *o = &a.orig_attr;
    const struct {
        uint32_t part;
        bool there;
        const char *what;
    } parts[] = {
        {XRC, o->device_cap_flags & IBV_DEVICE_XRC, "XRC"},
        {SRQ, o->max_srq > 0, "shared receive queues"},
        {SRQ_RESIZE, o->device_cap_flags & IBV_DEVICE_SRQ_RESIZE, "SRQs that can be resized"},
        {ODP, a.odp_caps.general_caps & IBV_ODP_SUPPORT, "on-demand paging"},
        {FLUSH, a.device_cap_flags_ex >> 38 & 1, "FLUSH"},
        {FLUSH, a.device_cap_flags_ex >> 40 & 1, "ATOMIC WRITE"},
        {ATOMICS, o->atomic_cap != IBV_ATOMIC_NONE, "atomics"},
        {MCAST, o->max_mcast_grp > 0, "multicast"},
        {DM, a.max_dm_size > 0, "device memory"},
        {TM, a.tm_caps.max_num_tags > 0, "tag matching"},
        {TIMES, a.completion_timestamp_mask != 0, "timestamps"},
        {MODERATION, a.cq_mod_caps.max_cq_count > 0, "CQ moderation"},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        ok(parts[i].there == !!(profile->has & parts[i].part), parts[i].what);
}

/* --- queue pairs --------------------------------------------------------------------------------- */

static struct ibv_qp *make_qp(enum ibv_qp_type type, struct ibv_qp_cap *cap)
{
    struct ibv_qp_init_attr a = {.send_cq = cq, .recv_cq = cq, .cap = *cap, .qp_type = type};
    struct ibv_qp *qp = ibv_create_qp(pd, &a);
    if (qp)
        *cap = a.cap;
    return qp;
}

/* Tries a QP, and destroys it. The largest size is taken, and one more is refused. */
static bool takes(struct ibv_qp_cap cap)
{
    struct ibv_qp *qp = make_qp(IBV_QPT_RC, &cap);
    return qp && ibv_destroy_qp(qp) == 0;
}
static bool refuses(struct ibv_qp_cap cap)
{
    return !make_qp(IBV_QPT_RC, &cap) && errno == EINVAL;
}

static bool is_e810(void)
{
    return profile->vendor == 0x8086;
}

static void queues(void)
{
    const uint32_t sge = (uint32_t)profile->max_sge;
    /* The library of an E810 takes more than max_qp_wr, which is for requests with all SGEs. */
    const uint32_t wr = is_e810() ? 32767 : (uint32_t)profile->max_qp_wr;
    ok(takes((struct ibv_qp_cap){8, 8, sge, sge, 0}), "a QP with max_sge");
    ok(refuses((struct ibv_qp_cap){8, 8, sge + 1, 1, 0}), "one SGE more is refused (send)");
    ok(refuses((struct ibv_qp_cap){8, 8, 1, sge + 1, 0}), "one SGE more is refused (receive)");
    ok(takes((struct ibv_qp_cap){8, wr, 1, 1, 0}), "the longest receive queue");
    ok(refuses((struct ibv_qp_cap){8, wr + 1, 1, 1, 0}), "one receive request more is refused");
    ok(refuses((struct ibv_qp_cap){wr + 1, 8, 1, 1, 0}), "one send request more is refused");
    ok(takes((struct ibv_qp_cap){8, 8, 1, 1, profile->inline_max}), "the largest inline size");
    ok(refuses((struct ibv_qp_cap){8, 8, 1, 1, profile->inline_max + 1}), "one byte inline more is refused");
    ok(!ibv_create_cq(vt_ctx, profile->max_cqe + 1, NULL, NULL, 0) && errno == EINVAL,
       "one completion more is refused");
}

/* A program that works on the default device: 16,384 send requests. The send queue of a ConnectX is too small for them,
 * although max_qp_wr is 32,768: the requests of an RC QP take four of its 32,768 blocks each. */
static void deep(void)
{
    if (profile->deep)
        ok(takes((struct ibv_qp_cap){16384, 8, 1, 1, 0}), "16,384 send requests");
    else
        ok(refuses((struct ibv_qp_cap){16384, 8, 1, 1, 0}), "16,384 send requests are refused");
    if (is_e810()) {
        ok(takes((struct ibv_qp_cap){16255, 8, 1, 1, 0}) && refuses((struct ibv_qp_cap){16256, 8, 1, 1, 0}),
           "E810: 16,255 requests with one SGE, and no more");
        ok(takes((struct ibv_qp_cap){8127, 8, 3, 1, 64}) && refuses((struct ibv_qp_cap){8128, 8, 3, 1, 64}),
           "E810: 8,127 with 64 bytes inline");
        ok(takes((struct ibv_qp_cap){4063, 4095, 13, 13, 0}) && refuses((struct ibv_qp_cap){4064, 8, 13, 1, 0}) &&
               refuses((struct ibv_qp_cap){8, 4096, 1, 13, 0}),
           "E810: max_qp_wr with max_sge");
    }
    if (profile->max_qp_wr > 8192)
        ok(takes((struct ibv_qp_cap){8192, 8, 1, 1, 0}), "8,192 send requests");
    if (profile->vendor != 0x2c9)
        return;
    ok(refuses((struct ibv_qp_cap){8193, 8, 1, 1, 0}), "ConnectX: one more is refused");
    ok(refuses((struct ibv_qp_cap){8192, 8, 5, 1, 0}), "ConnectX: with five SGEs, fewer are possible");
}

/* As deep, for a QP that sends less: its requests are smaller, so there are more. */
static void deep_ex(void)
{
    struct ibv_qp_init_attr_ex a = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .cap = {16384, 8, 1, 1, 0},
                                    .qp_type = IBV_QPT_RC,
                                    .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                    .pd = pd,
                                    .send_ops_flags = IBV_QP_EX_WITH_SEND};
    struct ibv_qp *qp = ibv_create_qp_ex(vt_ctx, &a);
    if (profile->max_qp_wr >= 16384 && ok(made(qp, QP_EX, EOPNOTSUPP), "16,384 requests of a QP that only sends"))
        ok(!qp || ibv_destroy_qp(qp) == 0, "it is destroyed");
    a.cap.max_send_wr = 8;
    a.send_ops_flags = VB_EX_WITH_FLUSH;
    qp = ibv_create_qp_ex(vt_ctx, &a);
    ok(made(qp, FLUSH, EOPNOTSUPP), "ibv_wr_flush");
    if (qp)
        ibv_destroy_qp(qp);
}

static void granted_inline(void)
{
    struct ibv_qp_cap cap = {8, 8, 1, 1, 64};
    struct ibv_qp *qp = make_qp(IBV_QPT_RC, &cap);
    need(qp);
    if (profile->inline_64)
        ok(cap.max_inline_data == profile->inline_64, "the inline size that is granted");
    else
        ok(cap.max_inline_data >= 64, "at least the inline size that is asked for is granted");
    ibv_destroy_qp(qp);
}

/* Sends up to the granted inline size work; longer ones are refused. */
static void inline_sends(void)
{
    static const struct ibv_qp_cap cap = {16, 16, 1, 1, 64};
    struct vt_pair p = {0};
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;
    struct ibv_wc wc[2];
    vt_pair_make(&p, vt_ctx, &cap);
    vt_connect(&p);
    need(ibv_query_qp(p.qp[0], &a, IBV_QP_CAP, &init) == 0);
    memset(p.buf, 'x', init.cap.max_inline_data);
    need(vt_recv(&p, 1, 1, 4096, 4096) == 0);
    ok(vt_send(&p, 0, 2, 0, init.cap.max_inline_data, IBV_SEND_INLINE | IBV_SEND_SIGNALED) == 0, "an inline SEND");
    ok(vt_poll(p.scq, 1, wc) == 1 && wc[0].status == IBV_WC_SUCCESS && vt_poll(p.rcq, 1, wc) == 1 &&
           wc[0].status == IBV_WC_SUCCESS && wc[0].byte_len == init.cap.max_inline_data &&
           !memcmp(p.buf, p.buf + 4096, wc[0].byte_len),
       "it arrives");
    ok(vt_send(&p, 0, 3, 0, init.cap.max_inline_data + 1, IBV_SEND_INLINE | IBV_SEND_SIGNALED) == EINVAL,
       "one byte more is refused");
    need(vt_pair_end(&p));
}

static void types(void)
{
    struct ibv_qp_cap cap = {8, 8, 1, 1, 0};
    struct ibv_qp *qp = make_qp(IBV_QPT_UC, &cap);
    ok(made(qp, UC, profile->bad_type), "UC");
    if (qp)
        ibv_destroy_qp(qp);
    cap = (struct ibv_qp_cap){8, 8, 1, 1, 0};
    qp = make_qp(IBV_QPT_UD, &cap);
    ok(qp, "UD");
    if (qp)
        ibv_destroy_qp(qp);
    struct ibv_xrcd_init_attr x = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    struct ibv_xrcd *xrcd = ibv_open_xrcd(vt_ctx, &x);
    ok(made(xrcd, XRC, EOPNOTSUPP), "XRC domain");
    if (xrcd)
        ibv_close_xrcd(xrcd);
}

/* max_rd_atomic of the requester and of the responder. */
static void outstanding(void)
{
    struct ibv_qp_cap cap = {8, 8, 1, 1, 0};
    struct ibv_qp *qp = make_qp(IBV_QPT_RC, &cap);
    struct ibv_qp_attr a;
    need(qp && vt_to_init(qp) == 0);
    int mask = vt_rtr_attr(qp, qp->qp_num, NULL, &a);
    if (profile->max_rd_atomic < 128) {
        a.max_dest_rd_atomic = (uint8_t)(profile->max_rd_atomic + 1);
        ok(ibv_modify_qp(qp, &a, mask) == EINVAL, "max_dest_rd_atomic above max_qp_rd_atom is refused");
    }
    a.max_dest_rd_atomic = (uint8_t)profile->max_rd_atomic;
    ok(ibv_modify_qp(qp, &a, mask) == 0, "max_dest_rd_atomic as max_qp_rd_atom");
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .sq_psn = 1};
    mask =
        IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    a.max_rd_atomic = (uint8_t)(profile->max_init_rd_atomic + 1);
    ok(ibv_modify_qp(qp, &a, mask) == EINVAL, "max_rd_atomic above max_qp_init_rd_atom is refused");
    a.max_rd_atomic = (uint8_t)profile->max_init_rd_atomic;
    ok(ibv_modify_qp(qp, &a, mask) == 0, "max_rd_atomic as max_qp_init_rd_atom");
    ibv_destroy_qp(qp);
}

static void atomics(void)
{
    struct vt_pair p = {0};
    struct ibv_wc wc;
    vt_pair_make(&p, vt_ctx, NULL);
    vt_connect(&p);
    struct ibv_sge s = vt_sge(&p, 0, 8);
    struct ibv_send_wr wr = {.sg_list = &s,
                             .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.atomic = {.remote_addr = (uintptr_t)p.buf + 4096,
                                           .compare_add = 1,
                                           .rkey = p.mr->rkey}},
                       *bad = NULL;
    int rc = ibv_post_send(p.qp[0], &wr, &bad);
    ok(done(rc, ATOMICS, EINVAL) && (rc == 0 || bad == &wr), "FETCH AND ADD");
    if (rc == 0)
        ok(vt_poll(p.scq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "it completes");
    wr.opcode = IBV_WR_ATOMIC_WRITE;
    wr.wr.rdma.remote_addr = (uintptr_t)p.buf + 4096;
    wr.wr.rdma.rkey = p.mr->rkey;
    rc = ibv_post_send(p.qp[0], &wr, &bad);
    ok(done(rc, FLUSH, EINVAL), "ATOMIC WRITE");
    if (rc == 0)
        ok(vt_poll(p.scq, 1, &wc) == 1, "it completes");
    need(vt_pair_end(&p));
}

/* --- the other objects --------------------------------------------------------------------------- */

static void memory(void)
{
    static char page[4096];
    const int local = IBV_ACCESS_LOCAL_WRITE;
    struct ibv_mr *mr = ibv_reg_mr(pd, page, sizeof(page), local | IBV_ACCESS_ON_DEMAND);
    ok(made(mr, ODP, EOPNOTSUPP), "IBV_ACCESS_ON_DEMAND");
    if (mr)
        ibv_dereg_mr(mr);
    mr = ibv_reg_mr(pd, page, sizeof(page), local | (int)VB_ACCESS_FLUSH_GLOBAL);
    ok(made(mr, FLUSH, EOPNOTSUPP), "access flag for FLUSH");
    if (mr)
        ibv_dereg_mr(mr);
    need((mr = ibv_reg_mr(pd, page, sizeof(page), local)));
    int rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, local | IBV_ACCESS_REMOTE_READ);
    ok(profile->has & REREG ? rc == 0 : rc && errno == EOPNOTSUPP, "ibv_rereg_mr");
    ibv_dereg_mr(mr);
    struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
    ok(made(mw, MW, EOPNOTSUPP), "memory window");
    if (mw)
        ibv_dealloc_mw(mw);
    struct ibv_alloc_dm_attr d = {.length = 4096};
    struct ibv_dm *dm = ibv_alloc_dm(vt_ctx, &d);
    ok(made(dm, DM, EOPNOTSUPP), "device memory");
    if (dm)
        ibv_free_dm(dm);
}

static void shared(void)
{
    struct ibv_srq_init_attr a = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &a);
    ok(made(srq, SRQ, EOPNOTSUPP), "shared receive queue");
    if (srq) {
        struct ibv_srq_attr more = {.max_wr = 32};
        ok(done(ibv_modify_srq(srq, &more, IBV_SRQ_MAX_WR), SRQ_RESIZE, EINVAL), "resize of an SRQ");
        ibv_destroy_srq(srq);
    }
    if (!(profile->has & SRQ))
        return;
    const struct ibv_device_attr_ex dev = vt_attr(vt_ctx);
    a.attr = (struct ibv_srq_attr){.max_wr = 8, .max_sge = (uint32_t)dev.orig_attr.max_srq_sge + 1};
    ok(!ibv_create_srq(pd, &a) && errno == EINVAL, "max_srq_sge + 1 is refused");
    a.attr = (struct ibv_srq_attr){.max_wr = (uint32_t)dev.orig_attr.max_srq_wr + 1, .max_sge = 1};
    ok(!ibv_create_srq(pd, &a) && errno == EINVAL, "max_srq_wr + 1 is refused");
}

static void completions(void)
{
    struct ibv_cq_init_attr_ex a = {.cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS};
    struct ibv_cq_ex *ex = ibv_create_cq_ex(vt_ctx, &a);
    ok(made(ex, CQ_EX, EOPNOTSUPP), "ibv_create_cq_ex");
    if (ex) {
        struct ibv_modify_cq_attr m = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {4, 10}};
        ok(done(ibv_modify_cq(ibv_cq_ex_to_cq(ex), &m), MODERATION, EOPNOTSUPP), "moderation");
        m.moderate.cq_period = 4096;
        if (profile->has & MODERATION)
            ok(ibv_modify_cq(ibv_cq_ex_to_cq(ex), &m) == (profile->vendor == 0x2c9 ? EINVAL : 0),
               "a period of 4,096 us, more than mlx5 has");
        ibv_destroy_cq(ibv_cq_ex_to_cq(ex));
        a.wc_flags |= IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
        ex = ibv_create_cq_ex(vt_ctx, &a);
        ok(made(ex, TIMES, EOPNOTSUPP), "timestamps");
        if (ex)
            ibv_destroy_cq(ibv_cq_ex_to_cq(ex));
    }
    need_function(ibv_create_comp_cntr);
    struct vb_comp_cntr_attr_v65 c = {0};
    struct ibv_comp_cntr *counter = ibv_create_comp_cntr(vt_ctx, (void *)&c);
    ok(made(counter, COUNTERS, EOPNOTSUPP), "completion counter");
    if (counter)
        ibv_destroy_comp_cntr(counter);
}

static void multicast(void)
{
    struct ibv_qp_cap cap = {8, 8, 1, 1, 0};
    struct ibv_qp *qp = make_qp(IBV_QPT_UD, &cap);
    union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3}};
    need(qp && vt_to_init(qp) == 0);
    ok(done(ibv_attach_mcast(qp, &group, 0), MCAST, EOPNOTSUPP), "multicast");
    if (profile->has & MCAST)
        ibv_detach_mcast(qp, &group, 0);
    ibv_destroy_qp(qp);
}

int main(void)
{
    const char *name = getenv("VT_PROFILE");
    VT_OWN("profiles of pumiced");
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++)
        if (!strcmp(profiles[i].name, name ? name : "default"))
            profile = &profiles[i];
    need(profile);
    vt_ctx = vt_open();
    need((pd = ibv_alloc_pd(vt_ctx)) && (cq = ibv_create_cq(vt_ctx, 8, NULL, NULL, 0)));
    identity();
    gid_table();
    connect_by(0, 1);
    connect_by(1, 0);
    datagram_by(0);
    datagram_by(has_v1() ? 2 : 1);
    absence();
    queues();
    deep();
    deep_ex();
    granted_inline();
    inline_sends();
    types();
    outstanding();
    atomics();
    memory();
    shared();
    completions();
    multicast();
    ok(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(vt_ctx) == 0, "nothing is left");
    return vt_failed;
}
