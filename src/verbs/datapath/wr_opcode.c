// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/datapath/wr_opcode.h"

#include "src/verbs/base/verbs_v45.h"
#include "src/verbs/objects/qp.h"

#define RC_NEW VB_TYPE_RC /* what few devices have */
#define RC_ATOMIC (RC_NEW | VB_TYPE_RC_NO_FLUSH)
#define RC (RC_ATOMIC | VB_TYPE_RC_NO_ATOMICS)
#define UC VB_TYPE_UC
#define UD VB_TYPE_UD

/* clang-format off */
/* By enum ibv_wr_opcode. An opcode that is missing has kind and types 0: no QP may send it. */
static const struct vb_wr_opcode opcodes[] = {
    [IBV_WR_RDMA_WRITE]           = {VB_WR_KIND_RDMA,         RC | UC,      true,  false, IBV_WC_RDMA_WRITE},
    [IBV_WR_RDMA_WRITE_WITH_IMM]  = {VB_WR_KIND_RDMA,         RC | UC,      true,  true,  IBV_WC_RDMA_WRITE},
    [IBV_WR_SEND]                 = {VB_WR_KIND_SEND,         RC | UC | UD, true,  false, IBV_WC_SEND},
    [IBV_WR_SEND_WITH_IMM]        = {VB_WR_KIND_SEND,         RC | UC | UD, true,  true,  IBV_WC_SEND},
    [IBV_WR_RDMA_READ]            = {VB_WR_KIND_RDMA,         RC,           false, false, IBV_WC_RDMA_READ},
    [IBV_WR_ATOMIC_CMP_AND_SWP]   = {VB_WR_KIND_ATOMIC,       RC_ATOMIC,    false, false, IBV_WC_COMP_SWAP},
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = {VB_WR_KIND_ATOMIC,       RC_ATOMIC,    false, false, IBV_WC_FETCH_ADD},
    [IBV_WR_LOCAL_INV]            = {VB_WR_KIND_INV,          RC | UC,      false, true,  IBV_WC_LOCAL_INV},
    [IBV_WR_BIND_MW]              = {VB_WR_KIND_BIND,         RC | UC,      false, false, IBV_WC_BIND_MW},
    [IBV_WR_SEND_WITH_INV]        = {VB_WR_KIND_SEND,         RC,           true,  true,  IBV_WC_SEND},
    [VB_WR_FLUSH]                 = {VB_WR_KIND_FLUSH,        RC_NEW,       false, false, VB_WC_FLUSH},
    [IBV_WR_ATOMIC_WRITE]         = {VB_WR_KIND_ATOMIC_WRITE, RC_NEW,       true,  false, IBV_WC_ATOMIC_WRITE},
};
/* clang-format on */
#define NUM_OPCODES (sizeof(opcodes) / sizeof(opcodes[0]))

const struct vb_wr_opcode *vb_wr_opcode(unsigned opcode)
{
    static const struct vb_wr_opcode none = {VB_WR_KIND_NONE, 0, false, false, IBV_WC_SEND};
    return opcode < NUM_OPCODES ? &opcodes[opcode] : &none;
}

uint8_t vb_type_bit(enum ibv_qp_type type, uint32_t absent)
{
    switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_XRC_SEND:
        return absent & PM_ABSENT_ATOMICS ? VB_TYPE_RC_NO_ATOMICS
               : absent & PM_ABSENT_FLUSH ? VB_TYPE_RC_NO_FLUSH
                                          : VB_TYPE_RC;
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
    return vb_wr_opcode(wr_opcode)->wc;
}

bool vb_length_ok(uint8_t wr_opcode, const struct ibv_sge *sge, size_t num)
{
    const struct vb_wr_opcode *opcode = vb_wr_opcode(wr_opcode);
    uint64_t total = 0;
    for (size_t i = 0; i < num; i++)
        total += sge[i].length;
    return total <= VB_MAX_MSG && (opcode->kind != VB_WR_KIND_ATOMIC || total >= 8);
}
