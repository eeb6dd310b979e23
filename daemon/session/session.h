// SPDX-License-Identifier: BSD-2-Clause
/* A session: one client process, bound to one device by PM_OP_OPEN, with all its objects. It ends when its connection
 * does, or when the process dies (a child that inherited the connection does not keep it alive). */
#ifndef PUMICE_DAEMON_SESSION_H
#define PUMICE_DAEMON_SESSION_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "daemon/client_mem/client_mem.h"
#include "daemon/device/device.h"
#include "daemon/session/control.h"
#include "daemon/session/event_pipe.h"
#include "daemon/session/handles.h"
#include "daemon/session/segment.h"

struct target_open;
TAILQ_HEAD(target_open_list, target_open);

/* Who is told when a doorbell rang. */
struct bell {
    void (*rang)(void *owner, uint64_t now); /* NULL: the slot is free */
    void *owner;
};

struct session {
    struct device *device;
    TAILQ_ENTRY(session) link;
    uint32_t number;
    struct ucred cred; /* of the client, when it connected */
    char comm[16]; /* its program's name */

    int sock; /* -1 in tests */
    int pid_fd; /* readable when the process has died; -1: the kernel has none */
    int bell_fd; /* eventfd, written by the client to wake the loop */
    ev_io sock_readable, died, bell;

    struct segment page_segment;
    struct pm_session_page *page; /* hostile */
    struct bell *bells;
    uint32_t bells_end; /* all slots in use are below */
    uint32_t bells_cap; /* entries that there is memory for; at most PM_DOORBELLS */
    uint64_t
        wait_end; /* when the client's wait was long enough, see waiter.h; 0: it does not wait, or was not seen to */

    struct client_mem *space;
    struct event_pipe async; /* asynchronous events */
    struct handles pds, mrs, channels, cqs, srqs, qps, xrcds;
    struct handles mws; /* by the upper 24 bits of their keys */
    uint32_t mw_entries; /* that its windows may have, together */
    uint32_t layout_entries; /* of layouts that its queue pairs hold */
    struct target_open_list targets; /* XRC target queue pairs that it has open */
    unsigned num_targets;
    struct control_request *request; /* under way; for operations that take descriptors */
};

/* Makes a session on device d and fills in *rp for PM_OP_OPEN. sock, the client's connection, becomes the session's
 * when this succeeds (-1: none, for tests), as does mem_fd in any case (-1: none). 0, or -errno, told in *rp. The
 * address of the session stays the same. */
int session_open(struct device *d, int sock, const struct ucred *cred, const struct pm_open_req *rq, int mem_fd,
                 struct control_reply *rp, struct session **out);

/* Ends it and frees all its objects; to be called between passes only. */
void session_close(struct session *s);

/* Reads the doorbells and takes in what they announce. Returns how many rang. */
unsigned session_scan(struct session *s, uint64_t now);
/* True if a doorbell is set. */
bool session_rings(const struct session *s);
/* Says in the session page that the loop is about to sleep, or that it is awake. */
void session_set_sleeping(struct session *s, bool sleeping);

/* A free doorbell slot, or -ENOSPC; and back. */
int session_take_bell(struct session *s, void (*rang)(void *owner, uint64_t now), void *owner);
void session_drop_bell(struct session *s, uint32_t bell);

/* Tells the client of an asynchronous event (enum ibv_event_type). */
void session_event(struct session *s, uint32_t type, uint32_t handle);
/* Takes back what the client has not read of the events of an object that goes, of these types (EVPIPE_KINDS_MAX at most);
 * sharers: how many handles of it the client has, this one included. */
void session_forget(struct session *s, const uint8_t *types, unsigned num, uint32_t handle, unsigned sharers);

#endif
