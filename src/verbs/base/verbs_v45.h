// SPDX-License-Identifier: BSD-2-Clause
/* The definitions that rdma-core's header has since version 45, and that the header of the build machine lacks: FLUSH
 * (IBA annex A19). Programs that were built with a later header use them. The numbers and offsets are the same as in
 * that header. */
#ifndef PUMICE_SRC_VERBS_BASE_VERBS_V45_H
#define PUMICE_SRC_VERBS_BASE_VERBS_V45_H

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#define VB_ACCESS_FLUSH_GLOBAL (1u << 8) /* enum ibv_access_flags, like the next one */
#define VB_ACCESS_FLUSH_PERSISTENT (1u << 9)
#define VB_EX_WITH_FLUSH (UINT64_C(1) << 11) /* enum ibv_qp_create_send_ops_flags */
#define VB_WR_FLUSH 14 /* enum ibv_wr_opcode */
#define VB_WC_FLUSH 8 /* enum ibv_wc_opcode */
#define VB_FLUSH_GLOBAL 1u /* enum ibv_placement_type, like the next one */
#define VB_FLUSH_PERSISTENT 2u
#define VB_FLUSH_MR 1u /* enum ibv_selectivity_level: the whole region; 0: a range */

/* struct ibv_qp_ex with the function that was added at its end. */
struct vb_qp_ex_v45 {
    unsigned char before[352];
    void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr, size_t len, uint8_t placement,
                     uint8_t selectivity);
};
_Static_assert(offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void (*)(void)) ==
                   offsetof(struct vb_qp_ex_v45, wr_flush),
               "wr_flush follows wr_atomic_write");

#endif
