// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/qp/comp_cntr.h"

#include <errno.h>

#include "daemon/core/qp/qp.h"
#include "daemon/core/qp/qp_traffic.h"
#include "wire/grh.h"

void comp_cntr_init(struct comp_cntr *c, bool bytes)
{
    *c = (struct comp_cntr){.bytes = bytes};
    list_init(&c->changed);
}

void comp_cntr_fini(struct comp_cntr *c)
{
    list_remove(&c->changed);
}

int comp_cntr_attach(struct qp *qp, struct comp_cntr *c, uint32_t ops)
{
    if (ops == 0 || ops & ~CNTR_ALL || (qp->attr.state != QPS_RESET && qp->attr.state != QPS_INIT))
        return -EINVAL;
    if (qp->cntr_ops & ops)
        return -EBUSY;
    qp_wake(qp);
    for (unsigned op = 0; op < CNTR_OPS; op++) {
        if (ops & 1u << op) {
            qp->cntr[op] = c;
            c->users++;
        }
    }
    qp->cntr_ops |= (uint8_t)ops;
    return 0;
}

struct comp_cntr *engine_pop_cntr(struct engine *e)
{
    if (list_empty(&e->changed_cntrs))
        return NULL;
    struct comp_cntr *c = list_entry(e->changed_cntrs.next, struct comp_cntr, changed);
    list_remove(&c->changed);
    return c;
}

void comp_cntr_detach(struct qp *qp)
{
    for (unsigned op = 0; op < CNTR_OPS; op++)
        if (qp->cntr_ops & 1u << op)
            qp->cntr[op]->users--;
    qp->cntr_ops = 0;
}

/* Completions of other kinds are those of atomics, which no counter counts. */
void comp_cntr_undo(struct qp *qp, const struct completion *c)
{
    enum cntr_op op = c->is_recv ? CNTR_RECV : CNTR_READ;
    bool counted = c->is_recv ? c->of != OF_TM_ENTRY : c->opcode == WC_RDMA_READ;
    if (!counted || !(qp->cntr_ops & 1u << op))
        return;
    struct comp_cntr *cntr = qp->cntr[op];
    uint64_t bytes = c->opcode == WC_RECV_RDMA_WITH_IMM ? 0 : c->byte_len;
    if (c->flags & WC_GRH)
        bytes -= GRH_LEN;
    cntr->done -= cntr->bytes ? bytes : 1;
    comp_cntr_add(cntr, &qp->e->changed_cntrs, false, 0);
}
