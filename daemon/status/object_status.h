// SPDX-License-Identifier: BSD-2-Clause
/* Describes objects of clients as JSON, one function for each kind (QPs: qp_status.h). Each returns a new reference.
 *
 * SRQ: srq (handle), session, type ("basic", "XRC", "TM"), srqn, xrcd (null: not of XRC), cq (null: not of XRC or TM),
 *     pd, qps (how many use it), max, limit (0: not armed), posted (requests that the engine has),
 *     ring (requests that the client wrote and the daemon has not read; null: the ring is broken),
 *     broken (text, or null), tm (see tm_status.h; null: no tag matching)
 * XRCD: xrcd (number), inode (null: anonymous), and the number of its opens, srqs, targets
 * CQ: cq (handle), session, entries, unread (null: the index is broken), overrun, armed ("no", "solicited", "any";
 *     null: the client wrote an invalid value), channel
 * COMP_CNTR: comp_cntr (handle), session, type ("requests", "bytes"), done, failed, users (how often it is attached,
 *     each kind of request of a QP counts)
 * MR: key, session, pd, va, length, access (enum ibv_access_flags)
 * MW: key (its low byte, which changes, is 0), session, pd, type, max_entries
 * GROUP: gid, members (multicast) */
#ifndef PUMICE_DAEMON_STATUS_OBJECT_STATUS_H
#define PUMICE_DAEMON_STATUS_OBJECT_STATUS_H

#include <jansson.h>

struct client_comp_cntr;
struct client_srq;
struct cq;
struct mcast_group;
struct mr;
struct mw;
struct ring;
struct xrcd;

json_t *srq_status(const struct client_srq *q);
json_t *xrcd_status(const struct xrcd *x);
json_t *cq_status(const struct cq *cq);
json_t *comp_cntr_status(const struct client_comp_cntr *c);
json_t *mr_status(const struct mr *mr);
json_t *mw_status(const struct mw *mw);
json_t *mcast_group_status(const struct mcast_group *g);
/* Requests in a ring that the daemon has not read; null: the ring is broken. */
json_t *ring_status(const struct ring *r);

#endif
