// SPDX-License-Identifier: BSD-2-Clause
/* A pipe by which a client gets events (struct pm_async_event, struct pm_comp_event): records of two words. The client
 * has the read end and decides itself whether it blocks; the daemon never does: what finds no room is kept and written
 * when there is. An object that goes takes its records along, also those in the pipe, so that a client which was told
 * that there is something to read does find it. */
#ifndef PUMICE_DAEMON_SESSION_EVENT_PIPE_H
#define PUMICE_DAEMON_SESSION_EVENT_PIPE_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

struct event_record {
    uint32_t a, b;
};

#define EVENT_PIPE_WAITING_MAX                                                                                         \
    16384u /* records kept, one for each CQ that a session may have; the kernel holds another 8,192 */

struct event_pipe {
    struct ev_loop *loop;
    ev_io writable; /* runs while records wait */
    int read_fd; /* for the client; -1 after it was handed out */
    int write_fd;
    struct event_record *waiting; /* oldest first */
    unsigned n, cap;
};

/* 0, or -errno and p->loop is NULL. The address of *p must stay the same until event_pipe_fini. */
int event_pipe_init(struct event_pipe *p, struct ev_loop *loop);
void event_pipe_fini(struct event_pipe *p);
int event_pipe_take_read_fd(struct event_pipe *p); /* the caller sends and closes it */

/* Sends a record, now or later, in order; a record that waits already is not doubled (events say that something is so,
 * not how often). False: too many wait, and this one is lost. */
bool event_pipe_push(struct event_pipe *p, uint32_t a, uint32_t b);

/* Takes back the records of an object that goes: those that wait and those that the client has not read. kinds, at most
 * EVENT_PIPE_KINDS_MAX: what they look like. Of each kind every one of so many sharers gets as many (XRC target queue pairs),
 * one of whom goes, and what may be the others' stays. A client that reads meanwhile may find the pipe empty for a
 * moment, if there were such records in it. The order stays. If the pipe can't be read (no /proc, no descriptor), what is in it stays. Returns how many
 * records of others were lost, because the client has made the pipe smaller. */
#define EVENT_PIPE_KINDS_MAX 8
unsigned event_pipe_forget(struct event_pipe *p, const struct event_record *kind, unsigned kinds, unsigned sharers);

#endif
