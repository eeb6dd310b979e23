// SPDX-License-Identifier: BSD-2-Clause
/* A client's shared receive queue (SRQ): the engine's queue, and the ring that the client posts to. */
#ifndef PUMICE_DAEMON_OBJECTS_SRQ_SRQ_H
#define PUMICE_DAEMON_OBJECTS_SRQ_SRQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/core/engine.h"
#include "daemon/core/tm/tag_list.h"
#include "daemon/session/mapping.h"
#include "daemon/session/segment.h"
#include "daemon/session/wqe_ring.h"
#include "pumice/abi.h"

struct cq;
struct pd;
struct session;
struct xrcd_open;

/* The tag matching part of an SRQ: the engine's list, and the ring of its operations. */
struct tm_srq {
    struct tag_list *list; /* NULL: the SRQ does not match tags */
    struct mapping mem; /* memory of the engine */
    struct tm_params params;
    struct ring ring;
    uint8_t *base; /* of the ring, for writing */
    bool odd_count_logged; /* the log has a line about an odd count of its program */
    /* In the device's list: there was no room for the completion of the operation at the ring's head. */
    bool waiting;
    TAILQ_ENTRY(client_srq) waiting_link;
};

/* A client's SRQ: the engine's SRQ, and its ring. */
struct client_srq {
    struct session *session;
    uint32_t handle;
    unsigned users; /* QPs that use it */
    uint32_t newest_qpn; /* the QP that was created last with it, for the log. 0: none */
    struct srq *srq;
    struct mapping mem; /* memory of the engine */
    struct pd *pd;
    struct xrcd_open *xrcd; /* XRC; else NULL */
    struct cq *cq; /* XRC, tag matching; else NULL */
    uint32_t max_wr, max_sge;
    struct segment segment;
    struct segment next; /* created by a resize, until the client switches to it */
    uint32_t next_max_wr; /* number of requests that next has room for */
    struct pm_srq_page *page; /* shared with the client, which may write anything to it */
    struct ring ring;
    struct tm_srq tm;
    uint32_t doorbell;
    bool in_failed; /* in the device's list */
    bool errored; /* the QPs that use it were failed */
    /* Text about the invalid content of its ring, which the daemon no longer reads. NULL: the ring is valid. */
    const char *broken;
    TAILQ_ENTRY(client_srq) failed_link;
};

/* Reads requests from the ring into the engine's queue. The engine calls it, too, when a message needs a request. */
void client_srq_refill(void *client_srq);
/* To be called when the ring is invalid. what: the invalid content, for the log. The daemon stops reading the ring, and
 * the SRQ goes to the device's list of failed SRQs (failed_queues.h). */
void client_srq_break(struct client_srq *srq, const char *what);

#endif
