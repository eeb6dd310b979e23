// SPDX-License-Identifier: BSD-2-Clause
/* Creating, querying and destroying objects: which requests the device refuses and with which error, and which it
 * grants. Calls for features that the device does not have fail with EOPNOTSUPP. */
#include <dlfcn.h>

#include "tests/verbs/vt.h"

static struct ibv_context *ctx;

static void device(void)
{
    struct ibv_device_attr a;
    struct ibv_device_attr_ex ax;
    struct ibv_port_attr port, bad;
    struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    need(ibv_query_device(ctx, &a) == 0 && ibv_query_device_ex(ctx, NULL, &ax) == 0);
    ok(a.node_guid != 0 && a.node_guid == ibv_get_device_guid(ctx->device) && a.phys_port_cnt == 1 && a.max_pkeys == 1,
       "device attributes: GUID, one port, one P_Key");
    ok(!memcmp(&a, &ax.orig_attr, sizeof(a)) && ax.completion_timestamp_mask == UINT64_MAX &&
           ax.hca_core_clock == 1000000,
       "extended attributes agree; timestamps are in ns");
    ok(ibv_query_port(ctx, 1, &port) == 0 && port.state == IBV_PORT_ACTIVE &&
           port.link_layer == IBV_LINK_LAYER_ETHERNET && port.pkey_tbl_len == 1 && port.gid_tbl_len >= 1,
       "port 1 is an active Ethernet port");
    ok(ibv_query_port(ctx, 2, &bad) == EINVAL && ibv_query_port(ctx, 0, &bad) == EINVAL, "ports 0 and 2: EINVAL");
    struct {
        char port[sizeof(struct ibv_port_attr)];
        char guard[16];
    } old;
    memset(&old, 0x5a, sizeof(old));
    /* The functions that programs call which were built with older headers. */
    int (*query_port)(struct ibv_context *, uint8_t, void *) =
        (int (*)(struct ibv_context *, uint8_t, void *))dlsym(RTLD_DEFAULT, "ibv_query_port");
    size_t old_size = offsetof(struct ibv_port_attr, port_cap_flags2);
    ok(query_port && query_port(ctx, 1, &old) == 0 && !memcmp(&old, &port, old_size) && old.port[old_size] == 0x5a,
       "the old port query fills the old structure and no more");
    ok(ibv_query_rt_values_ex(ctx, &v) == 0 && v.comp_mask == IBV_VALUES_MASK_RAW_CLOCK && v.raw_clock.tv_sec > 0,
       "raw clock");
}

static void tables(void)
{
    union ibv_gid gid, zero = {{0}};
    struct ibv_gid_entry e, all[256];
    struct ibv_port_attr port;
    __be16 pkey;
    need(ibv_query_port(ctx, 1, &port) == 0);
    ok(ibv_query_gid(ctx, 1, 0, &gid) == 0 && memcmp(&gid, &zero, 16), "GID 0");
    ok(ibv_query_gid(ctx, 1, port.gid_tbl_len, &gid) == -1 && ibv_query_gid(ctx, 2, 0, &gid) == -1 &&
           ibv_query_gid(ctx, 1, -1, &gid) == -1,
       "GIDs beyond the table or of no port: -1");
    ok(ibv_query_gid_ex(ctx, 1, 0, &e, 0) == 0 && e.gid_type == IBV_GID_TYPE_ROCE_V2 && e.port_num == 1 &&
           e.ndev_ifindex != 0,
       "GID 0 is RoCE v2 and has an interface");
    ok(ibv_query_gid_ex(ctx, 1, (uint32_t)port.gid_tbl_len, &e, 0) == EINVAL &&
           ibv_query_gid_ex(ctx, 1, 0, &e, 1) == EOPNOTSUPP,
       "GID queries beyond the table, with flags");
    ssize_t n = ibv_query_gid_table(ctx, all, 256, 0);
    ok(n >= 1 && ibv_query_gid_table(ctx, all, (size_t)n - 1, 0) == -EINVAL, "GID table; too small a buffer: EINVAL");
    if (n < port.gid_tbl_len) {
        int empty = 0;
        while (empty < n && all[empty].gid_index == (uint32_t)empty)
            empty++;
        ok(ibv_query_gid_ex(ctx, 1, (uint32_t)empty, &e, 0) == ENODATA && ibv_query_gid(ctx, 1, empty, &gid) == 0 &&
               !memcmp(&gid, &zero, 16),
           "an empty entry: ENODATA, and zeros for the old query");
    }
    ok(ibv_query_pkey(ctx, 1, 0, &pkey) == 0 && pkey == htons(0xffff) && ibv_query_pkey(ctx, 1, 1, &pkey) == -1 &&
           ibv_get_pkey_index(ctx, 1, htons(0xffff)) == 0 && ibv_get_pkey_index(ctx, 1, htons(0x7fff)) < 0,
       "the P_Key table has the default P_Key");
}

static void regions(void)
{
    static char buf[8192];
    struct ibv_pd *pd = ibv_alloc_pd(ctx), *other = ibv_alloc_pd(ctx);
    need(pd && other);
    errno = 0;
    ok(!ibv_reg_mr(pd, buf, 10, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL,
       "REMOTE_WRITE without LOCAL_WRITE: EINVAL");
    ok(!ibv_reg_mr(pd, buf, 10, IBV_ACCESS_REMOTE_ATOMIC) && errno == EINVAL,
       "REMOTE_ATOMIC without LOCAL_WRITE: EINVAL");
    struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
    ok(mr && mr->addr == buf && mr->length == sizeof(buf) && mr->pd == pd && mr->context == ctx, "a region");
    ok(ibv_dealloc_pd(pd) == EBUSY, "its PD is busy");
    ok(ibv_rereg_mr(mr, 8, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT, "rereg with unknown flags: ERR_INPUT");
    ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 10, 0) == IBV_REREG_MR_ERR_INPUT &&
           ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf, 0, 0) == IBV_REREG_MR_ERR_INPUT,
       "rereg to nothing: ERR_INPUT");
    ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_INPUT,
       "rereg to no PD: ERR_INPUT");
    ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, IBV_ACCESS_LOCAL_WRITE) == IBV_REREG_MR_ERR_INPUT,
       "rereg with access but without its flag: ERR_INPUT");
    ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE) == IBV_REREG_MR_ERR_INPUT,
       "rereg to forbidden access: ERR_INPUT");
    uint32_t key = mr->lkey;
    ok(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION, other, buf + 64, 64, 0) == 0 &&
           mr->pd == other && mr->addr == buf + 64 && mr->length == 64 && mr->lkey == key,
       "rereg of PD and translation");
    ok(ibv_dealloc_pd(pd) == 0 && ibv_dealloc_pd(other) == EBUSY, "frees the old PD and holds the new one");
    ok(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(other) == 0, "dereg");

    struct ibv_td_init_attr ta = {0};
    struct ibv_td *td = ibv_alloc_td(ctx, &ta);
    struct ibv_parent_domain_init_attr pa = {.pd = ibv_alloc_pd(ctx), .td = td};
    struct ibv_pd *parent = ibv_alloc_parent_domain(ctx, &pa);
    ok(td && parent && (mr = ibv_reg_mr(parent, buf, 10, 0)), "a parent domain registers memory");
    ok(ibv_dealloc_pd(pa.pd) == EBUSY, "and holds its PD");
    ok(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(parent) == 0 && ibv_dealloc_td(td) == 0 && ibv_dealloc_pd(pa.pd) == 0,
       "until it goes");
}

static void queue_pairs(void)
{
    struct ibv_device_attr a;
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, NULL, 0);
    need(pd && cq && ibv_query_device(ctx, &a) == 0);
    struct ibv_qp_init_attr good = {
        .qp_context = &a, .send_cq = cq, .recv_cq = cq, .cap = {3, 5, 1, 2, 7}, .qp_type = IBV_QPT_RC};
    struct ibv_qp_init_attr t = good;
    t.recv_cq = NULL;
    ok(!ibv_create_qp(pd, &t) && errno == EINVAL, "a QP without receive CQ: EINVAL");
    t = good, t.cap.max_send_wr = (uint32_t)a.max_qp_wr + 1;
    ok(!ibv_create_qp(pd, &t) && errno == EINVAL, "max_send_wr beyond the device's: EINVAL");
    t = good, t.cap.max_recv_sge = (uint32_t)a.max_sge + 1;
    ok(!ibv_create_qp(pd, &t) && errno == EINVAL, "max_recv_sge beyond the device's: EINVAL");
    uint32_t inline_max = 1;
    struct ibv_qp *qp;
    for (;; inline_max *= 2) { /* as libfabric finds out */
        t = good, t.cap.max_inline_data = inline_max;
        qp = ibv_create_qp(pd, &t);
        if (!qp)
            break;
        need(t.cap.max_inline_data >= inline_max && inline_max < 1u << 30);
        ibv_destroy_qp(qp);
    }
    ok(errno == EINVAL && inline_max > 64, "inline data beyond the limit: EINVAL");
    /* UCX asks for 64, and relies on its connection requests, which are a little longer, being copied at once. */
    t = good, t.qp_type = IBV_QPT_UD, t.cap.max_inline_data = 64;
    qp = ibv_create_qp(pd, &t);
    ok(qp && t.cap.max_inline_data >= 128, "a UD QP takes 128 bytes inline, if it takes any");
    ibv_destroy_qp(qp);
    t = good, t.cap.max_inline_data = 0;
    qp = ibv_create_qp(pd, &t);
    ok(qp && t.cap.max_inline_data == 0, "a QP that asks for no inline data takes none");
    ibv_destroy_qp(qp);
    struct ibv_qp_init_attr_ex x = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .pd = pd,
                                    .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                    .send_ops_flags = IBV_QP_EX_WITH_TSO};
    ok(!ibv_create_qp_ex(ctx, &x) && errno == EOPNOTSUPP, "send_ops_flags TSO: EOPNOTSUPP");
    t = good, t.qp_type = IBV_QPT_RAW_PACKET;
    ok(!ibv_create_qp(pd, &t) && errno == EOPNOTSUPP, "raw packet QP: EOPNOTSUPP");

    t = good;
    qp = ibv_create_qp(pd, &t);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    ok(qp && qp->qp_num > 1 && qp->state == IBV_QPS_RESET && qp->qp_context == &a && t.cap.max_send_wr >= 3 &&
           t.cap.max_recv_wr >= 5 && t.cap.max_send_sge >= 1 && t.cap.max_recv_sge >= 2 && t.cap.max_inline_data >= 7,
       "a QP gets at least what it asked for");
    ok(!ibv_qp_to_qp_ex(qp), "a plain QP is not an extended one");
    ok(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_RESET && init.send_cq == cq &&
           init.qp_context == &a && init.qp_type == IBV_QPT_RC && init.sq_sig_all == 0 &&
           !memcmp(&init.cap, &t.cap, sizeof(t.cap)),
       "and says so when asked");
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR};
    ok(ibv_modify_qp(qp, &rtr, IBV_QP_STATE) == EINVAL && qp->state == IBV_QPS_RESET,
       "RESET to RTR: EINVAL, nothing changed");
    need(vt_to_init(qp) == 0);
    struct ibv_qp_attr lid = {.qp_state = IBV_QPS_RTR, .ah_attr = {.dlid = 1, .port_num = 1}};
    ok(ibv_modify_qp(qp, &lid, IBV_QP_STATE | IBV_QP_AV) == EINVAL && qp->state == IBV_QPS_INIT,
       "an address without GRH: EINVAL");
    ok(ibv_destroy_cq(cq) == EBUSY, "a CQ with a QP is busy");
    ok(ibv_dealloc_pd(pd) == EBUSY, "so is the PD");
    ok(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0, "until the QP goes");
}

static void address_handles(void)
{
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_ah_attr a = {.is_global = 1, .port_num = 1};
    need(ibv_query_gid(ctx, 1, 0, &a.grh.dgid) == 0);
    struct ibv_ah *ah = ibv_create_ah(pd, &a);
    ok(ah && ah->pd == pd && ibv_destroy_ah(ah) == 0, "an address handle");
    a.grh.sgid_index = 250;
    ok(!ibv_create_ah(pd, &a) && errno == EINVAL, "of a source GID that is not there: EINVAL");
    a.grh.sgid_index = 0, a.is_global = 0;
    ok(!ibv_create_ah(pd, &a) && errno == EINVAL, "without GRH: EINVAL");
    ibv_dealloc_pd(pd);
}

static void not_offered(void)
{
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_counters_init_attr ci = {0};
    struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ};
    ok(!ibv_alloc_null_mr(pd) && errno == EOPNOTSUPP, "null region: EOPNOTSUPP");
    ok(!ibv_create_counters(ctx, &ci) && errno == EOPNOTSUPP, "counters: EOPNOTSUPP");
    ok(!ibv_create_wq(ctx, &wq) && errno == EOPNOTSUPP, "work queues: EOPNOTSUPP");
    ok(!ibv_reg_dmabuf_mr(pd, 0, 64, 0, 0, 0) && errno == EOPNOTSUPP, "dma-buf: EOPNOTSUPP");
    ok(!ibv_import_device(0) && errno == EOPNOTSUPP && !ibv_import_pd(ctx, 1) && errno == EOPNOTSUPP,
       "import: EOPNOTSUPP");
    ok(ibv_fork_init() == 0 && ibv_is_fork_initialized() == IBV_FORK_UNNEEDED, "fork needs no preparation");
    ibv_dealloc_pd(pd);
}

int main(void)
{
    ctx = vt_open();
    device();
    tables();
    regions();
    queue_pairs();
    address_handles();
    not_offered();
    ok(ibv_close_device(ctx) == 0, "close");
    return vt_failed;
}
