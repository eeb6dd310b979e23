// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/open_call.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/control/session_control.h"
#include "daemon/control/session_end.h"
#include "daemon/server/device_set.h"
#include "daemon/threads/fd_closer.h"

/* Everything that the device's thread needs, because the main thread may give the call up. */
struct open_call {
    struct mailbox_call call; /* first: call_of */
    struct device *device;
    int sock;
    struct client_fds fds;
    struct ucred cred;
    struct pm_open_req request;
    struct control_reply reply;
    bool done; /* the session owns the socket, and the reply was sent */
};

static struct open_call *call_of(struct mailbox_call *call)
{
    return (struct open_call *)(void *)call;
}

/* Runs in the device's thread. It sends the reply there, because the session may end at any moment after that. */
static void run(struct mailbox_call *call)
{
    struct open_call *o = call_of(call);
    struct client_fds fds = o->fds;
    struct session *s;

    o->fds = (struct client_fds){-1, -1}; /* session_open takes them */
    activity_begin(&o->device->activity, "OPEN", 0, o->cred.pid);
    if (session_open(o->device, o->sock, &o->cred, &o->request, fds, &o->reply, &s) == 0) {
        o->done = true;
        if (!control_send(o->sock, &o->reply))
            session_end(s);
    }
    activity_done(&o->device->activity);
}

static void release(struct open_call *o)
{
    client_fds_close(&o->fds, o->cred.uid);
    free(o);
}

/* The main thread has given the connection up. */
static void drop(struct mailbox_call *call)
{
    struct open_call *o = call_of(call);

    if (!o->done) {
        control_send(o->sock, &o->reply);
        fd_closer_close_socket(o->sock, o->cred.uid);
    }
    release(o);
}

bool open_call(struct device *d, int sock, const struct ucred *cred, const struct pm_open_req *rq,
               struct client_fds fds, struct control_reply *rp)
{
    struct open_call *o = calloc(1, sizeof(*o));

    if (!o) {
        client_fds_close(&fds, cred->uid);
        rp->status = control_fail(rp, -ENOMEM, "the daemon is out of memory");
        return false;
    }
    o->call = (struct mailbox_call){.run = run, .drop = drop};
    o->device = d;
    o->sock = sock;
    o->fds = fds;
    o->cred = *cred;
    o->request = *rq;
    enum mailbox_result result = device_do(d, &o->call);
    if (result == MAILBOX_GIVEN_UP)
        return true;
    bool done = o->done;
    if (result == MAILBOX_LATE)
        rp->status = device_is_late(d, rp);
    else if (!done)
        *rp = o->reply;
    release(o);
    return done;
}
