// SPDX-License-Identifier: BSD-2-Clause
/* What rdma-core's header has had since version 45 and not in the one that this library is built with: FLUSH (IBA A19, row E16).
 * Programs that were built with a later header find it; the numbers and places are that header's. */
#ifndef VERBS_LATER_H
#define VERBS_LATER_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#define VB_ACCESS_FLUSH_GLOBAL (1u << 8) /* enum ibv_access_flags, as the next one */
#define VB_ACCESS_FLUSH_PERSISTENT (1u << 9)
#define VB_EX_WITH_FLUSH (UINT64_C(1) << 11) /* enum ibv_qp_create_send_ops_flags */
#define VB_WR_FLUSH 14 /* enum ibv_wr_opcode */
#define VB_WC_FLUSH 8 /* enum ibv_wc_opcode */
#define VB_FLUSH_GLOBAL 1u /* enum ibv_placement_type, as the next one */
#define VB_FLUSH_PERSISTENT 2u
#define VB_FLUSH_MR 1u /* enum ibv_selectivity_level: the whole region; 0: a range */

/* struct ibv_qp_ex with the function that was added at its end. */
struct vb_qp_ex_later {
    unsigned char before[352];
    void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t placement,
                     uint8_t selectivity);
};
_Static_assert(offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void (*)(void)) ==
                   offsetof(struct vb_qp_ex_later, wr_flush),
               "it stands behind wr_atomic_write");

#endif
