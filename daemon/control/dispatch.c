// SPDX-License-Identifier: BSD-2-Clause
/* The table of control operations, in the order of enum pm_op: payload length, handler, and the data path work before
 * it. Only sessions that are bound to a device use it. */
#include "daemon/control/dispatch.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/device/device.h"
#include "daemon/loop/pass.h"
#include "daemon/loop/port_change.h"
#include "daemon/monitor/path_check.h"
#include "daemon/objects/channel.h"
#include "daemon/objects/cq.h"
#include "daemon/objects/mr.h"
#include "daemon/objects/mw.h"
#include "daemon/objects/pd.h"
#include "daemon/objects/qp/comp_cntr.h"
#include "daemon/objects/qp/mcast_group.h"
#include "daemon/objects/qp/qp_attr.h"
#include "daemon/objects/qp/qp_control.h"
#include "daemon/objects/qp/xrc_target.h"
#include "daemon/objects/srq/srq_control.h"
#include "daemon/objects/xrcd.h"
#include "daemon/session/charge.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/port.h"
#include "daemon/session/session.h"
#include "pumice/abi_capture.h"
#include "pumice/abi_cm.h"

static int query_port(struct session *s, const void *rq, struct control_reply *rp)
{
    struct device *d = s->device;
    struct pm_query_port_rep *rep = control_payload(rp, sizeof(*rep));

    (void)rq;
    port_change_poll(d);
    *rep = (struct pm_query_port_rep){
        .state = port_is_up(d) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = d->active_mtu,
        .active_width = 2, /* 4X … */
        /* … of EDR, 25 Gb/s each. From this rate, UCX derives which messages it sends by READ. A lower one makes it cut
         * long messages into small parts. */
        .active_speed = 32,
        .phys_state = port_is_up(d)  ? 5
                      : d->netdev.up ? 2
                                     : 3, /* LinkUp, Polling, Disabled */
        .pkey_tbl_len = 1,
        .gid_tbl_len = device_gid_table_len(d),
        .port_cap_flags = d->limits.port_cap_flags,
        .max_msg_size = d->limits.max_msg,
        .ifindex = d->netdev.index,
        .speed = port_is_up(d) ? 4 * 250 : 0,
    };
    return 0;
}

static int query_gid(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_query_gid_req *r = rq;
    const struct device *d = s->device;
    struct pm_query_gid_rep *rep;

    if (r->index >= device_gid_table_len(d))
        return control_fail(rp, -EINVAL, "GID index %u: device %s has %u", r->index, d->name, device_gid_table_len(d));
    const struct gid_entry *e = gid_table_at(&d->gids, device_gid_entry(d, r->index));
    if (!e)
        return control_fail(rp, -ENOENT, "GID index %u is empty: %s has no such address", r->index, d->netdev.name);
    rep = control_payload(rp, sizeof(*rep));
    memcpy(rep->gid, e->gid, sizeof(rep->gid));
    rep->ifindex = d->netdev.index;
    rep->type = device_gid_is_v1(d, r->index) ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    return 0;
}

/* When a QP uses an address for the first time, a path check begins (monitor/path_check.h). It may refuse the
 * address. */
static int modify_qp(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_modify_qp_req *r = rq;
    char text[ADDR_TEXT_MAX];
    int rc = client_qp_check_modify(s, rq, rp);

    if (rc == 0 && r->mask & QPA_AV && !device_admits(s->device, r->attr.av.dgid))
        rc = control_fail(rp, -EACCES, "%s is not in the daemon's list of peers (option peers)",
                          gid_text(r->attr.av.dgid, text));
    if (rc == 0 && r->mask & QPA_AV && r->mask & QPA_PATH_MTU && r->attr.path_mtu >= IBV_MTU_256 &&
        r->attr.path_mtu <= IBV_MTU_4096)
        rc = path_check_use(s, r->attr.av.dgid, (uint8_t)device_gid_entry(s->device, r->attr.av.sgid_index),
                            128u << r->attr.path_mtu, rp);
    return rc ? rc : client_qp_modify(s, rq, rp);
}

/* --- the data path ---
 *
 * Handlers don't run the data path. Before two of them, carry_out calls one of these functions (`settle`). */

/* DESTROY_QP: sends the requests that the client has posted to the QP, as far as the QP may send them. A NIC starts a
 * request when it is posted, and programs rely on that: many destroy a QP right after they posted its last datagram. */
static void send_posted(struct session *s, const void *rq)
{
    const struct pm_handle *h = rq;
    struct client_qp *q = handles_get(&s->qps, h->handle);

    if (q)
        device_send_posted(s->device, q);
}

/* RESIZE_CQ: requests that the client posted before this one may complete in a pass. Their completions count. */
static void run_pass(struct session *s, const void *rq)
{
    (void)rq;
    device_pass(s->device, clock_ns());
}

/* --- the table --------------------------------------------------------------------------------- */

typedef int (*handler)(struct session *s, const void *rq, struct control_reply *rp);

/* clang-format off */
static const struct {
    const char *name;
    uint32_t len; /* bytes of payload */
    handler fn; /* NULL: not an operation of bound sessions */
    void (*settle)(struct session *s, const void *rq); /* called before fn; NULL: nothing */
} ops[PM_OP_MAX_] = {
    [PM_OP_LIST]            = {"LIST",            0,                               NULL, NULL},
    [PM_OP_STATUS]          = {"STATUS",          0,                               NULL, NULL},
    [PM_OP_FAULT]           = {"FAULT",           sizeof(struct pm_fault_req),     NULL, NULL},
    [PM_OP_SHUTDOWN]        = {"SHUTDOWN",        0,                               NULL, NULL},
    [PM_OP_OPEN]            = {"OPEN",            sizeof(struct pm_open_req),      NULL, NULL},
    [PM_OP_QUERY_PORT]      = {"QUERY_PORT",      0,                               query_port, NULL},
    [PM_OP_QUERY_GID]       = {"QUERY_GID",       sizeof(struct pm_query_gid_req), query_gid, NULL},
    [PM_OP_ALLOC_PD]        = {"ALLOC_PD",        0,                               pd_alloc, NULL},
    [PM_OP_DEALLOC_PD]      = {"DEALLOC_PD",      sizeof(struct pm_handle),        pd_dealloc, NULL},
    [PM_OP_REG_MR]          = {"REG_MR",          sizeof(struct pm_reg_mr_req),    mr_reg, NULL},
    [PM_OP_REREG_MR]        = {"REREG_MR",        sizeof(struct pm_rereg_mr_req),  mr_rereg, NULL},
    [PM_OP_DEREG_MR]        = {"DEREG_MR",        sizeof(struct pm_handle),        mr_dereg, NULL},
    [PM_OP_CREATE_CHANNEL]  = {"CREATE_CHANNEL",  0,                               channel_create, NULL},
    [PM_OP_DESTROY_CHANNEL] = {"DESTROY_CHANNEL", sizeof(struct pm_handle),        channel_destroy, NULL},
    [PM_OP_CREATE_CQ]       = {"CREATE_CQ",       sizeof(struct pm_create_cq_req), cq_create, NULL},
    [PM_OP_RESIZE_CQ]       = {"RESIZE_CQ",       sizeof(struct pm_resize_cq_req), cq_resize, run_pass},
    [PM_OP_DESTROY_CQ]      = {"DESTROY_CQ",      sizeof(struct pm_handle),        cq_destroy, NULL},
    [PM_OP_CREATE_QP]       = {"CREATE_QP",       sizeof(struct pm_create_qp_req), client_qp_create, NULL},
    [PM_OP_MODIFY_QP]       = {"MODIFY_QP",       sizeof(struct pm_modify_qp_req), modify_qp, NULL},
    [PM_OP_QUERY_QP]        = {"QUERY_QP",        sizeof(struct pm_handle),        client_qp_query, NULL},
    [PM_OP_DESTROY_QP]      = {"DESTROY_QP",      sizeof(struct pm_handle),        client_qp_destroy, send_posted},
    [PM_OP_CREATE_SRQ]      = {"CREATE_SRQ",      sizeof(struct pm_create_srq_req), client_srq_create, NULL},
    [PM_OP_MODIFY_SRQ]      = {"MODIFY_SRQ",      sizeof(struct pm_modify_srq_req), client_srq_modify, NULL},
    [PM_OP_RESIZE_SRQ]      = {"RESIZE_SRQ",      sizeof(struct pm_resize_srq_req), client_srq_resize, NULL},
    [PM_OP_QUERY_SRQ]       = {"QUERY_SRQ",       sizeof(struct pm_handle),        client_srq_query, NULL},
    [PM_OP_MODIFY_CQ]       = {"MODIFY_CQ",       sizeof(struct pm_modify_cq_req), cq_modify, NULL},
    [PM_OP_DESTROY_SRQ]     = {"DESTROY_SRQ",     sizeof(struct pm_handle),        client_srq_destroy, NULL},
    [PM_OP_OPEN_XRCD]       = {"OPEN_XRCD",       sizeof(struct pm_open_xrcd_req), xrcd_open, NULL},
    [PM_OP_CLOSE_XRCD]      = {"CLOSE_XRCD",      sizeof(struct pm_handle),        xrcd_close, NULL},
    [PM_OP_ALLOC_MW]        = {"ALLOC_MW",        sizeof(struct pm_alloc_mw_req),  mw_alloc_window, NULL},
    [PM_OP_DEALLOC_MW]      = {"DEALLOC_MW",      sizeof(struct pm_handle),        mw_dealloc_window, NULL},
    [PM_OP_ATTACH_MCAST]    = {"ATTACH_MCAST",    sizeof(struct pm_mcast_req),     mcast_group_attach, NULL},
    [PM_OP_DETACH_MCAST]    = {"DETACH_MCAST",    sizeof(struct pm_mcast_req),     mcast_group_detach, NULL},
    [PM_OP_TM]              = {"TM",              sizeof(struct pm_tm_req),        NULL, NULL},
    [PM_OP_LAYOUT]          = {"LAYOUT",          sizeof(struct pm_layout_req),    NULL, NULL},
    [PM_OP_CAPTURE]         = {"CAPTURE",         sizeof(struct pm_capture_req),   NULL, NULL},
    [PM_OP_CHECK]           = {"CHECK",           sizeof(struct pm_check_req),     NULL, NULL},
    [PM_OP_TURN]            = {"TURN",            0,                               NULL, NULL},
    [PM_OP_COUNTER]         = {"COUNTER",         sizeof(struct pm_counter_req),   NULL, NULL},
    [PM_OP_OPEN_QP]         = {"OPEN_QP",         sizeof(struct pm_open_qp_req),   target_open_qp, NULL},
    [PM_OP_SWITCH_CQ]       = {"SWITCH_CQ",       sizeof(struct pm_handle),        cq_switch, NULL},
    [PM_OP_SWITCH_SRQ]      = {"SWITCH_SRQ",      sizeof(struct pm_handle),        client_srq_switch, NULL},
    [PM_OP_CREATE_COMP_CNTR]  = {"CREATE_COMP_CNTR",  sizeof(struct pm_create_comp_cntr_req), comp_cntr_create, NULL},
    [PM_OP_DESTROY_COMP_CNTR] = {"DESTROY_COMP_CNTR", sizeof(struct pm_handle),               comp_cntr_destroy, NULL},
    [PM_OP_MODIFY_COMP_CNTR]  = {"MODIFY_COMP_CNTR",  sizeof(struct pm_modify_comp_cntr_req), comp_cntr_modify, NULL},
    [PM_OP_ATTACH_COMP_CNTR]  = {"ATTACH_COMP_CNTR",  sizeof(struct pm_attach_comp_cntr_req), comp_cntr_attach_qp, NULL},
    [PM_OP_CM_OPEN]           = {"CM_OPEN",           sizeof(struct pm_cm_open_req),          NULL, NULL},
    [PM_OP_CM_CREATE_CHANNEL] = {"CM_CREATE_CHANNEL", 0,                                      NULL, NULL},
    [PM_OP_CM_HOLD_CHANNEL]   = {"CM_HOLD_CHANNEL",   sizeof(struct pm_cm_channel_req),       NULL, NULL},
    [PM_OP_CM_DROP_CHANNEL]   = {"CM_DROP_CHANNEL",   sizeof(struct pm_cm_channel_req),       NULL, NULL},
    [PM_OP_CM_COMMAND]        = {"CM_COMMAND",        sizeof(struct pm_cm_command_req),       NULL, NULL},
};
/* clang-format on */

const char *control_op_name(uint32_t op)
{
    return op < PM_OP_MAX_ && ops[op].name ? ops[op].name : "an unknown operation";
}

/* The operations that make an object. control_dispatch charges the user of the session for it. The function that frees
 * the object releases the charge. */
static const struct {
    uint32_t op;
    enum quota_kind kind;
} makes[] = {
    {PM_OP_ALLOC_PD, QUOTA_PDS},  {PM_OP_REG_MR, QUOTA_MRS},
    {PM_OP_ALLOC_MW, QUOTA_MWS},  {PM_OP_CREATE_CHANNEL, QUOTA_CHANNELS},
    {PM_OP_CREATE_CQ, QUOTA_CQS}, {PM_OP_CREATE_SRQ, QUOTA_SRQS},
    {PM_OP_CREATE_QP, QUOTA_QPS}, {PM_OP_OPEN_XRCD, QUOTA_XRCDS},
};

/* Calls the handler of an operation. */
static int call(struct session *s, const struct control_request *rq, struct control_reply *rp)
{
    unsigned i = 0;

    while (i < sizeof(makes) / sizeof(makes[0]) && makes[i].op != rq->op)
        i++;
    if (i == sizeof(makes) / sizeof(makes[0]))
        return ops[rq->op].fn(s, rq->payload, rp);
    int rc = charge_object(&s->owner, makes[i].kind, rp);
    if (rc)
        return rc;
    rc = ops[rq->op].fn(s, rq->payload, rp);
    if (rc)
        quota_release(&s->owner, makes[i].kind);
    return rc;
}

static int carry_out(struct session *s, const struct control_request *rq, struct control_reply *rp)
{
    if (rq->op >= PM_OP_MAX_ || !ops[rq->op].name)
        return control_fail(rp, -EOPNOTSUPP, "no such operation: %u", rq->op);
    if (!ops[rq->op].fn)
        return control_fail(rp, -EINVAL, "%s is for connections that opened no device", ops[rq->op].name);
    if (rq->len != ops[rq->op].len)
        return control_fail(rp, -EINVAL, "%s takes %u bytes, not %u", ops[rq->op].name, ops[rq->op].len, rq->len);
    if (ops[rq->op].settle)
        ops[rq->op].settle(s, rq->payload);
    device_settle(s->device);
    return call(s, rq, rp);
}

void control_dispatch(struct session *s, struct control_request *rq, struct control_reply *rp)
{
    rp->len = 0;
    rp->fds = 0;
    s->asked_at = s->device->now = clock_ns();
    s->request = rq;
    activity_begin(&s->device->activity, control_op_name(rq->op), s->number, s->cred.pid);
    rp->status = carry_out(s, rq, rp);
    activity_done(&s->device->activity);
    s->request = NULL;
}
