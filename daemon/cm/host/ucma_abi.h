// SPDX-License-Identifier: BSD-2-Clause
/* The interface of Linux's rdma_cm device: <rdma/rdma_user_cm.h>, and what headers of older systems lack. */
#ifndef PUMICE_DAEMON_CM_HOST_UCMA_ABI_H
#define PUMICE_DAEMON_CM_HOST_UCMA_ABI_H

#include <netinet/in.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <stdint.h>
#include <sys/socket.h>

/* Commands of newer kernels. */
enum {
    UCMA_CMD_RESOLVE_IB_SERVICE = RDMA_USER_CM_CMD_JOIN_MCAST + 1,
    UCMA_CMD_WRITE_CM_EVENT,
    UCMA_CMDS, /* their number */
};
/* Events that a program sends to itself (enum rdma_cm_event_type). */
enum {
    UCMA_EVENT_USER = 18,
    UCMA_EVENT_INTERNAL = 19,
};

struct ucma_resolve_ib_service {
    uint32_t id, reserved;
    uint64_t service_id;
    uint8_t name[64];
    uint32_t flags, reserved2;
};
struct ucma_write_cm_event {
    uint32_t id, reserved, event, status;
    union {
        struct rdma_ucm_conn_param conn;
        struct rdma_ucm_ud_param ud;
        uint64_t arg;
    } param;
};

/* struct sockaddr_ib. */
#ifndef AF_IB
#define AF_IB 27
#endif
struct ucma_sockaddr_ib {
    uint16_t family;
    uint16_t pkey; /* network byte order, as all that follow */
    uint32_t flowinfo;
    uint8_t gid[16];
    uint64_t sid, sid_mask;
    uint64_t scope_id;
};
_Static_assert(sizeof(struct ucma_sockaddr_ib) == 48, "struct sockaddr_ib");

/* struct ibv_path_data: an entry of a QUERY_PATH reply and of the option IB_PATH. The path record is that of IBA
 * 15.2.5.16. */
struct ucma_path_data {
    uint32_t flags;
    uint32_t reserved;
    struct {
        uint64_t service_id; /* network byte order, as all that follow */
        uint8_t dgid[16], sgid[16];
        uint16_t dlid, slid;
        uint32_t flow_hop; /* flow label in bits 8 … 27, hop limit in bits 0 … 7 */
        uint8_t traffic_class;
        uint8_t reversible_count; /* reversible in bit 7 */
        uint16_t pkey;
        uint16_t qos_sl;
        uint8_t mtu, rate, lifetime; /* selector in bits 6 and 7 */
        uint8_t preference;
        uint8_t reserved[6];
    } path;
};
_Static_assert(sizeof(struct ucma_path_data) == 72, "struct ibv_path_data");
#define UCMA_PATH_FLAGS (uint32_t)(IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL)

#endif
