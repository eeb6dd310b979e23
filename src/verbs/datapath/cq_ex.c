// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/cq_ex.h"

#include <errno.h>

#include "src/verbs/base/clock.h"
#include "src/verbs/datapath/cq_notify.h"
#include "src/verbs/datapath/poll.h"
#include "src/verbs/datapath/poll_wait.h"
#include "src/verbs/session/context.h"
#include "src/verbs/unkind/poll_size.h"

static bool take(struct vb_cq *cq)
{
    if (!vb_cq_take(cq, &cq->now))
        return false;
    cq->ex.wr_id = cq->now.wr_id;
    cq->ex.status = cq->now.status;
    return true;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    struct vb_cq *cq = vb_cq_ex(ex);
    struct vb_context *c = vb_ctx(ex->context);
    if (attr->comp_mask)
        return EINVAL;
    if (!vb_owned(c))
        return EIO;
    vb_cq_lock(cq);
    if (take(cq))
        return 0;
    vb_cq_notify_polled(cq, false);
    vb_cq_unlock(cq);
    vb_poll_wait(cq);
    return ENOENT;
}

static int next_poll(struct ibv_cq_ex *ex)
{
    return take(vb_cq_ex(ex)) ? 0 : ENOENT;
}

/* The poll of an unkind device may end although there are more completions. */
static int next_poll_or_not(struct ibv_cq_ex *ex)
{
    return vb_unkind_goes_on(vb_cq_ex(ex)) ? next_poll(ex) : ENOENT;
}

static void end_poll(struct ibv_cq_ex *ex)
{
    struct vb_cq *cq = vb_cq_ex(ex);
    vb_cq_notify_polled(cq, true);
    vb_cq_unlock(cq);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->now.opcode;
}
static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->now.vendor_err;
}
static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->now.byte_len;
}
static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->now.imm;
}
static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->now.qpn;
}
static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->now.src_qp;
}
static unsigned read_wc_flags(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->now.wc_flags;
}
/* RoCE has no LIDs. */
static uint32_t read_slid(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}
static uint8_t read_sl(struct ibv_cq_ex *ex)
{
    const struct vb_cq *cq = vb_cq_ex(ex);
    return vb_wc_sl(&cq->now);
}
static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}
static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->now.timestamp;
}
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
    return vb_cq_ex(ex)->now.timestamp + vb_clock(CLOCK_REALTIME) - vb_clock(CLOCK_MONOTONIC);
}
/* No CQ has these fields: creating one with them fails. */
static uint16_t read_cvlan(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}
static uint32_t read_flow_tag(struct ibv_cq_ex *ex)
{
    (void)ex;
    return 0;
}
static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
    const struct pm_cqe *e = &vb_cq_ex(ex)->now;
    bool tagged = e->kind & PM_CQE_TM_ENTRY && e->wc_flags & IBV_WC_TM_MATCH;
    *info = (struct ibv_wc_tm_info){.tag = tagged ? e->tm.tag : 0, .priv = tagged ? e->tm.priv : 0};
}

void vb_cq_ex_ops(struct ibv_cq_ex *ex, uint64_t wc_flags)
{
    ex->start_poll = start_poll;
    ex->next_poll = vb_ctx(ex->context)->caps.unkind & UNKIND_POLLS ? next_poll_or_not : next_poll;
    ex->end_poll = end_poll;
    ex->read_opcode = read_opcode;
    ex->read_vendor_err = read_vendor_err;
    ex->read_byte_len = read_byte_len;
    ex->read_imm_data = read_imm_data;
    ex->read_qp_num = read_qp_num;
    ex->read_src_qp = read_src_qp;
    ex->read_wc_flags = read_wc_flags;
    ex->read_slid = read_slid;
    ex->read_sl = read_sl;
    ex->read_dlid_path_bits = read_dlid_path_bits;
    ex->read_completion_ts = read_completion_ts;
    ex->read_cvlan = read_cvlan;
    ex->read_flow_tag = read_flow_tag;
    ex->read_tm_info = wc_flags & IBV_WC_EX_WITH_TM_INFO ? read_tm_info : NULL;
    ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
