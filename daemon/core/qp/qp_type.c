// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/core/qp/qp_type.h"

#include "wire/pkt.h"

#define RC_OPS                                                                                                         \
    (QP_LOCAL_OPS | 1 << WR_RDMA_WRITE | 1 << WR_RDMA_WRITE_WITH_IMM | 1 << WR_SEND | 1 << WR_SEND_WITH_IMM |          \
     1 << WR_RDMA_READ | 1 << WR_ATOMIC_CMP_AND_SWP | 1 << WR_ATOMIC_FETCH_AND_ADD | 1 << WR_SEND_WITH_INV |           \
     1 << WR_FLUSH | 1 << WR_ATOMIC_WRITE)

/* By enum qp_type. */
static const struct qp_type_info types[] = {
    [QPT_RC] = {true, OP_SERVICE_RC, RC_OPS},
    [QPT_XRC_SEND] = {true, OP_SERVICE_XRC, RC_OPS},
    [QPT_XRC_RECV] = {true, OP_SERVICE_XRC, 0},
    [QPT_UC] = {true, OP_SERVICE_UC,
                QP_LOCAL_OPS | 1 << WR_RDMA_WRITE | 1 << WR_RDMA_WRITE_WITH_IMM | 1 << WR_SEND | 1 << WR_SEND_WITH_IMM},
    [QPT_UD] = {true, OP_SERVICE_UD, 1 << WR_SEND | 1 << WR_SEND_WITH_IMM},
};

const struct qp_type_info *qp_type_info(uint8_t type)
{
    static const struct qp_type_info none = {false, 0, 0};
    return type < sizeof(types) / sizeof(types[0]) ? &types[type] : &none;
}
