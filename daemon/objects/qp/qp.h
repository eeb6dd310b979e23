// SPDX-License-Identifier: BSD-2-Clause
/* A client's queue pair (QP): the engine's QP, and the rings that the client posts to. Also the handles of XRC target QPs, which belong
 * to no session. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_QP_H
#define PUMICE_DAEMON_OBJECTS_QP_QP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/core/engine.h"
#include "daemon/session/segment.h"
#include "daemon/session/wqe_ring.h"
#include "pumice/abi.h"

struct client_srq;
struct cq;
struct device;
struct held_layout;
struct membership;
struct pd;
struct session;
struct xrcd;
struct xrcd_open;

TAILQ_HEAD(held_list, held_layout); /* bound_layouts.h */
LIST_HEAD(membership_list, membership); /* mcast_group.h */

struct target_open { /* a handle of a target queue pair */
    struct session *session;
    struct client_qp *client_qp;
    struct xrcd_open *via;
    TAILQ_ENTRY(target_open) client_qp_link, session_link;
};

struct client_qp { /* queue pair: the engine's, and its rings */
    struct device *device;
    struct session *session; /* NULL: an XRC target */
    uint8_t type; /* enum qp_type */
    struct qp *qp;
    uint32_t qpn;
    void *mem; /* the engine's: the queue pair itself */
    void *queues; /* … and its queues */
    size_t queues_size;
    struct pd *pd; /* NULL, like the queues, where its type has none */
    struct cq *send_cq, *recv_cq;
    struct xrcd *xrcd; /* XRC targets; else NULL */
    TAILQ_HEAD(, target_open) openers; /* XRC targets; may be empty, see struct xrcd */
    TAILQ_ENTRY(client_qp) xrcd_link;
    struct client_srq *srq; /* NULL: it has its own receive queue */
    struct qp_caps caps;
    struct segment segment;
    struct pm_qp_page *page; /* hostile */
    struct ring sq, rq;
    uint32_t doorbell; /* DOORBELL_NONE: none */
    struct membership_list memberships; /* UD */
    struct held_list layouts; /* of bind requests that the engine has, and some that are done */
    bool in_backlog; /* in the device's list */
    bool in_failed; /* in the device's list */
    bool errored; /* it was noticed that the engine has it in ERR */
    bool overran; /* a completion of it was lost */
    const char *unreachable; /* why the connectivity check of its peer gave it up; NULL: it did not */
    const char *broken; /* what nonsense stood in its rings, which are not read any more; NULL: none */
    TAILQ_ENTRY(client_qp) backlog_link, failed_link;
};

/* A type of QP that the daemon offers, and its queues. */
struct client_qp_type {
    const char *name; /* "RC" … */
    uint32_t number; /* enum ibv_qp_type */
    bool send, recv; /* it has that queue */
};
/* NULL: the daemon does not offer that type. */
const struct client_qp_type *client_qp_type(uint32_t number);
const char *client_qp_type_name(const struct client_qp *q);

/* A QP that the session created, or an XRC target that it has open; NULL: it has none of that number. */
struct client_qp *client_qp_find(const struct session *s, uint32_t qpn);
/* Sends an asynchronous event (enum ibv_event_type) to the session of the QP, or to all that have the target open. */
void client_qp_event(struct client_qp *q, uint32_t type);
/* Puts the QP on the device's list of failed ones (failed_queues.h): it may be in ERR, or its rings are broken. */
void client_qp_mark_failed(struct client_qp *q);

/* Adds a handle of a target to a session. The memory of *o comes from the caller's malloc. */
void target_open_add(struct target_open *o, struct session *s, struct client_qp *q, struct xrcd_open *via);
/* Gives a handle back. The target stays, even if it was the last handle. */
void target_open_free(struct target_open *o);
/* One of the session's handles of target qpn; NULL: none. */
struct target_open *target_find(const struct session *s, uint32_t qpn);
/* Number of handles that the session has of a target. */
unsigned target_opens(const struct session *s, const struct client_qp *q);

#endif
