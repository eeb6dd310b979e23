// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/open_call.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/base/fd_closer.h"
#include "daemon/control/session_control.h"
#include "daemon/server/device_set.h"

/* Everything that the device's thread needs, because the main thread may give the call up. */
struct open_call {
    struct mailbox_call call; /* first: call_of */
    struct device *device;
    int sock, mem_fd;
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
    int mem_fd = o->mem_fd;
    struct session *s;

    o->mem_fd = -1; /* session_open takes it */
    if (session_open(o->device, o->sock, &o->cred, &o->request, mem_fd, &o->reply, &s) != 0)
        return;
    o->done = true;
    if (!control_send(o->sock, &o->reply))
        session_close(s);
}

static void release(struct open_call *o)
{
    if (o->mem_fd >= 0)
        fd_closer_close(o->mem_fd, o->cred.uid);
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

bool open_call(struct device *d, int sock, const struct ucred *cred, const struct pm_open_req *rq, int mem_fd,
               struct control_reply *rp)
{
    struct open_call *o = calloc(1, sizeof(*o));

    if (!o) {
        if (mem_fd >= 0)
            fd_closer_close(mem_fd, cred->uid);
        rp->status = control_fail(rp, -ENOMEM, "the daemon is out of memory");
        return false;
    }
    o->call = (struct mailbox_call){.run = run, .drop = drop};
    o->device = d;
    o->sock = sock;
    o->mem_fd = mem_fd;
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
