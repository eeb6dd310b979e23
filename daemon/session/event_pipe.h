// SPDX-License-Identifier: BSD-2-Clause
/* A pipe through which a client receives events (struct pm_async_event, struct pm_comp_event), as records of two words.
 * The client has the read end, and decides whether reading blocks. The daemon never blocks: it keeps records for which
 * the pipe has no room, and writes them later.
 *
 * When an object is destroyed, the daemon removes its records, even from the pipe. So if the pipe is readable, the
 * client finds an event of an object that still exists. */
#ifndef PUMICE_DAEMON_SESSION_EVENT_PIPE_H
#define PUMICE_DAEMON_SESSION_EVENT_PIPE_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/session/client_pipe.h"

struct event_record {
    uint32_t a, b;
};

/* Records that the daemon keeps: one for each CQ that a session may have. The kernel's pipe holds another 8,192. */
#define EVENT_PIPE_WAITING_MAX 16384u

struct event_pipe {
    struct ev_loop *loop;
    ev_io writable; /* active while records wait */
    struct client_pipe pipe;
    struct event_record *waiting; /* oldest first */
    unsigned n, cap;
    /* Hash table of 2 * cap entries: 1 + the position of a waiting record; 0: free. Only valid while `indexed`. */
    uint32_t *index;
    bool indexed;
};

/* Returns 0, or -errno with p->loop NULL. *p must not move until event_pipe_fini. mem: of the client; NULL: in tests. */
int event_pipe_init(struct event_pipe *p, struct ev_loop *loop, struct client_mem *mem);
void event_pipe_fini(struct event_pipe *p);
int event_pipe_take_read_fd(struct event_pipe *p); /* the caller sends and closes it */

/* Sends a record, now or later, in order. A record that already waits is not added again, because an event reports a
 * state, not how often it occurred. False: too many records wait, and this one is lost. */
bool event_pipe_push(struct event_pipe *p, uint32_t a, uint32_t b);

/* Removes the records of an object that is destroyed: those that wait, and those that the client has not read.
 * kind[0 … kinds): the contents of these records; kinds is at most EVENT_PIPE_KINDS_MAX.
 *
 * sharers: how many handles of the object the client has, including the one that is destroyed. It is above 1 only for
 * XRC target QPs. The client receives each event once for each handle. Records that may belong to the other handles
 * stay.
 *
 * The order of all other records stays. A client that reads at the same time may find the pipe empty for a moment, if
 * it held such records. If the client is stuck (client_pipe.h), the records in the pipe stay.
 * Returns how many records of other objects were lost, because the client has made the pipe smaller. */
#define EVENT_PIPE_KINDS_MAX 8
unsigned event_pipe_forget(struct event_pipe *p, const struct event_record *kind, unsigned kinds, unsigned sharers);

#endif
