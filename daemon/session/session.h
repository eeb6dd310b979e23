// SPDX-License-Identifier: BSD-2-Clause
/* A session: one client process, bound to one device by PM_OP_OPEN, with all its objects. It ends when its connection
 * does, or when the process dies (a child that inherited the connection does not keep it alive). */
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
#include "daemon/device/device.h"
#include "daemon/session/doorbell.h"
#include "daemon/session/event_pipe.h"
#include "daemon/session/segment.h"

struct target_open;
TAILQ_HEAD(target_open_list, target_open);

struct session {
    struct device *device;
    TAILQ_ENTRY(session) link;
    uint32_t number;
    struct ucred cred; /* of the client, when it connected */
    char comm[16]; /* its program's name */

    int sock; /* -1 in tests */
    int pid_fd; /* readable when the process has died; -1: the kernel has none */
    int doorbell_fd; /* eventfd, written by the client to wake the loop */
    ev_io sock_readable, died, doorbell_rang;

    struct segment page_segment;
    struct pm_session_page *page; /* hostile */
    struct doorbells doorbells;
    /* When the client has waited long enough, see client_wakeup.h. 0: it does not wait, as far as the loop has seen. */
    uint64_t wait_end;

    struct client_mem *client_mem;
    struct event_pipe async; /* asynchronous events */
    struct handles pds, mrs, channels, cqs, srqs, qps, xrcds;
    struct handles mws; /* by the upper 24 bits of their keys */
    uint32_t mw_entries; /* that its windows may have, together */
    uint32_t layout_entries; /* of layouts that its queue pairs hold */
    struct target_open_list targets; /* XRC target queue pairs that it has open */
    unsigned num_targets;
    struct control_request *request; /* under way; for operations that take descriptors */
};

/* Makes a session of a client that is connected by sock (-1: a test), with its page, its doorbells and its address space. It has no objects,
 * is in no list of the device, and serves nothing yet: that is control/session_control.h. mem_fd (-1: none) becomes the session's in any
 * case, sock stays the caller's. 0 or -errno. The address of the session stays the same. */
int session_create(struct device *d, int sock, const struct ucred *cred, const struct pm_open_req *rq, int mem_fd,
                   struct session **out);
/* Frees a session that has no objects. */
void session_destroy(struct session *s);

/* Sends the client an asynchronous event (enum ibv_event_type). */
void session_event(struct session *s, uint32_t type, uint32_t handle);
/* Takes back the unread events of an object that is destroyed, of these types (EVENT_PIPE_KINDS_MAX at most). sharers: how many handles of
 * it the client has, this one included. */
void session_forget(struct session *s, const uint8_t *types, unsigned num, uint32_t handle, unsigned sharers);

#endif
