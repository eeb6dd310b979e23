// SPDX-License-Identifier: BSD-2-Clause
/* Connection management of one host, as Linux's rdma_cm and ib_cm do it together: IDs with addresses and ports,
 * listeners, connections by REQ, REP and RTU, datagram services by SIDR, disconnection, time wait. One instance serves
 * all devices of the host, so that a port belongs to one listener whatever session it is in.
 *
 * It is pure, like the engine: no I/O, clock, allocation or randomness. Its owner (the daemon's connection management thread, or the
 * simulator) drives it:
 *
 *     programs:   cm_id_create, cm_bind, cm_connect, …      0 or -errno, as the system calls of Linux
 *     network:    cm_rx
 *     timers:     cm_expire when now >= cm_deadline
 *     then, until both are empty:
 *         cm_pop_event        for the programs
 *         cm_pop_datagram     to the network
 *
 * An ID that cm_id_destroy was called for is gone for its owner, and its events with it. The instance keeps what the
 * protocol still needs: a DREQ that was not answered, the time wait of a QP number.
 *
 * An ID belongs to nobody between its CONNECT_REQUEST event and cm_id_set_owner. Its later events wait until then.
 *
 * One thread must make all calls. Time is CLOCK_MONOTONIC-like nanoseconds and never runs backwards. */
#ifndef PUMICE_DAEMON_CORE_CM_CM_H
#define PUMICE_DAEMON_CORE_CM_CM_H

#include <stddef.h>

#include "daemon/core/base/permute.h"
#include "daemon/core/cm/cm_types.h"

struct cm; /* opaque */

struct cm_config {
    uint32_t max_ids; /* IDs and connections in time wait that can exist at once */
    /* Of communication IDs, transaction IDs, ephemeral ports and first PSNs: nobody can tell the next one. */
    struct permute_secret secret;
    uint8_t response_timeout; /* of this host's programs: 4.096 us * 2^n; Linux uses 20 (4 s) */
    uint8_t max_retries; /* of a message without an answer; Linux uses 15 */
    uint8_t packet_life; /* 4.096 us * 2^n: of the time wait and of the ACK timeout of QPs */
    uint8_t ack_delay; /* local_ca_ack_delay of the devices */
    uint16_t first_port, last_port; /* ephemeral ports */
};
void cm_config_defaults(struct cm_config *cfg);

/* Bytes of zeroed memory that cm_init wants. Most of it is touched only when it is used. */
size_t cm_size(const struct cm_config *cfg);
struct cm *cm_init(void *mem, const struct cm_config *cfg);

/* --- IDs ------------------------------------------------------------------------------------------ */

/* qp_type: enum ibv_qp_type. -ENOMEM: max_ids. -EPROTONOSUPPORT: port space or QP type. */
int cm_id_create(struct cm *cm, uint16_t port_space, uint8_t qp_type, void *owner, struct cm_id **out);
/* Ends the ID. If it has a peer, the peer is told: by a REJ while it connects, by a DREQ when it is connected. Children
 * of a listener that nobody owns yet are rejected. */
void cm_id_destroy(struct cm_id *id, uint64_t now);
void *cm_id_owner(const struct cm_id *id);
void cm_id_set_owner(struct cm_id *id, void *owner);

enum cm_option {
    CM_OPTION_TOS, /* 1 byte: traffic class of the QP and of the messages */
    CM_OPTION_REUSEADDR,
    CM_OPTION_AFONLY,
    CM_OPTION_ACK_TIMEOUT, /* local ACK timeout of the QP, at most 31 */
};
/* -EINVAL: too late in the life of the ID, or the value is out of range. */
int cm_set_option(struct cm_id *id, enum cm_option option, uint32_t value);

/* Binds to a local address. device: of that address; CM_NO_DEVICE for a wildcard. Port 0: an ephemeral one is chosen.
 * -EADDRINUSE: another ID has the port of this address. -EADDRNOTAVAIL: another ID has the port of all addresses, or of
 * an address while this one is a wildcard. -EINVAL: already bound. */
int cm_bind(struct cm_id *id, const struct cm_addr *addr, const struct cm_route *route);
/* The owner has found the route to an address. src: the local address that packets will have. Queues ADDR_RESOLVED.
 * Binds the ID first, if it is not bound. */
int cm_addr_resolved(struct cm_id *id, const struct cm_addr *src, const struct cm_addr *dst,
                     const struct cm_route *route);
/* The owner found none. Queues ADDR_ERROR with this status (-errno). */
int cm_addr_failed(struct cm_id *id, int status);
/* Queues ROUTE_RESOLVED: RoCE needs no answer of a subnet administrator. -EINVAL: no address is resolved. */
int cm_resolve_route(struct cm_id *id);

/* backlog: requests that have no owner yet; the instance forgets further ones, and their peers repeat them. Binds to an
 * ephemeral port of all addresses, if the ID is not bound. -EADDRINUSE, -EADDRNOTAVAIL: an ID with REUSEADDR has the
 * port, too. */
int cm_listen(struct cm_id *id, uint32_t backlog);
/* Sends a REQ; a SIDR_REQ if the port space is that of datagrams. -EINVAL: no route, or the private data are too long. */
int cm_connect(struct cm_id *id, const struct cm_conn_param *param, const struct cm_ece *ece, uint64_t now);
/* Passive side: sends a REP or SIDR_REP. Active side after CONNECT_RESPONSE (the program moved the QP itself), param
 * NULL: sends the RTU. -EINVAL: not in this state, not with this param (NULL: a connection of the passive side), or the
 * private data are too long; a peer that waits is then rejected, as in Linux. */
int cm_accept(struct cm_id *id, const struct cm_conn_param *param, const struct cm_ece *ece, uint64_t now);
/* reason 0: CM_REJ_CONSUMER_DEFINED. */
int cm_reject(struct cm_id *id, uint8_t reason, const uint8_t *private_data, uint8_t len, uint64_t now);
/* Forgets a request that nobody has answered, because there is no room for it. Its peer is not told: it repeats the
 * request, which is then a new one. The ID ends. */
void cm_forget_request(struct cm_id *id);
/* Sends a DREQ, or answers the peer's. Moving the QP to ERR is the program's. */
int cm_disconnect(struct cm_id *id, uint64_t now);
/* The QP received a message before the RTU came (IBV_EVENT_COMM_EST). Other events: -EINVAL. */
int cm_notify(struct cm_id *id, uint32_t event, uint64_t now);
/* Gives the attributes of rdma_init_qp_attr for this QP state (INIT, RTR, RTS). -EINVAL: not in this state of the ID. */
int cm_init_qp_attr(const struct cm_id *id, uint8_t qp_state, struct cm_qp_attr *out);
/* Queues an event of the owner's for the ID: MULTICAST_JOIN, MULTICAST_ERROR, DEVICE_REMOVAL, ADDR_CHANGE. */
void cm_post_event(struct cm_id *id, const struct cm_event *ev);

/* The state and addresses of an ID, for queries and for `pumice status`. */
enum cm_id_state {
    CM_ID_IDLE,
    CM_ID_BOUND,
    CM_ID_LISTEN,
    CM_ID_ADDR_RESOLVED,
    CM_ID_ROUTE_RESOLVED,
    CM_ID_REQ_SENT, /* connecting: waits for the REP or SIDR_REP */
    CM_ID_REQ_RECEIVED, /* CONNECT_REQUEST was reported */
    CM_ID_REP_SENT, /* accepted: waits for the RTU */
    CM_ID_REP_RECEIVED, /* CONNECT_RESPONSE was reported: the program must accept */
    CM_ID_ESTABLISHED,
    CM_ID_DREQ_SENT,
    CM_ID_DREQ_RECEIVED,
    CM_ID_TIME_WAIT,
    CM_ID_DISCONNECTED, /* rejected, unreachable, or time wait is over */
};
const char *cm_id_state_name(enum cm_id_state state);
struct cm_id_info {
    enum cm_id_state state;
    uint16_t port_space;
    uint8_t qp_type;
    struct cm_addr src, dst; /* port 0 and gid 0: none */
    struct cm_route route; /* device CM_NO_DEVICE: none */
    uint32_t backlog, waiting; /* listeners: limit, and requests that were not answered */
    uint32_t local_comm_id, remote_comm_id;
    uint32_t local_qpn, remote_qpn;
    uint8_t retries; /* of the current message, so far */
    uint16_t last_reject; /* reason of the REJ that ended it; 0: none */
    bool sent_reject; /* last_reject was ours */
    int32_t last_status; /* -errno of UNREACHABLE and the like; 0: none */
};
void cm_id_query(const struct cm_id *id, struct cm_id_info *out);
/* All IDs, also those that have no owner any more. NULL begins; returns NULL at the end. */
struct cm_id *cm_id_next(struct cm *cm, const struct cm_id *id);

/* --- network, events and time ---------------------------------------------------------------------- */

/* Takes in a MAD that came to QP 1. node_guid, path_mtu: of the device that got it, in route. */
void cm_rx(struct cm *cm, const struct cm_datagram *d, const struct cm_route *route, uint64_t now);
bool cm_pop_datagram(struct cm *cm, struct cm_datagram *out);
/* The oldest event of any ID that has an owner. CONNECT_REQUEST: of a listener that has one. */
bool cm_pop_event(struct cm *cm, struct cm_event *out);
uint64_t cm_deadline(const struct cm *cm);
void cm_expire(struct cm *cm, uint64_t now);

/* Messages by attribute and direction, retransmissions, rejects, and what was dropped. X(name, what it counts). */
#define CM_COUNTERS(X)                                                                                                 \
    X(req_sent, "REQ and SIDR_REQ messages sent")                                                                      \
    X(req_received, "REQ and SIDR_REQ messages received")                                                              \
    X(rep_sent, "REP and SIDR_REP messages sent")                                                                      \
    X(rep_received, "REP and SIDR_REP messages received")                                                              \
    X(rtu_sent, "RTU messages sent")                                                                                   \
    X(rtu_received, "RTU messages received")                                                                           \
    X(rej_sent, "REJ messages sent")                                                                                   \
    X(rej_received, "REJ messages received")                                                                           \
    X(dreq_sent, "DREQ messages sent")                                                                                 \
    X(dreq_received, "DREQ messages received")                                                                         \
    X(drep_sent, "DREP messages sent")                                                                                 \
    X(drep_received, "DREP messages received")                                                                         \
    X(mra_sent, "MRA messages sent")                                                                                   \
    X(mra_received, "MRA messages received")                                                                           \
    X(lap_received, "LAP messages received and refused")                                                               \
    X(retries, "messages sent again")                                                                                  \
    X(duplicates, "messages received again")                                                                           \
    X(bad_messages, "MADs dropped: not a message, or of no connection here")                                           \
    X(timeouts, "messages given up after all retries")                                                                 \
    X(established, "connections established")                                                                          \
    X(no_room, "requests dropped: too many IDs")
struct cm_counters {
#define X(name, text) uint64_t name; /* text */
    CM_COUNTERS(X)
#undef X
};
const struct cm_counters *cm_counters(const struct cm *cm);

#endif
