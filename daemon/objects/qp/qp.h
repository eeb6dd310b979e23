// SPDX-License-Identifier: BSD-2-Clause
/* The daemon's record of a client's QP: the engine's QP, and the rings that the client posts to. Also the sessions'
 * handles of XRC target QPs, because such a QP belongs to no session. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_QP_H
#define PUMICE_DAEMON_OBJECTS_QP_QP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/core/engine.h"
#include "daemon/objects/qp/slab.h"
#include "daemon/replay/stream.h"
#include "daemon/session/wqe_ring.h"
#include "pumice/abi.h"

struct client_srq;
struct cq;
struct device;
struct device_user;
struct held_layout;
struct membership;
struct pd;
struct session;
struct xrcd;
struct xrcd_open;

TAILQ_HEAD(held_list, held_layout); /* bound_layouts.h */
LIST_HEAD(membership_list, membership); /* mcast_group.h */

/* A session's handle of an XRC target QP. */
struct target_open {
    struct session *session;
    struct client_qp *client_qp;
    struct xrcd_open *via;
    TAILQ_ENTRY(target_open) client_qp_link, session_link;
};

/* A client's QP: the engine's QP, and its rings. */
struct client_qp {
    struct device *device;
    struct session *session; /* NULL: an XRC target */
    uint8_t type; /* enum ibv_qp_type; enum qp_type has the same values */
    struct qp *qp; /* its memory follows this struct */
    uint32_t qpn;
    struct slab_slot memory; /* its rings, and the engine's memory for its traffic */
    struct quota_owner owner; /* pays for it, also for an XRC target whose session has ended */
    struct device_user *user; /* the same user */
    /* PD and CQs. NULL: the type of the QP has none. */
    struct pd *pd;
    struct cq *send_cq, *recv_cq;
    struct xrcd *xrcd; /* XRC targets; otherwise NULL */
    TAILQ_HEAD(, target_open) openers; /* XRC targets; may be empty, see struct xrcd */
    TAILQ_ENTRY(client_qp) xrcd_link;
    struct client_srq *srq; /* NULL: it has its own receive queue */
    struct qp_caps caps;
    struct pm_qp_page *page; /* shared with the client, which may write anything to it */
    struct ring sq, rq;
    uint32_t doorbell; /* DOORBELL_NONE: none */
    struct membership_list memberships; /* UD */
    /* Handles of the completion counters, by kind of request. 0: none counts that kind. */
    uint32_t comp_cntr[CNTR_OPS];
    /* Layouts of the bind requests that the engine has, and of some that are done. */
    struct held_list layouts;
    struct qp_streams streams; /* numbers of the packets that it has sent, for recordings */
    bool in_backlog; /* in the device's list */
    bool in_failed; /* in the device's list */
    bool rq_watched; /* the client rings for receive requests, because the peer waits for them (e2e-credits) */
    bool recv_was_late; /* the last message that needed a receive request was refused, to be unkind */
    bool errored; /* the daemon has handled that the engine set the QP to ERR */
    bool gid_v1; /* the index of its source GID is that of an entry of RoCE v1 */
    bool overran; /* one of its completions was lost */
    /* Why the connectivity check of its peer failed. NULL: it did not fail. */
    const char *unreachable;
    /* Text about the invalid content of its rings, which the daemon no longer reads. NULL: the rings are valid. */
    const char *broken;
    TAILQ_ENTRY(client_qp) backlog_link, failed_link;
};

/* A QP type that the daemon offers, and its queues. */
struct client_qp_type {
    const char *name; /* "RC" … */
    uint32_t number; /* enum ibv_qp_type */
    bool send, recv; /* whether it has that queue */
};
/* NULL: the daemon does not offer that type. */
const struct client_qp_type *client_qp_type(uint32_t number);
const char *client_qp_type_name(const struct client_qp *q);

/* Returns a QP that the session created, or an XRC target that it has open. NULL: the session has no QP of that
 * number. */
struct client_qp *client_qp_find(const struct session *s, uint32_t qpn);
/* Sends an asynchronous event (enum ibv_event_type) to the QP's session, or to all sessions that have the target
 * open. */
void client_qp_event(struct client_qp *q, uint32_t type);
/* Puts the QP on the device's list of failed QPs (failed_queues.h), because it may be in ERR or its rings are
 * invalid. */
void client_qp_mark_failed(struct client_qp *q);

/* Adds a handle of a target to a session. The caller has allocated *o with malloc. */
void target_open_add(struct target_open *o, struct session *s, struct client_qp *q, struct xrcd_open *via);
/* Frees a handle. The target stays, even if this was its last handle. */
void target_open_free(struct target_open *o);
/* Returns one of the session's handles of target qpn; NULL: none. */
struct target_open *target_find(const struct session *s, uint32_t qpn);
/* Returns how many handles of a target the session has. */
unsigned target_opens(const struct session *s, const struct client_qp *q);

#endif
