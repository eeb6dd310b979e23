// SPDX-License-Identifier: BSD-2-Clause
/* Completion queues (CQs): their control operations, the entries that the daemon writes, and their events. */
#ifndef PUMICE_DAEMON_OBJECTS_CQ_H
#define PUMICE_DAEMON_OBJECTS_CQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/core/engine.h"
#include "daemon/session/segment.h"
#include "pumice/abi.h"

struct channel;
struct control_reply;
struct device;
struct session;

struct cq { /* completion queue */
    struct session *session;
    uint32_t handle;
    unsigned users; /* queues that use it */
    struct segment segment;
    struct segment next; /* created by a resize, until the client switches to it */
    struct pm_cq_page *page; /* shared with the client, which may write anything to it */
    struct pm_cqe *entries; /* the daemon only writes them */
    uint32_t slots, next_slots;
    uint32_t producer; /* next index to write */
    uint32_t seen_consumer; /* as last loaded; saves accesses to the client's cache line */
    bool ignore_overrun;
    bool overrun; /* it has stopped, and IBV_EVENT_CQ_ERR was sent */
    struct channel *channel; /* NULL: none */
    uint32_t doorbell; /* DOORBELL_NONE: none */
    bool dirty; /* in the device's list */
    /* A solicited entry was added since the last notification. */
    bool solicited;
    TAILQ_ENTRY(cq) dirty_link;
    uint32_t moderate_count; /* send an event after this many entries; 0: no moderation */
    uint64_t moderate_ns; /* or after this time since the first of them */
    uint32_t unreported; /* entries since the last notification */
    /* In the device's list: an event waits for more entries, or for the time `due`. */
    bool held;
    uint64_t due;
    TAILQ_ENTRY(cq) held_link;
    uint8_t extra_looks; /* how often the daemon has looked whether it can send an event without an entry */
};

/* Control operations. rq: the payload that pumice/abi.h defines for the operation. Return 0, or -errno with the
 * reason in *rp. */
int cq_create(struct session *s, const void *rq, struct control_reply *rp);
int cq_resize(struct session *s, const void *rq, struct control_reply *rp);
int cq_switch(struct session *s, const void *rq, struct control_reply *rp);
int cq_modify(struct session *s, const void *rq, struct control_reply *rp);
int cq_destroy(struct session *s, const void *rq, struct control_reply *rp);

/* Frees a CQ that no queue uses. */
void cq_free(struct cq *cq);

/* Writes an entry. srq: the client's handle of the SRQ that the completion belongs to; 0: none. The caller calls
 * cq_notify later, once for all entries of a pass. False: the CQ has overrun, and the entry is lost. */
bool cq_publish(struct cq *cq, const struct completion *c, uint32_t srq);
/* Sends an event for the entries since the last notification, if the client has armed the CQ. */
void cq_notify(struct cq *cq, uint64_t now);
/* Sends the moderated events that are due (struct device.held_cqs). Returns how many. */
unsigned cq_release_held(struct device *d, uint64_t now);

#endif
