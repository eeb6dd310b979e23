// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/abi/context_ops.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "src/verbs/base/explain.h"
#include "src/verbs/control/create_cq.h"
#include "src/verbs/control/create_qp.h"
#include "src/verbs/control/create_srq.h"
#include "src/verbs/control/xrcd.h"
#include "src/verbs/datapath/bind.h"
#include "src/verbs/datapath/cq_notify.h"
#include "src/verbs/datapath/poll.h"
#include "src/verbs/datapath/post.h"
#include "src/verbs/datapath/srq_post.h"
#include "src/verbs/datapath/tm.h"
#include "src/verbs/device/query.h"
#include "src/verbs/memory/advise.h"
#include "src/verbs/memory/dm.h"
#include "src/verbs/memory/mr.h"
#include "src/verbs/memory/mw.h"
#include "src/verbs/memory/pd.h"
#include "src/verbs/unkind/poll_size.h"

/* The entries that only programs of the first ABI call. */
static void *no_compat(void)
{
    return vb_null(-EOPNOTSUPP);
}

/* The functions that are taken out fail without a chance to say why. */
static void explain_absent(uint32_t absent)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {
        {PM_ABSENT_MW, "memory windows"},      {PM_ABSENT_XRC, "XRC"},
        {PM_ABSENT_DM, "device memory"},       {PM_ABSENT_QP_EX, "ibv_create_qp_ex"},
        {PM_ABSENT_CQ_EX, "ibv_create_cq_ex"}, {PM_ABSENT_CQ_MODERATION, "moderation of completions"},
        {PM_ABSENT_ATOMICS, "atomics"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (absent & names[i].bit)
            fprintf(stderr, "pumice: this device has no %s (docs/profiles.md)\n", names[i].name);
}

/* Takes out the functions that the library of the adapter does not have, whose profile the device has. For an entry that
 * is NULL, the inline function of the header fails with EOPNOTSUPP, as with that library. */
static void leave_out(struct vb_context *c)
{
    struct ibv_context_ops *o = &c->vctx.context.ops;
    struct verbs_context *v = &c->vctx;
    const uint32_t absent = c->caps.absent;
    if (vb_explains())
        explain_absent(absent);
    if (absent & PM_ABSENT_MW) {
        o->alloc_mw = NULL;
        o->bind_mw = NULL;
        o->dealloc_mw = NULL;
    }
    if (absent & PM_ABSENT_XRC) {
        v->open_xrcd = NULL;
        v->close_xrcd = NULL;
        v->open_qp = NULL;
    }
    if (absent & PM_ABSENT_DM) {
        v->alloc_dm = NULL;
        v->free_dm = NULL;
        v->reg_dm_mr = NULL;
    }
    if (absent & PM_ABSENT_QP_EX)
        v->create_qp_ex = NULL;
    if (absent & PM_ABSENT_CQ_EX)
        v->create_cq_ex = NULL;
    if (absent & PM_ABSENT_CQ_MODERATION)
        v->modify_cq = NULL;
}

void vb_context_ops(struct vb_context *c)
{
    struct ibv_context_ops *o = &c->vctx.context.ops;
    o->_compat_alloc_pd = o->_compat_dealloc_pd = o->_compat_reg_mr = o->_compat_rereg_mr = o->_compat_dereg_mr =
        no_compat;
    o->_compat_create_cq = o->_compat_cq_event = o->_compat_resize_cq = o->_compat_destroy_cq = no_compat;
    o->_compat_create_srq = o->_compat_modify_srq = o->_compat_query_srq = o->_compat_destroy_srq = no_compat;
    o->_compat_create_qp = o->_compat_query_qp = o->_compat_modify_qp = o->_compat_destroy_qp = no_compat;
    o->_compat_create_ah = o->_compat_destroy_ah = o->_compat_attach_mcast = o->_compat_detach_mcast = no_compat;
    o->_compat_async_event = no_compat;
    o->alloc_mw = vb_alloc_mw;
    o->bind_mw = vb_bind_mw;
    o->dealloc_mw = vb_dealloc_mw;
    o->post_srq_recv = vb_post_srq_recv;
    o->poll_cq = c->caps.unkind & UNKIND_POLLS ? vb_poll_cq_fewer : vb_poll_cq;
    o->req_notify_cq = vb_req_notify_cq;
    o->post_send = vb_post_send;
    o->post_recv = vb_post_recv;

    /* For an entry that is NULL, the inline function of the header returns EOPNOTSUPP. */
    struct verbs_context *v = &c->vctx;
    v->sz = sizeof(*v) - offsetof(struct verbs_context, query_port) + sizeof(struct vb_context_v65);
    v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    v->open_xrcd = vb_open_xrcd;
    v->close_xrcd = vb_close_xrcd;
    v->create_srq_ex = vb_create_srq_ex;
    v->get_srq_num = vb_get_srq_num;
    v->post_srq_ops = vb_post_srq_ops;
    v->open_qp = vb_open_qp;
    v->modify_cq = vb_modify_cq;
    v->advise_mr = vb_advise_mr;
    v->alloc_dm = vb_alloc_dm;
    v->free_dm = vb_free_dm;
    v->reg_dm_mr = vb_reg_dm_mr;
    v->query_port = vb_query_port;
    v->query_device_ex = vb_query_device_ex;
    v->query_rt_values = vb_query_rt_values;
    v->create_cq_ex = vb_create_cq_ex;
    v->create_qp_ex = vb_create_qp_ex;
    v->alloc_td = vb_alloc_td;
    v->dealloc_td = vb_dealloc_td;
    v->alloc_parent_domain = vb_alloc_parent_domain;
    /* The functions of version 65 are before query_port, in c->newer or, with a later header, in *v. */
    struct vb_context_v65 *newer = VB_OF(struct vb_context_v65, end, &v->query_port);
    *newer = (struct vb_context_v65){
        .free_buf = ibv_free_buf,
        .alloc_buf = ibv_alloc_buf,
        .dm_export_dmabuf_fd = ibv_dm_export_dmabuf_fd,
        .reg_mr_ex = ibv_reg_mr_ex,
        .dealloc_dmah = ibv_dealloc_dmah,
        .alloc_dmah = ibv_alloc_dmah,
    };
    leave_out(c);
}
