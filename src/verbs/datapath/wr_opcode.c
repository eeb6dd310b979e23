// SPDX-License-Identifier: BSD-2-Clause
/* What can be sent, and by whom. */
#include "src/verbs/datapath/post.h"

#include "src/verbs/objects/cq.h"

#define RC VB_TYPE_RC
#define UC VB_TYPE_UC
#define UD VB_TYPE_UD

/* clang-format off */
/* By enum ibv_wr_opcode. Kind and types of those that are missing are 0: nobody may send them. */
static const struct vb_op ops[] = {
    [IBV_WR_RDMA_WRITE]           = {VB_OP_RDMA,         RC | UC,      true,  false, IBV_WC_RDMA_WRITE},
    [IBV_WR_RDMA_WRITE_WITH_IMM]  = {VB_OP_RDMA,         RC | UC,      true,  true,  IBV_WC_RDMA_WRITE},
    [IBV_WR_SEND]                 = {VB_OP_SEND,         RC | UC | UD, true,  false, IBV_WC_SEND},
    [IBV_WR_SEND_WITH_IMM]        = {VB_OP_SEND,         RC | UC | UD, true,  true,  IBV_WC_SEND},
    [IBV_WR_RDMA_READ]            = {VB_OP_RDMA,         RC,           false, false, IBV_WC_RDMA_READ},
    [IBV_WR_ATOMIC_CMP_AND_SWP]   = {VB_OP_ATOMIC,       RC,           false, false, IBV_WC_COMP_SWAP},
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = {VB_OP_ATOMIC,       RC,           false, false, IBV_WC_FETCH_ADD},
    [IBV_WR_LOCAL_INV]            = {VB_OP_INV,          RC | UC,      false, true,  IBV_WC_LOCAL_INV},
    [IBV_WR_BIND_MW]              = {VB_OP_BIND,         RC | UC,      false, false, IBV_WC_BIND_MW},
    [IBV_WR_SEND_WITH_INV]        = {VB_OP_SEND,         RC,           true,  true,  IBV_WC_SEND},
    [VB_WR_FLUSH]                 = {VB_OP_FLUSH,        RC,           false, false, VB_WC_FLUSH},
    [IBV_WR_ATOMIC_WRITE]         = {VB_OP_ATOMIC_WRITE, RC,           true,  false, IBV_WC_ATOMIC_WRITE},
};
/* clang-format on */
#define NUM_OPS (sizeof(ops) / sizeof(ops[0]))

const struct vb_op *vb_op(unsigned wr_opcode)
{
    static const struct vb_op none = {VB_OP_NONE, 0, false, false, IBV_WC_SEND};
    return wr_opcode < NUM_OPS ? &ops[wr_opcode] : &none;
}

uint8_t vb_type_bit(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_XRC_SEND:
        return RC;
    case IBV_QPT_UC:
        return UC;
    case IBV_QPT_UD:
        return UD;
    default:
        return 0;
    }
}

uint8_t vb_wc_opcode(uint8_t wr_opcode)
{
    return vb_op(wr_opcode)->wc;
}

bool vb_length_ok(uint8_t wr_opcode, const struct ibv_sge *sge, size_t num)
{
    const struct vb_op *op = vb_op(wr_opcode);
    uint64_t total = 0;
    for (size_t i = 0; i < num; i++)
        total += sge[i].length;
    return total <= VB_MAX_MSG && (op->kind != VB_OP_ATOMIC || total >= 8);
}
