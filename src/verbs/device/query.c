// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/device/query.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "src/verbs/base/verbs_v65.h"
#include "src/verbs/session/call.h"

#define DEFAULT_PKEY 0xffff

static int clamp_to_int(uint32_t v)
{
    return v > INT32_MAX ? INT32_MAX : (int)v;
}

static void device_attr(const struct vb_context *c, struct ibv_device_attr *a)
{
    const struct pm_open_rep *k = &c->caps;
    memset(a, 0, sizeof(*a));
    snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", k->fw_ver);
    a->node_guid = a->sys_image_guid = htobe64(k->desc.guid);
    a->max_mr_size = k->max_mr_size;
    a->page_size_cap = k->page_size_cap;
    a->vendor_id = k->vendor_id;
    a->vendor_part_id = k->vendor_part_id;
    a->hw_ver = k->hw_ver;
    a->max_qp = clamp_to_int(k->max_qp);
    a->max_qp_wr = clamp_to_int(k->max_qp_wr);
    a->device_cap_flags = (unsigned)k->device_cap_flags;
    a->max_sge = clamp_to_int(k->max_sge);
    a->max_sge_rd = clamp_to_int(k->max_sge_rd);
    a->max_cq = clamp_to_int(k->max_cq);
    a->max_cqe = clamp_to_int(k->max_cqe);
    a->max_mr = clamp_to_int(k->max_mr);
    a->max_pd = clamp_to_int(k->max_pd);
    a->max_qp_rd_atom = clamp_to_int(k->max_rd_atomic);
    a->max_qp_init_rd_atom = clamp_to_int(k->max_init_rd_atomic);
    a->max_res_rd_atom = clamp_to_int(k->max_res_rd_atom);
    a->atomic_cap = (enum ibv_atomic_cap)k->atomic_cap;
    a->max_mw = clamp_to_int(k->max_mw);
    a->max_ah = clamp_to_int(k->max_ah);
    a->max_srq = clamp_to_int(k->max_srq);
    a->max_srq_wr = clamp_to_int(k->max_srq_wr);
    a->max_srq_sge = clamp_to_int(k->max_srq_sge);
    a->max_mcast_grp = clamp_to_int(k->max_mcast_grp);
    a->max_mcast_qp_attach = clamp_to_int(k->max_mcast_qp_attach);
    uint64_t all = (uint64_t)k->max_mcast_grp * k->max_mcast_qp_attach;
    a->max_total_mcast_qp_attach = clamp_to_int(all > UINT32_MAX ? UINT32_MAX : (uint32_t)all);
    a->max_pkeys = (uint16_t)k->max_pkeys;
    a->local_ca_ack_delay = (uint8_t)k->ack_delay;
    a->phys_port_cnt = 1;
}

/* The capabilities of on-demand paging that the profile of the device names. Returns false if it names none. */
static bool odp_of_profile(const struct vb_context *c, struct ibv_device_attr_ex *a)
{
    if (c->caps.absent & PM_ABSENT_ODP)
        return true;
    if (!(c->caps.odp_rc | c->caps.odp_uc | c->caps.odp_ud | c->caps.odp_xrc))
        return false;
    a->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    a->odp_caps.per_transport_caps.rc_odp_caps = c->caps.odp_rc;
    a->odp_caps.per_transport_caps.uc_odp_caps = c->caps.odp_uc;
    a->odp_caps.per_transport_caps.ud_odp_caps = c->caps.odp_ud;
    a->xrc_odp_caps = c->caps.odp_xrc;
    return true;
}

/* The capabilities of on-demand paging. The daemon reads and writes client memory by system calls, so the kernel may
 * move or swap any page. */
static void odp_attr(const struct vb_context *c, struct ibv_device_attr_ex *a)
{
    if (odp_of_profile(c, a))
        return;
    const uint32_t flush = c->caps.absent & PM_ABSENT_FLUSH ? 0 : VB_ODP_SUPPORT_FLUSH | VB_ODP_SUPPORT_ATOMIC_WRITE;
    const uint32_t srq = c->caps.max_srq ? IBV_ODP_SUPPORT_SRQ_RECV : 0;
    const uint32_t message = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | srq;
    const uint32_t rdma = IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | flush;
    a->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    a->odp_caps.per_transport_caps.rc_odp_caps = message | rdma;
    a->odp_caps.per_transport_caps.uc_odp_caps = message | IBV_ODP_SUPPORT_WRITE;
    a->odp_caps.per_transport_caps.ud_odp_caps = message;
    if (c->caps.max_xrcd)
        a->xrc_odp_caps = IBV_ODP_SUPPORT_SEND | srq | rdma;
}

VB_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    device_attr(vb_ctx(context), attr);
    return 0;
}

int vb_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *in,
                       struct ibv_device_attr_ex *attr, size_t size)
{
    const struct vb_context *c = vb_ctx(context);
    struct ibv_device_attr_ex a;
    if (in && in->comp_mask)
        return EINVAL;
    if (size < sizeof(a.orig_attr))
        return EINVAL;
    memset(&a, 0, sizeof(a));
    device_attr(c, &a.orig_attr);
    if (!(c->caps.absent & PM_ABSENT_CQ_TIMES)) {
        a.completion_timestamp_mask = UINT64_MAX;
        a.hca_core_clock = c->caps.hca_core_clock_khz;
    }
    a.device_cap_flags_ex = c->caps.device_cap_flags;
    a.phys_port_cnt_ex = 1;
    odp_attr(c, &a);
    if (c->caps.max_cq_period)
        a.cq_mod_caps = (struct ibv_cq_moderation_caps){.max_cq_count = UINT16_MAX,
                                                        .max_cq_period = (uint16_t)c->caps.max_cq_period};
    a.max_dm_size = c->caps.max_dm_size;
    if (c->caps.tm_max_num_tags)
        a.tm_caps = (struct ibv_tm_caps){.max_rndv_hdr_size = c->caps.tm_max_rndv_hdr,
                                         .max_num_tags = c->caps.tm_max_num_tags,
                                         .flags = IBV_TM_CAP_RC,
                                         .max_ops = c->caps.tm_max_ops,
                                         .max_sge = c->caps.tm_max_sge};
    /* A program that was built with newer headers has a longer structure. The rest becomes 0: features that this
     * library doesn't know are absent. */
    if (size > sizeof(a))
        memset((char *)attr + sizeof(a), 0, size - sizeof(a));
    memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
    return 0;
}

int vb_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
    struct pm_query_port_rep rep;
    if (port != 1)
        return vb_err(-EINVAL);
    int rc = vb_call_simple(vb_ctx(context), PM_OP_QUERY_PORT, NULL, 0, &rep, sizeof(rep));
    if (rc)
        return vb_err(rc);
    struct ibv_port_attr a = {
        .state = rep.state,
        .max_mtu = rep.max_mtu,
        .active_mtu = rep.active_mtu,
        .gid_tbl_len = clamp_to_int(rep.gid_tbl_len),
        .port_cap_flags = rep.port_cap_flags,
        .max_msg_sz = rep.max_msg_size,
        .pkey_tbl_len = rep.pkey_tbl_len,
        .max_vl_num = 1,
        .active_width = rep.active_width,
        .active_speed = rep.active_speed,
        .phys_state = rep.phys_state,
        .link_layer = IBV_LINK_LAYER_ETHERNET,
    };
    if (size > sizeof(a))
        memset((char *)attr + sizeof(a), 0, size - sizeof(a));
    memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
    return 0;
}

VB_EXPORT int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
    struct pm_query_port_rep rep;
    if (port != 1)
        return vb_err(-EINVAL);
    int rc = vb_call_simple(vb_ctx(context), PM_OP_QUERY_PORT, NULL, 0, &rep, sizeof(rep));
    if (rc == 0)
        *speed = rep.speed;
    return vb_err(rc);
}

/* Programs that were built before rdma-core 22 call the exported function. Their structure ends before
 * port_cap_flags2. */
#undef ibv_query_port
VB_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    return vb_query_port(context, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, port_cap_flags2));
}

int vb_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
    (void)context;
    if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
        clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
    values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
    return 0;
}

VB_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    (void)context;
    if (port != 1 || index != 0)
        return vb_err(-EINVAL), -1;
    *pkey = htobe16(DEFAULT_PKEY);
    return 0;
}

VB_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    __be16 first;
    if (ibv_query_pkey(context, port, 0, &first))
        return -1;
    return pkey == first ? 0 : (vb_err(-EINVAL), -1);
}
