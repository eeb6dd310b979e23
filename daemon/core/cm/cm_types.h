// SPDX-License-Identifier: BSD-2-Clause
/* The types that connection management (cm.h) and its owner exchange: addresses, parameters, events, datagrams. Numbers
 * that exist in the interface of Linux (rdma_cm events, port spaces, QP types) have the same values here. */
#ifndef PUMICE_DAEMON_CORE_CM_CM_TYPES_H
#define PUMICE_DAEMON_CORE_CM_CM_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/base/types.h"
#include "wire/cm_ip.h"
#include "wire/cm_msg.h"

#define CM_PRIVATE_DATA_MAX 256u /* as RDMA_MAX_PRIVATE_DATA; messages carry less */
#define CM_NO_DEVICE UINT32_MAX

/* An IP address with a port. */
struct cm_addr {
    bool v6; /* the family that the program chose; for a wildcard the address does not tell it */
    uint8_t gid[16]; /* IPv4 as ::ffff:a.b.c.d. Wildcard: :: or ::ffff:0.0.0.0 */
    uint16_t port; /* host byte order; 0: none */
};

/* The path between two addresses, which the owner found. */
struct cm_route {
    uint32_t device; /* the owner's index of the local device */
    uint8_t sgid_index; /* of the local address */
    uint8_t path_mtu; /* enum ibv_mtu */
    uint64_t node_guid; /* of the device, host byte order */
    uint8_t traffic_class, hop_limit;
};

/* As struct rdma_conn_param: what connect and accept exchange. */
struct cm_conn_param {
    uint32_t qp_num, qkey;
    uint8_t responder_resources, initiator_depth;
    uint8_t flow_control, retry_count, rnr_retry_count, srq;
    uint8_t private_data_len;
    uint8_t private_data[CM_PRIVATE_DATA_MAX];
};
/* Enhanced connection establishment: the vendor's options of the two QPs. Both 0: none. */
struct cm_ece {
    uint32_t vendor_id, attr_mod;
};

/* As enum rdma_cm_event_type. */
enum cm_event_type {
    CM_EVENT_ADDR_RESOLVED = 0,
    CM_EVENT_ADDR_ERROR = 1,
    CM_EVENT_ROUTE_RESOLVED = 2,
    CM_EVENT_ROUTE_ERROR = 3,
    CM_EVENT_CONNECT_REQUEST = 4,
    CM_EVENT_CONNECT_RESPONSE = 5,
    CM_EVENT_CONNECT_ERROR = 6,
    CM_EVENT_UNREACHABLE = 7,
    CM_EVENT_REJECTED = 8,
    CM_EVENT_ESTABLISHED = 9,
    CM_EVENT_DISCONNECTED = 10,
    CM_EVENT_DEVICE_REMOVAL = 11,
    CM_EVENT_MULTICAST_JOIN = 12,
    CM_EVENT_MULTICAST_ERROR = 13,
    CM_EVENT_ADDR_CHANGE = 14,
    CM_EVENT_TIMEWAIT_EXIT = 15,
};

struct cm_id; /* opaque */

struct cm_event {
    struct cm_id *id; /* CONNECT_REQUEST: the new ID; its owner pointer is NULL until cm_id_set_owner */
    struct cm_id *listener; /* CONNECT_REQUEST: where the request came in; else NULL */
    uint8_t type; /* enum cm_event_type */
    int32_t status; /* 0, -errno, or the reason of a reject (enum cm_reject_reason), as Linux reports it */
    bool ud; /* the event carries an address handle: remote QP and Q_Key are in param */
    struct av av; /* ud */
    struct cm_conn_param param; /* with the peer's private data */
    struct cm_ece ece; /* the peer's */
};

/* The attributes that a QP needs for a state, as rdma_init_qp_attr gives them. */
struct cm_qp_attr {
    uint32_t mask; /* enum qp_attr_mask */
    struct qp_attr attr;
};

/* A datagram of the general service interface, in or out. */
struct cm_datagram {
    uint32_t device;
    uint8_t sgid_index; /* out: the local address */
    uint8_t local_gid[16], remote_gid[16];
    uint8_t traffic_class, hop_limit;
    /* out: the local QP of the connection, if its ID has been destroyed and the program may be gone. Otherwise 0. */
    uint32_t abandoned_qpn;
    uint8_t mad[MAD_LEN];
};

#endif
