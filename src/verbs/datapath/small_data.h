// SPDX-License-Identifier: BSD-2-Clause
/* Small messages travel in their send requests, as inline data do, although the program did not ask for that. The copy
 * takes the client some nanoseconds. If the daemon has to read the memory of the client, it needs a system call, which
 * takes about 0.5 us: a quarter of the way to another process of the device.
 *
 * So the data are those of the time of the post. A NIC reads them a little later, but a program must not change them
 * before the completion. A fenced request is different: an earlier READ or atomic may still change its data. So the daemon
 * reads these. Memory that is not mapped any more gives the poster a SIGSEGV. */
#ifndef PUMICE_SRC_VERBS_DATAPATH_SMALL_DATA_H
#define PUMICE_SRC_VERBS_DATAPATH_SMALL_DATA_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "src/verbs/datapath/wqe.h"
#include "src/verbs/datapath/wr_opcode.h"
#include "src/verbs/memory/mr.h"
#include "src/verbs/session/context.h"

/* Longer messages are left to the daemon. Its one call for many requests costs less than two copies of such data. */
#define VB_SMALL_DATA 256u

/* Do all bytes lie in a region of the QP's protection domain, each at its own address? Pages on demand, device memory and
 * regions with addresses of their own are left to the daemon. */
static inline bool vb_is_plain_sge(const struct vb_qp *qp, const struct ibv_sge *sge)
{
    const struct vb_mr *mr = vb_table_get(&vb_ctx(qp->qp.context)->mrs, sge->lkey >> 8);
    if (!mr || mr->mr.lkey != sge->lkey || mr->on_demand || mr->dm || mr->mr.pd->handle != qp->qp.pd->handle)
        return false;
    uint64_t start = (uint64_t)(uintptr_t)mr->mr.addr;
    return mr->iova == start && sge->addr >= start && sge->length <= mr->mr.length &&
           sge->addr - start <= mr->mr.length - sge->length;
}

/* Copies the data into the request, if they are few, fit, and lie in regions that the request may read. False: the request
 * needs its SGEs, and the daemon finds what is wrong with them. The caller holds the lock of the send queue, and has filled
 * the opcode and the flags. */
static inline bool vb_small_data(const struct vb_qp *qp, struct pm_send_wqe *w, const struct ibv_sge *sge, size_t num)
{
    uint32_t room = qp->cap.max_inline_data < VB_SMALL_DATA ? qp->cap.max_inline_data : VB_SMALL_DATA;
    uint32_t total = 0;
    const struct vb_wr_opcode *opcode = vb_wr_opcode(w->opcode);
    if (num == 0 || sge[0].length > room || !opcode->can_inline || opcode->kind == VB_WR_KIND_ATOMIC_WRITE ||
        w->flags & PM_SEND_FENCE)
        return false;
    for (size_t i = 0; i < num; i++) {
        if (sge[i].length > room - total || !vb_is_plain_sge(qp, &sge[i]))
            return false;
        total += sge[i].length;
    }
    uint8_t *to = vb_wqe_body(qp, w);
    for (size_t i = 0; i < num; i++) {
        memcpy(to, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
        to += sge[i].length;
    }
    w->inline_len = total;
    w->flags |= PM_SEND_INLINE;
    return true;
}

#endif
