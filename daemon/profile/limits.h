// SPDX-License-Identifier: BSD-2-Clause
/* The limits of a device: the most that any can have, and those of one. */
#ifndef PUMICE_DAEMON_PROFILE_LIMITS_H
#define PUMICE_DAEMON_PROFILE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/base/types.h"

/* The most that a device of Pumice can have, whatever its profile. Without a profile, these are its limits, but for
 * DEVICE_MAX_QP_WR. */
#define DEVICE_MAX_QP 65536u
#define DEVICE_MAX_CQ 16384u /* per session */
#define DEVICE_MAX_CQE 262144u
#define DEVICE_MAX_MR (1u << 17)
#define DEVICE_MAX_MW (1u << 17)
#define DEVICE_MAX_PD 32768u
#define DEVICE_MAX_SRQ 16384u
#define DEVICE_MAX_XRCD 4096u /* each keeps a file open */
#define DEVICE_MAX_CHANNELS 4096u /* per session */
#define DEVICE_MAX_MCAST_GRP 1024u /* each has its own socket */
#define DEVICE_MAX_MCAST_QP 128u /* per group */
#define DEVICE_MAX_QP_WR 16384u
#define DEVICE_MAX_MSG (1u << 31)
#define DEVICE_MAX_RD_ATOMIC ENGINE_MAX_RD_ATOMIC

/* Flags of device_cap_flags_ex that later headers define: IB_UVERBS_DEVICE_FLUSH_GLOBAL and
 * IB_UVERBS_DEVICE_ATOMIC_WRITE. */
#define DEVICE_FLUSH_GLOBAL (UINT64_C(1) << 38)
#define DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)

/* The limits of a device, with the names of struct ibv_device_attr where it has them. */
struct device_limits {
    uint32_t vendor_id, vendor_part_id, hw_ver;
    uint64_t cap_flags; /* device_cap_flags_ex */
    uint64_t max_mr_size, page_size_cap;
    uint32_t max_qp, max_qp_wr, max_sge, max_sge_rd, max_inline;
    uint32_t max_queue_wr; /* requests that a queue of a QP can have, where a driver takes more than max_qp_wr */
    uint32_t max_cq, max_cqe, max_mr, max_mw, max_pd, max_ah;
    uint32_t max_rd_atomic; /* max_qp_rd_atom: as responder */
    uint32_t max_init_rd_atomic; /* max_qp_init_rd_atom: as requester */
    uint32_t max_res_rd_atom;
    uint32_t atomic_cap; /* enum ibv_atomic_cap */
    uint32_t max_srq, max_srq_wr, max_srq_sge, max_xrcd; /* 0: there are none */
    uint32_t max_mcast_grp, max_mcast_qp; /* groups of the device, QPs in one group */
    uint32_t max_pkeys, ack_delay;
    uint32_t odp_rc, odp_uc, odp_ud, odp_xrc; /* enum ibv_odp_transport_cap_bits; all 0: those of Pumice, or none */
    uint32_t max_dm_kb; /* device memory of a context, in KiB */
    uint32_t max_cq_period; /* of CQ moderation, in us */
    uint32_t max_msg; /* max_msg_sz of the port */
    uint32_t port_cap_flags;
    uint32_t gid_tbl_len; /* 0: as many as there can be addresses */
    uint8_t gid_v1; /* 1: the GID table has each address twice, of RoCE v1 and of RoCE v2 */
    uint32_t absent; /* enum pm_absent */
    uint8_t queue_rule; /* enum pm_queue_rule */
    bool tm_strict; /* tag matching has the limits of adapters */
    int type_error; /* -errno for QPs of a type that the device does not have */
};

#endif
