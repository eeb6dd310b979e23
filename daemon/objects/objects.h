// SPDX-License-Identifier: BSD-2-Clause
/* The objects of a session. Each keeps a count of those that use it and can't be destroyed before them; a session that
 * ends takes them down in the order queue pairs, shared receive queues, completion queues, channels, memory windows,
 * memory regions, protection domains. */
#ifndef PUMICE_DAEMON_OBJECTS_H
#define PUMICE_DAEMON_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/core/engine.h"
#include "daemon/core/tm/tag_list.h"
#include "daemon/objects/bound_layouts.h"
#include "daemon/objects/mcast_group.h"
#include "daemon/session/control.h"
#include "daemon/session/event_pipe.h"
#include "daemon/session/segment.h"
#include "daemon/session/wqe_ring.h"

struct session;

struct pd { /* protection domain */
    struct session *session;
    uint32_t number; /* the handle; unique on the device */
    unsigned users;
};

struct mr { /* memory region */
    struct pd *pd;
    uint32_t key;
    uint64_t va, length; /* for status */
    uint32_t access;
};

struct mw { /* memory window */
    struct pd *pd;
    uint32_t key; /* as it was given out; the upper 24 bits stay */
    uint8_t type; /* enum mw_type */
    uint32_t max_entries; /* of layouts; 0: it can't be bound to any */
    void *shape; /* the engine's, for layouts; NULL: none */
};

struct channel { /* completion channel */
    struct session *session;
    uint32_t handle;
    unsigned users;
    struct event_pipe pipe;
};

struct cq { /* completion queue */
    struct session *session;
    uint32_t handle;
    unsigned users;
    struct segment segment;
    struct segment next; /* what a resize has made, until the client switches to it */
    struct pm_cq_page *page; /* hostile */
    struct pm_cqe *entries; /* written only */
    uint32_t slots, next_slots;
    uint32_t producer; /* next index to write */
    uint32_t seen_consumer; /* as last loaded; saves touching the client's line */
    bool ignore_overrun;
    bool overrun; /* it has stopped: IBV_EVENT_CQ_ERR was sent */
    struct channel *channel; /* NULL: none */
    uint32_t bell; /* UINT32_MAX: none */
    bool dirty; /* in the device's list */
    bool solicited; /* one of the entries since the last notification wakes those who wait for solicited ones */
    TAILQ_ENTRY(cq) dirty_link;
    uint32_t moderate_count; /* an event for so many entries; 0: no moderation */
    uint64_t moderate_ns; /* or so long after the first of them */
    uint32_t unreported; /* entries since the last notification */
    bool held; /* in the device's list: an event waits for more entries, or for the time in due */
    uint64_t due;
    TAILQ_ENTRY(cq) held_link;
};

/* An XRC domain belongs to the device: to the sessions that have it open, each by a handle of its own. Its target queue
 * pairs belong to it, not to a session: they end when the last of their openers destroys them, or with the domain, but
 * not with the process that made them (row B13). */
struct xrcd {
    struct device *device;
    uint32_t number; /* the engine's; unique on the device */
    int fd; /* O_PATH, of the file that names it: while it is open, the inode's number is not given to another file; */
    /* -1: anonymous */
    dev_t dev;
    ino_t ino;
    unsigned opens; /* struct xrcd_open */
    unsigned srqs;
    TAILQ_HEAD(, client_qp) targets;
};

struct xrcd_open {
    struct session *session;
    uint32_t handle;
    struct xrcd *xrcd;
    unsigned users; /* SRQs and target queue pairs of the session that came by this handle */
};

struct target_open { /* a handle of a target queue pair */
    struct session *session;
    struct client_qp *client_qp;
    struct xrcd_open *via;
    TAILQ_ENTRY(target_open) client_qp_link, session_link;
};

struct tm_srq { /* of a shared receive queue that matches tags: the engine's list, and the ring of its operations */
    struct tag_list *tm; /* NULL: it matches no tags */
    void *mem; /* the engine's */
    size_t mem_size;
    struct tm_params params;
    struct ring ring;
    uint8_t *base; /* of the ring; written only */
    bool waiting; /* in the device's list: there was no room for the completion of the operation at the ring's head */
    TAILQ_ENTRY(client_srq) waiting_link;
};

struct client_srq { /* shared receive queue: the engine's, and its ring */
    struct session *session;
    uint32_t handle;
    unsigned users; /* queue pairs */
    struct srq *srq;
    void *mem; /* the engine's */
    size_t mem_size;
    struct pd *pd;
    struct xrcd_open *xrcd; /* XRC; else NULL */
    struct cq *cq; /* XRC, tag matching; else NULL */
    uint32_t max_wr, max_sge;
    struct segment segment;
    struct segment next; /* what a resize has made, until the client switches to it, */
    uint32_t next_max_wr; /* and for how many requests */
    struct pm_srq_page *page; /* hostile */
    struct ring ring;
    struct tm_srq list;
    uint32_t bell;
    bool in_failed; /* in the device's list */
    bool errored; /* its users were failed */
    const char *broken; /* what nonsense stood in its ring, which is not read any more; NULL: none */
    TAILQ_ENTRY(client_srq) failed_link;
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
    uint32_t bell; /* UINT32_MAX: none */
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

/* --- control operations
 * ------------------------------------------------------------------------------------------------ */
/* Each takes the payload that abi.h has for it. 0, or -errno told in *rp. */

int pd_alloc(struct session *s, const void *rq, struct control_reply *rp);
int pd_dealloc(struct session *s, const void *rq, struct control_reply *rp);
int mr_reg(struct session *s, const void *rq, struct control_reply *rp);
int mr_rereg(struct session *s, const void *rq, struct control_reply *rp);
int mr_dereg(struct session *s, const void *rq, struct control_reply *rp);
int mw_alloc_window(struct session *s, const void *rq, struct control_reply *rp);
int mw_dealloc_window(struct session *s, const void *rq, struct control_reply *rp);
int channel_create(struct session *s, const void *rq, struct control_reply *rp);
int channel_destroy(struct session *s, const void *rq, struct control_reply *rp);
int cq_create(struct session *s, const void *rq, struct control_reply *rp);
int cq_resize(struct session *s, const void *rq, struct control_reply *rp);
int cq_switch(struct session *s, const void *rq, struct control_reply *rp);
int cq_modify(struct session *s, const void *rq, struct control_reply *rp);
int cq_destroy(struct session *s, const void *rq, struct control_reply *rp);
int client_srq_create(struct session *s, const void *rq, struct control_reply *rp);
int client_srq_modify(struct session *s, const void *rq, struct control_reply *rp);
int client_srq_resize(struct session *s, const void *rq, struct control_reply *rp);
int client_srq_switch(struct session *s, const void *rq, struct control_reply *rp);
int client_srq_query(struct session *s, const void *rq, struct control_reply *rp);
int client_srq_destroy(struct session *s, const void *rq, struct control_reply *rp);
int client_qp_create(struct session *s, const void *rq, struct control_reply *rp);
int client_qp_modify(struct session *s, const void *rq, struct control_reply *rp);
int client_qp_query(struct session *s, const void *rq, struct control_reply *rp);
int client_qp_destroy(struct session *s, const void *rq, struct control_reply *rp);
int mcast_group_attach(struct session *s, const void *rq, struct control_reply *rp);
int mcast_group_detach(struct session *s, const void *rq, struct control_reply *rp);
int xrcd_open(struct session *s, const void *rq, struct control_reply *rp);
int xrcd_close(struct session *s, const void *rq, struct control_reply *rp);
int target_open_qp(struct session *s, const void *rq, struct control_reply *rp);

/* Free one that nobody uses. */
void pd_free(struct pd *pd);
void mr_free(struct session *s, struct mr *mr);
void mw_free(struct session *s, struct mw *mw); /* bound or not */
void channel_free(struct channel *ch);
void cq_free(struct cq *cq);
void client_srq_free(struct client_srq *srq);
void client_qp_free(struct client_qp *q);
/* The last one of a domain takes the domain and its targets along. */
void xrcd_open_free(struct xrcd_open *o);

/* --- XRC targets
 * ---------------------------------------------------------------------------------------------------------- */

/* One more handle of a target for a session; the room for it comes from the caller's malloc. */
void target_open_add(struct target_open *o, struct session *s, struct client_qp *q, struct xrcd_open *via);
/* Gives a handle back; the target stays, even if it was the last. */
void target_open_free(struct target_open *o);
/* One of the handles that the session has of target qpn; NULL: none. */
struct target_open *target_find(const struct session *s, uint32_t qpn);
/* How many handles the session has of a target. */
unsigned target_opens(const struct session *s, const struct client_qp *q);

/* A queue pair that the session made, or an XRC target that it has open; NULL: none of that number. */
struct client_qp *client_qp_find(const struct session *s, uint32_t qpn);
/* Tells all who have it of an asynchronous event (enum ibv_event_type). */
void client_qp_event(struct client_qp *q, uint32_t type);
const char *client_qp_type_name(const struct client_qp *q); /* "RC" … */

/* --- completions
 * ------------------------------------------------------------------------------------------------------- */

/* Writes an entry; whoever waits is told by cq_notify, later, for all entries of a pass together. False: the queue has
 * overrun, and the entry is lost. */
bool cq_publish(struct cq *cq, const struct completion *c);
void cq_notify(struct cq *cq, uint64_t now);
/* Sends the events whose time has come (struct device.held_cqs). Returns how many. */
unsigned cq_release_held(struct device *d, uint64_t now);

/* --- rings
 * ------------------------------------------------------------------------------------------------------------- */

/* Reads send requests into the engine, a bounded number at a time; what is left puts the queue pair on the device's
 * backlog. Returns how many were taken. */
unsigned client_qp_drain_send(struct client_qp *q, uint64_t now);
/* Reads receive requests; called back by the engine (mem_ops.refill), too. */
void client_qp_refill(void *client_qp);
/* The queue pair's doorbell rang. */
void client_qp_rang(void *client_qp, uint64_t now);
/* Puts it on the device's list of those that client_qp_settle is to look after: it may be in ERR, or its rings are broken.
 */
void client_qp_mark_failed(struct client_qp *q);
/* Does what follows from that: asks the client to ring for receive requests, too, and flushes its rings. */
void client_qp_settle(struct client_qp *q, uint64_t now);
/* After the state became RESET: what was in the rings is gone. */
void client_qp_reset_rings(struct client_qp *q);

/* Reads requests into the SRQ; called back by the engine (mem_ops.refill_srq), and when its doorbell rang. */
void client_srq_refill(void *client_srq);
/* What follows from a ring that was found broken: the queue pairs that use it fail at once. */
void client_srq_settle(struct client_srq *srq, uint64_t now);
/* The ring holds what can't be: it is not read any more, and client_srq_settle will follow. */
void client_srq_break(struct client_srq *srq, const char *what);

#endif
