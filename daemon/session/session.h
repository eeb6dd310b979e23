// SPDX-License-Identifier: BSD-2-Clause
/* A session: one client process, bound to one device by PM_OP_OPEN, with all its objects. It ends when its connection
 * ends, or when the process dies. A child process that inherited the connection does not keep the session alive. */
#ifndef PUMICE_DAEMON_SESSION_SESSION_H
#define PUMICE_DAEMON_SESSION_SESSION_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "daemon/base/handles.h"
#include "daemon/client_mem/client_mem.h"
#include "daemon/device/control_turns.h"
#include "daemon/device/device.h"
#include "daemon/session/doorbell.h"
#include "daemon/session/event_pipe.h"
#include "daemon/session/segment.h"

struct control_reply;
struct slabs;
struct target_open;
TAILQ_HEAD(target_open_list, target_open);

struct session {
    struct control_turn turn; /* of its connection; first */
    struct device *device;
    TAILQ_ENTRY(session) link, ending_link;
    bool ending; /* it is in the device's list of sessions that end */
    uint32_t number;
    struct ucred cred; /* the client's credentials when it connected */
    char comm[16]; /* name of the client's program */
    struct quota_owner owner; /* the user of the client, who pays for its objects */
    struct device_user *user; /* the same user, with whom other users share the device */

    int sock; /* -1 in tests */
    int pid_fd; /* readable when the process has died; -1: the kernel has no pidfd */
    int doorbell_fd; /* eventfd, written by the client to wake the loop */
    ev_io sock_readable, died, doorbell_rang;

    atomic_bool memory_lost; /* pages of its segments could not be had: the session must end */
    struct segment page_segment;
    struct pm_session_page *page; /* shared with the client, which may write anything to it */
    struct doorbells doorbells;
    /* When to wake the client, which then has waited for as long as it asked (client_wakeup.h). 0: it does not wait, or
     * the loop has not seen it yet. */
    uint64_t wait_end;

    /* For an unkind device: when the daemon last read a send request or a control request of the client. */
    uint64_t asked_at;
    struct client_mem *client_mem;
    bool disconnected; /* its memory did not answer, so the loop has shut its connection down */
    struct event_pipe async; /* asynchronous events */
    struct handles pds, mrs, channels, cqs, srqs, qps, xrcds;
    struct slabs *slabs; /* memory of its QPs (objects/qp/slab.h); NULL: it had none yet */
    struct handles comp_cntrs;
    uint32_t next_comp_cntr; /* the next number to try, from 0 */
    struct handles mws; /* by the upper 24 bits of their keys */
    uint32_t mw_entries; /* max_entries of all its windows together */
    uint32_t layout_entries; /* entries of the layouts that its QPs hold */
    uint32_t created_qps; /* so far */
    struct target_open_list targets; /* XRC target QPs that it has open */
    unsigned num_targets;
    struct control_request *request; /* the request that is being executed, for operations that take its descriptors */
};

/* Creates a session for a client that is connected by sock (-1: a test), with its page, its doorbells and its client
 * memory, and charges the user for it. The session has no objects, is in no list of the device, and serves no requests yet
 * (control/session_control.h does that). The descriptors fds become the session's in any case. sock stays the
 * caller's. Returns 0 or -errno; -ETIMEDOUT: the memory of the client does not answer. *rp has the reason if the user's
 * quota is the reason, or memory of the user that did not answer. The session never moves. */
int session_create(struct device *d, int sock, const struct ucred *cred, const struct pm_open_req *rq,
                   struct client_fds fds, struct control_reply *rp, struct session **out);
/* Frees a session that has no objects. */
void session_destroy(struct session *s);

/* Ends the sessions of the device whose shared memory is lost (segment_guard.h): breaks their connections. */
void session_end_lost(struct device *d);

/* Sends the client an asynchronous event (enum ibv_event_type). */
void session_event(struct session *s, uint32_t type, uint32_t handle);
/* Removes the unread events of an object that is destroyed, of these types (EVENT_PIPE_KINDS_MAX at most). sharers:
 * how many handles of the object the client has, this one included. */
void session_forget(struct session *s, const uint8_t *types, unsigned num, uint32_t handle, unsigned sharers);

#endif
