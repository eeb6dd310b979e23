// SPDX-License-Identifier: BSD-2-Clause
/* The handlers of the messages that the instance receives, and of its timers. The functions for programs
 * are beside those of the other side of their exchange:
 *     connect.c      cm_connect, and REPs
 *     accept.c       REQs, cm_accept, RTUs, cm_notify
 *     reject.c       cm_reject, REJs, MRAs, LAPs
 *     disconnect.c   cm_disconnect, cm_id_destroy, DREQs, DREPs, time wait
 *     sidr.c         datagram services
 *     address.c      cm_id_create, cm_bind, cm_listen, cm_addr_resolved, …
 *     qp_attr.c      cm_init_qp_attr
 *     instance.c     cm_init, cm_rx, cm_expire, queries
 * All handlers count what they drop. */
#ifndef PUMICE_DAEMON_CORE_CM_HANDLERS_H
#define PUMICE_DAEMON_CORE_CM_HANDLERS_H

#include "daemon/core/cm/cm_id.h"
#include "daemon/core/cm/message.h"

/* --- active side -------------------------------------------------------------------------------- */

void handle_rep(const struct received *r);
/* Accepts the REP: sends the RTU. */
int connect_finish(struct cm_id *id, uint64_t now);
/* Finds an ID that the peer of a message names. NULL, and the message is counted as bad: there is none, or the message
 * comes from elsewhere. */
struct cm_id *find_peer(const struct received *r, uint32_t local, uint32_t remote);
/* The private data of a REQ or SIDR_REQ, `size` bytes: the IP header, then the program's. -EINVAL: they are too long. */
int write_private_data(const struct cm_id *id, const struct cm_conn_param *param, uint8_t *data, uint32_t size);

/* --- passive side ------------------------------------------------------------------------------- */

void handle_req(const struct received *r);
void handle_rtu(const struct received *r);
/* The listener of a service ID, for the address that the message came to. h: from the private data. NULL: there is none. */
struct cm_id *find_listener(const struct received *r, uint64_t service_id, const struct cm_ip_header *h);
/* A new ID of a listener, with the addresses of the message. NULL: no room, and the message is dropped, so that the peer
 * repeats it. */
struct cm_id *new_child(const struct received *r, struct cm_id *listener, uint8_t qp_type,
                        const struct cm_ip_header *h);
/* Reports CONNECT_REQUEST. The private data begin behind the IP header. ev: what the message says of the peer's QP. */
void report_request(struct cm_id *child, struct cm_event *ev, const uint8_t *private_data, uint32_t len);

/* --- rejecting and disconnecting -------------------------------------------------------------------- */

void handle_rej(const struct received *r);
void handle_mra(const struct received *r);
void handle_lap(const struct received *r);
void handle_dreq(const struct received *r);
void handle_drep(const struct received *r);
/* Sends a REJ for the state of the ID. The ID is then disconnected, or in time wait. */
void send_reject(struct cm_id *id, uint8_t reason, const uint8_t *private_data, uint8_t len, uint64_t now);
/* No connection, and none to come. */
void set_disconnected(struct cm_id *id);
/* The same, but for a while the peer's message is known if it comes again: the kept message answers it, if there is one. A
 * late copy of a REQ is thus no new request. */
void set_disconnected_but_known(struct cm_id *id, uint64_t now);
void enter_time_wait(struct cm_id *id, uint64_t now);
/* Sends a DREQ. Only in ESTABLISHED. */
void send_dreq(struct cm_id *id, uint64_t now);
/* The timer of the ID fired. */
void handle_timer(struct cm_id *id, uint64_t now);

/* --- datagram services ------------------------------------------------------------------------------ */

void handle_sidr_req(const struct received *r);
void handle_sidr_rep(const struct received *r);
int sidr_connect(struct cm_id *id, const struct cm_conn_param *param, uint64_t now);
/* param NULL: without private data. */
int sidr_accept(struct cm_id *id, const struct cm_conn_param *param, const struct cm_ece *ece, uint64_t now);
/* -EINVAL: it is answered already, or the private data are too long. */
int sidr_reject(struct cm_id *id, enum cm_sidr_status status, const uint8_t *private_data, uint8_t len, uint64_t now);

#endif
