// SPDX-License-Identifier: BSD-2-Clause
/* Creating, querying and destroying objects: which requests the device refuses and with which error, and which it
 * grants. Calls for features that the device does not have fail with EOPNOTSUPP. */
#include <dlfcn.h>

#include "tests/verbs/vt.h"

static void device(void)
{
    struct ibv_device_attr a;
    struct ibv_device_attr_ex ax;
    struct ibv_port_attr port, bad;
    struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    need(ibv_query_device(vt_ctx, &a) == 0 && ibv_query_device_ex(vt_ctx, NULL, &ax) == 0);
    ok(a.node_guid != 0 && a.node_guid == ibv_get_device_guid(vt_ctx->device) && a.phys_port_cnt >= vt_port() &&
           a.max_pkeys >= 1,
       "device attributes: GUID, ports, P_Keys");
    ok_pumice(a.phys_port_cnt == 1 && a.max_pkeys == 1, "one port, one P_Key");
    ok(!memcmp(&a, &ax.orig_attr, sizeof(a)), "extended attributes agree");
    ok_pumice(ax.completion_timestamp_mask == UINT64_MAX && ax.hca_core_clock == 1000000, "timestamps are in ns");
    ok(ibv_query_port(vt_ctx, vt_port(), &port) == 0 && port.state == IBV_PORT_ACTIVE && port.pkey_tbl_len >= 1 &&
           port.gid_tbl_len >= 1,
       "the port is active");
    ok_pumice(port.link_layer == IBV_LINK_LAYER_ETHERNET && port.pkey_tbl_len == 1, "an Ethernet port");
    ok(vt_fails(ibv_query_port(vt_ctx, (uint8_t)(a.phys_port_cnt + 1), &bad), EINVAL) &&
           vt_fails(ibv_query_port(vt_ctx, 0, &bad), EINVAL),
       "port 0 and the port after the last: EINVAL");
    struct {
        char port[sizeof(struct ibv_port_attr)];
        char guard[16];
    } old;
    memset(&old, 0x5a, sizeof(old));
    /* The functions that programs call which were built with older headers. */
    int (*query_port)(struct ibv_context *, uint8_t, void *) =
        (int (*)(struct ibv_context *, uint8_t, void *))dlsym(RTLD_DEFAULT, "ibv_query_port");
    size_t old_size = offsetof(struct ibv_port_attr, port_cap_flags2);
    ok(query_port && query_port(vt_ctx, vt_port(), &old) == 0 && !memcmp(&old, &port, old_size) &&
           old.port[old_size] == 0x5a,
       "the old port query fills the old structure and no more");
    if (vt_lacks(vt_ctx, VT_TIMESTAMPS))
        vt_skip(vt_lacks(vt_ctx, VT_TIMESTAMPS));
    ok(ibv_query_rt_values_ex(vt_ctx, &v) == 0 && v.comp_mask == IBV_VALUES_MASK_RAW_CLOCK &&
           v.raw_clock.tv_sec + v.raw_clock.tv_nsec > 0,
       "raw clock");
}

static void tables(void)
{
    union ibv_gid gid, zero = {{0}};
    struct ibv_gid_entry e, all[256];
    struct ibv_port_attr port;
    __be16 pkey;
    need(ibv_query_port(vt_ctx, vt_port(), &port) == 0);
    int best = vt_gid_index(vt_ctx), ports = vt_attr(vt_ctx).orig_attr.phys_port_cnt;
    ok(ibv_query_gid(vt_ctx, vt_port(), best, &gid) == 0 && memcmp(&gid, &zero, 16), "a GID");
    ok(ibv_query_gid(vt_ctx, vt_port(), port.gid_tbl_len, &gid) == -1 &&
           ibv_query_gid(vt_ctx, (uint8_t)(ports + 1), 0, &gid) == -1,
       "a GID beyond the table or of no port: -1");
    ok_pumice(ibv_query_gid(vt_ctx, 1, -1, &gid) == -1, "a GID before the table: -1");
    ok(ibv_query_gid_ex(vt_ctx, vt_port(), (uint32_t)best, &e, 0) == 0 && !memcmp(&e.gid, &gid, 16) &&
           e.gid_index == (uint32_t)best && e.port_num == vt_port(),
       "its entry in the table");
    ok_pumice(best == 0 && e.gid_type == IBV_GID_TYPE_ROCE_V2 && e.ndev_ifindex != 0,
              "it is RoCE v2 and has an interface");
    ok(vt_fails(ibv_query_gid_ex(vt_ctx, vt_port(), (uint32_t)port.gid_tbl_len, &e, 0), EINVAL) &&
           vt_fails(ibv_query_gid_ex(vt_ctx, vt_port(), (uint32_t)best, &e, 1), EOPNOTSUPP),
       "GID queries beyond the table, with flags");
    ssize_t n = ibv_query_gid_table(vt_ctx, all, 256, 0);
    ok(n >= 1 && ibv_query_gid_table(vt_ctx, all, (size_t)n - 1, 0) == -EINVAL,
       "GID table; too small a buffer: EINVAL");
    if (n < port.gid_tbl_len && ports == 1) {
        int empty = 0;
        while (empty < n && all[empty].gid_index == (uint32_t)empty)
            empty++;
        ok(ibv_query_gid_ex(vt_ctx, 1, (uint32_t)empty, &e, 0) == ENODATA &&
               ibv_query_gid(vt_ctx, 1, empty, &gid) == 0 && !memcmp(&gid, &zero, 16),
           "an empty entry: ENODATA, and zeros for the old query");
    }
    ok(ibv_query_pkey(vt_ctx, vt_port(), 0, &pkey) == 0 && ibv_get_pkey_index(vt_ctx, vt_port(), pkey) == 0 &&
           ibv_query_pkey(vt_ctx, vt_port(), port.pkey_tbl_len, &pkey) == -1,
       "the P_Key table");
    ok_pumice(ibv_query_pkey(vt_ctx, 1, 0, &pkey) == 0 && pkey == htons(0xffff) &&
                  ibv_get_pkey_index(vt_ctx, 1, htons(0x7fff)) < 0,
              "the P_Key table has the default P_Key");
}

static void rereg(struct ibv_pd *pd, struct ibv_pd *other, struct ibv_mr *mr, char *buf)
{
    int rc = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE);
    if (rc && vt_unsupported(errno)) {
        printf("# skipped: regions that are registered again: ibv_rereg_mr is not supported\n");
        ok(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_dealloc_pd(other) == 0, "dereg");
        return;
    }
    ok(rc == 0, "rereg of access");
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
    ok(ibv_dealloc_pd(pd) == 0 && vt_fails(ibv_dealloc_pd(other), EBUSY), "frees the old PD and holds the new one");
    ok(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(other) == 0, "dereg");
}

static void domains(char *buf)
{
    struct ibv_mr *mr = NULL;
    struct ibv_td_init_attr ta = {0};
    struct ibv_td *td = ibv_alloc_td(vt_ctx, &ta);
    vt_needs_call(td, "ibv_alloc_td");
    struct ibv_parent_domain_init_attr pa = {.pd = ibv_alloc_pd(vt_ctx), .td = td};
    struct ibv_pd *parent = ibv_alloc_parent_domain(vt_ctx, &pa);
    vt_needs_call(parent, "ibv_alloc_parent_domain");
    ok(td && parent && (mr = ibv_reg_mr(parent, buf, 10, 0)), "a parent domain registers memory");
    ok(vt_fails(ibv_dealloc_pd(pa.pd), EBUSY), "and holds its PD");
    ok(ibv_dereg_mr(mr) == 0 && ibv_dealloc_pd(parent) == 0 && ibv_dealloc_td(td) == 0 && ibv_dealloc_pd(pa.pd) == 0,
       "until it goes");
}

static void regions(void)
{
    static char buf[8192];
    struct ibv_pd *pd = ibv_alloc_pd(vt_ctx), *other = ibv_alloc_pd(vt_ctx);
    need(pd && other);
    errno = 0;
    ok(vt_none(ibv_reg_mr(pd, buf, 10, IBV_ACCESS_REMOTE_WRITE), EINVAL), "REMOTE_WRITE without LOCAL_WRITE: EINVAL");
    ok(vt_none(ibv_reg_mr(pd, buf, 10, IBV_ACCESS_REMOTE_ATOMIC), EINVAL), "REMOTE_ATOMIC without LOCAL_WRITE: EINVAL");
    struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
    ok(mr && mr->addr == buf && mr->length == sizeof(buf) && mr->pd == pd && mr->context == vt_ctx, "a region");
    ok(vt_fails(ibv_dealloc_pd(pd), EBUSY), "its PD is busy");
    rereg(pd, other, mr, buf);
    domains(buf);
}
static void queue_pairs(void)
{
    struct ibv_device_attr a;
    struct ibv_pd *pd = ibv_alloc_pd(vt_ctx);
    struct ibv_cq *cq = ibv_create_cq(vt_ctx, 10, NULL, NULL, 0);
    need(pd && cq && ibv_query_device(vt_ctx, &a) == 0);
    struct ibv_qp_init_attr good = {
        .qp_context = &a, .send_cq = cq, .recv_cq = cq, .cap = {3, 5, 1, 2, 7}, .qp_type = IBV_QPT_RC};
    struct ibv_qp_init_attr t = good;
    t.recv_cq = NULL;
    ok_pumice(!ibv_create_qp(pd, &t) && errno == EINVAL, "a QP without receive CQ: EINVAL");
    t = good, t.cap.max_send_wr = (uint32_t)a.max_qp_wr + 1;
    ok(vt_none(ibv_create_qp(pd, &t), EINVAL), "max_send_wr beyond the device's: EINVAL");
    t = good, t.cap.max_recv_sge = (uint32_t)a.max_sge + 1;
    ok(vt_none(ibv_create_qp(pd, &t), EINVAL), "max_recv_sge beyond the device's: EINVAL");
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
    ok_pumice(errno == EINVAL && inline_max > 64, "inline data beyond the limit: EINVAL");
    if (vt_own("how much inline data a QP takes")) {
        /* UCX asks for 64, and relies on its connection requests, which are a little longer, being copied at once. */
        t = good, t.qp_type = IBV_QPT_UD, t.cap.max_inline_data = 64;
        qp = ibv_create_qp(pd, &t);
        ok(qp && t.cap.max_inline_data >= 128, "a UD QP takes 128 bytes inline, if it takes any");
        ibv_destroy_qp(qp);
        t = good, t.cap.max_inline_data = 0;
        qp = ibv_create_qp(pd, &t);
        ok(qp && t.cap.max_inline_data >= 16, "a QP that asks for no inline data takes what its SGEs leave room for");
        ibv_destroy_qp(qp);
    }
    struct ibv_qp_init_attr_ex x = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .pd = pd,
                                    .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                    .send_ops_flags = IBV_QP_EX_WITH_TSO};
    ok_pumice(!ibv_create_qp_ex(vt_ctx, &x) && errno == EOPNOTSUPP, "send_ops_flags TSO: EOPNOTSUPP");
    t = good, t.qp_type = IBV_QPT_RAW_PACKET;
    ok_pumice(!ibv_create_qp(pd, &t) && errno == EOPNOTSUPP, "raw packet QP: EOPNOTSUPP");

    t = good;
    qp = ibv_create_qp(pd, &t);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    ok(qp && qp->qp_num > 1 && qp->state == IBV_QPS_RESET && qp->qp_context == &a && t.cap.max_send_wr >= 3 &&
           t.cap.max_recv_wr >= 5 && t.cap.max_send_sge >= 1 && t.cap.max_recv_sge >= 2 && t.cap.max_inline_data >= 7,
       "a QP gets at least what it asked for");
    ok_pumice(!ibv_qp_to_qp_ex(qp), "a plain QP is not an extended one");
    ok(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_RESET && init.send_cq == cq &&
           init.qp_type == IBV_QPT_RC,
       "and says so when asked");
    ok(init.sq_sig_all == 0, "its sends are signaled on request");
    if (!ok(!memcmp(&init.cap, &t.cap, sizeof(t.cap)), "its capacities are those of its creation"))
        printf("#   created: %u %u %u %u %u; queried: %u %u %u %u %u\n", t.cap.max_send_wr, t.cap.max_recv_wr,
               t.cap.max_send_sge, t.cap.max_recv_sge, t.cap.max_inline_data, init.cap.max_send_wr,
               init.cap.max_recv_wr, init.cap.max_send_sge, init.cap.max_recv_sge, init.cap.max_inline_data);
    ok(init.qp_context == &a, "its context is that of the program");
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR};
    ok(vt_fails(ibv_modify_qp(qp, &rtr, IBV_QP_STATE), EINVAL) && qp->state == IBV_QPS_RESET,
       "RESET to RTR: EINVAL, nothing changed");
    need(vt_to_init(qp) == 0);
    struct ibv_qp_attr lid = {.qp_state = IBV_QPS_RTR, .ah_attr = {.dlid = 1, .port_num = vt_port()}};
    ok(vt_fails(ibv_modify_qp(qp, &lid, IBV_QP_STATE | IBV_QP_AV), EINVAL) && qp->state == IBV_QPS_INIT,
       "an address without GRH: EINVAL");
    ok(vt_fails(ibv_destroy_cq(cq), EBUSY), "a CQ with a QP is busy");
    ok(vt_fails(ibv_dealloc_pd(pd), EBUSY), "so is the PD");
    ok(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0, "until the QP goes");
}

static void address_handles(void)
{
    struct ibv_pd *pd = ibv_alloc_pd(vt_ctx);
    struct ibv_ah_attr a = {.is_global = 1,
                            .dlid = vt_port_attr(vt_ctx).lid,
                            .port_num = vt_port(),
                            .grh = {.dgid = vt_gid(vt_ctx), .sgid_index = vt_gid_index(vt_ctx), .hop_limit = 1}};
    struct ibv_ah *ah = ibv_create_ah(pd, &a);
    ok(ah && ah->pd == pd && ibv_destroy_ah(ah) == 0, "an address handle");
    a.grh.sgid_index = 250;
    ok(vt_none(ibv_create_ah(pd, &a), EINVAL), "of a source GID that is not there: EINVAL");
    a.grh.sgid_index = vt_gid_index(vt_ctx), a.is_global = 0;
    if (vt_port_attr(vt_ctx).link_layer == IBV_LINK_LAYER_ETHERNET)
        ok(vt_none(ibv_create_ah(pd, &a), EINVAL), "without GRH: EINVAL");
    if (vt_own("the setting for datagram rsockets")) {
        a.dlid = 0;
        setenv("PUMICE_DATAGRAM_RSOCKETS", "1", 1);
        ah = ibv_create_ah(pd, &a);
        ok(ah && ibv_destroy_ah(ah) == 0, "without GRH, where datagram rsockets are allowed: the port itself");
        a.dlid = 1;
        ok(vt_none(ibv_create_ah(pd, &a), EINVAL), "but not another LID: EINVAL");
        unsetenv("PUMICE_DATAGRAM_RSOCKETS");
    }
    ok(ibv_dealloc_pd(pd) == 0, "nothing of it is left");
}

static void not_offered(void)
{
    if (!vt_own("the errors of features that Pumice does not have"))
        return;
    struct ibv_pd *pd = ibv_alloc_pd(vt_ctx);
    struct ibv_counters_init_attr ci = {0};
    struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ};
    ok(vt_none(ibv_alloc_null_mr(pd), EOPNOTSUPP), "null region: EOPNOTSUPP");
    ok(vt_none(ibv_create_counters(vt_ctx, &ci), EOPNOTSUPP), "counters: EOPNOTSUPP");
    ok(vt_none(ibv_create_wq(vt_ctx, &wq), EOPNOTSUPP), "work queues: EOPNOTSUPP");
    ok(vt_none(ibv_reg_dmabuf_mr(pd, 0, 64, 0, 0, 0), EOPNOTSUPP), "dma-buf: EOPNOTSUPP");
    ok(vt_none(ibv_import_device(0), EOPNOTSUPP) && vt_none(ibv_import_pd(vt_ctx, 1), EOPNOTSUPP),
       "import: EOPNOTSUPP");
    ok(ibv_fork_init() == 0 && ibv_is_fork_initialized() == IBV_FORK_UNNEEDED, "fork needs no preparation");
    ibv_dealloc_pd(pd);
}

int main(void)
{
    vt_part("device and port", device);
    vt_part("GIDs and P_Keys", tables);
    vt_part("regions", regions);
    vt_part("queue pairs", queue_pairs);
    vt_part("address handles", address_handles);
    vt_part("features that are not there", not_offered);
    return vt_failed;
}
