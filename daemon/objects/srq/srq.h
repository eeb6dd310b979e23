// SPDX-License-Identifier: BSD-2-Clause
/* A client's shared receive queue (SRQ): the engine's queue, and the ring that the client posts to. */
#ifndef PUMICE_DAEMON_OBJECTS_SRQ_SRQ_H
#define PUMICE_DAEMON_OBJECTS_SRQ_SRQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/core/engine.h"
#include "daemon/core/tm/tag_list.h"
#include "daemon/session/segment.h"
#include "daemon/session/wqe_ring.h"
#include "pumice/abi.h"

struct cq;
struct pd;
struct session;
struct xrcd_open;

struct tm_srq { /* of a shared receive queue that matches tags: the engine's list, and the ring of its operations */
    struct tag_list *list; /* NULL: it matches no tags */
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
    struct tm_srq tm;
    uint32_t doorbell;
    bool in_failed; /* in the device's list */
    bool errored; /* its users were failed */
    const char *broken; /* what nonsense stood in its ring, which is not read any more; NULL: none */
    TAILQ_ENTRY(client_srq) failed_link;
};

/* Reads requests from the ring into the engine's queue. The engine calls it, too, when a message needs a request. */
void client_srq_refill(void *client_srq);
/* The ring holds something invalid (what). The daemon reads it no more; the SRQ goes to the device's list of failed ones (failed_queues.h). */
void client_srq_break(struct client_srq *srq, const char *what);

#endif
