// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/profile/adapters.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>

#include "pumice/abi.h"

#define ODP_MESSAGE (IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV)
#define ODP_RDMA (IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ)

/* The driver gives all mlx5 adapters these values. It knows no FLUSH, no ATOMIC WRITE and no completion counters. */
#define MLX5(part)                                                                                                     \
    .vendor_id = 0x02c9, .vendor_part_id = (part), .max_mr_size = UINT64_MAX, .page_size_cap = ~UINT64_C(0xfff),       \
    .max_qp_wr = 32768, .max_sge = 30, .max_sge_rd = 30, .max_inline = 956, .max_ah = INT_MAX, .max_rd_atomic = 16,    \
    .max_init_rd_atomic = 16, .max_srq_wr = 32767, .max_srq_sge = 31, .max_pkeys = 128, .ack_delay = 16,               \
    .max_cq_period = 4095, .max_msg = 1u << 30, .gid_tbl_len = 255, .gid_v1 = 1, .queue_rule = PM_QUEUE_MLX5,          \
    .tm_strict = true

#define MLX5_ABSENT (PM_ABSENT_FLUSH | PM_ABSENT_SRQ_RESIZE | PM_ABSENT_COMP_CNTR)

const struct adapter adapters[PROFILES] = {
    [PROFILE_DEFAULT] = {.name = "default"},
    [PROFILE_CONNECTX_4] = {.name = "connectx-4",
                            .limits = {MLX5(4115), .cap_flags = 0xed721c36, .absent = MLX5_ABSENT | PM_ABSENT_TM}},
    [PROFILE_CONNECTX_6] = {.name = "connectx-6",
                            .limits = {MLX5(4123), .cap_flags = 0x21361c36,
                                       .odp_rc =
                                           ODP_MESSAGE | ODP_RDMA | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV,
                                       .odp_ud = IBV_ODP_SUPPORT_SEND,
                                       .odp_xrc = IBV_ODP_SUPPORT_SEND | ODP_RDMA | IBV_ODP_SUPPORT_ATOMIC |
                                                  IBV_ODP_SUPPORT_SRQ_RECV,
                                       .max_dm_kb = 128, .absent = MLX5_ABSENT}},
    [PROFILE_BLUEFIELD_3] = {.name = "bluefield-3",
                             .limits = {MLX5(41692), .hw_ver = 1, .cap_flags = 0x21361c36, .absent = MLX5_ABSENT}},
    [PROFILE_E810] = {.name = "e810",
                      .limits = {.vendor_id = 0x8086,
                                 .vendor_part_id = 0x1592,
                                 .hw_ver = 2,
                                 .cap_flags = 0x01221000,
                                 .max_mr_size = UINT64_C(0x200000000000),
                                 .page_size_cap = 0x40201000,
                                 .max_qp = 4092,
                                 .max_qp_wr = 4063,
                                 .max_queue_wr = 32768,
                                 .max_sge = 13,
                                 .max_sge_rd = 13,
                                 .max_inline = 101,
                                 .max_cq = 8189,
                                 .max_ah = 131072,
                                 .max_rd_atomic = 127,
                                 .max_init_rd_atomic = 255,
                                 .max_res_rd_atom = ADAPTER_NONE,
                                 .max_mcast_qp = 8,
                                 .ack_delay = ADAPTER_NONE,
                                 .max_msg = INT_MAX,
                                 .port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_REINIT_SUP | IBV_PORT_IP_BASED_GIDS,
                                 .gid_tbl_len = 32,
                                 .absent = PM_ABSENT_UC | PM_ABSENT_XRC | PM_ABSENT_SRQ | PM_ABSENT_ODP |
                                           PM_ABSENT_FLUSH | PM_ABSENT_ATOMICS | PM_ABSENT_DM | PM_ABSENT_TM |
                                           PM_ABSENT_QP_EX | PM_ABSENT_CQ_TIMES | PM_ABSENT_CQ_MODERATION |
                                           PM_ABSENT_COMP_CNTR,
                                 .queue_rule = PM_QUEUE_IRDMA}},
    [PROFILE_BCM57508] =
        {.name = "bcm57508",
         .limits = {.vendor_id = 0x14e4,
                    .vendor_part_id = 0x1750,
                    .cap_flags = 0x01225d81,
                    .max_mr_size = UINT64_C(1) << 39,
                    .page_size_cap = 0x7ffff000,
                    .max_sge = 6,
                    .max_sge_rd = 6,
                    .max_inline = 96,
                    .max_rd_atomic = 126,
                    .max_init_rd_atomic = 126,
                    .max_res_rd_atom = ADAPTER_NONE,
                    .atomic_cap = IBV_ATOMIC_GLOB,
                    .ack_delay = 16,
                    .max_msg = 1u << 30,
                    .port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_REINIT_SUP | IBV_PORT_DEVICE_MGMT_SUP |
                                      IBV_PORT_VENDOR_CLASS_SUP | IBV_PORT_IP_BASED_GIDS,
                    .gid_tbl_len = 256,
                    .gid_v1 = 1,
                    .absent = PM_ABSENT_UC | PM_ABSENT_XRC | PM_ABSENT_SRQ_RESIZE | PM_ABSENT_MW | PM_ABSENT_ODP |
                              PM_ABSENT_FLUSH | PM_ABSENT_MCAST | PM_ABSENT_DM | PM_ABSENT_TM | PM_ABSENT_QP_EX_KEYS |
                              PM_ABSENT_CQ_EX | PM_ABSENT_CQ_MODERATION | PM_ABSENT_REREG | PM_ABSENT_COMP_CNTR,
                    .queue_rule = PM_QUEUE_AS_ASKED,
                    .type_error = -EINVAL}},
    [PROFILE_RXE] = {.name = "rxe",
                     .limits = {.vendor_part_id = ADAPTER_NONE,
                                .cap_flags = UINT64_C(0x2001a23c76) | DEVICE_FLUSH_GLOBAL | DEVICE_ATOMIC_WRITE,
                                .max_qp_wr = 1u << 20,
                                .max_sge = 32,
                                .max_sge_rd = 32,
                                .max_inline = 512,
                                .max_cqe = 32767,
                                .max_mw = 4096,
                                .max_ah = 1u << 20,
                                .max_rd_atomic = 128,
                                .max_init_rd_atomic = 128,
                                .max_res_rd_atom = 258048,
                                .max_srq_sge = 27,
                                .max_mcast_qp = 56,
                                .max_pkeys = 64,
                                .max_msg = 0x800000,
                                .gid_tbl_len = 1024,
                                .absent = PM_ABSENT_XRC | PM_ABSENT_ODP | PM_ABSENT_DM | PM_ABSENT_TM |
                                          PM_ABSENT_CQ_TIMES | PM_ABSENT_CQ_MODERATION | PM_ABSENT_REREG |
                                          PM_ABSENT_COMP_CNTR,
                                .queue_rule = PM_QUEUE_RXE}},
};
