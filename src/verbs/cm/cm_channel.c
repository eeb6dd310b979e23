// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/cm/cm_channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pumice/abi_cm.h"
#include "src/verbs/base/cancel.h"
#include "src/verbs/base/event_fd.h"
#include "src/verbs/cm/cm_lock.h"

/* The file at fd. A system call, because fstat is one of the functions that this library replaces. */
static bool file_at(int fd, dev_t *dev, ino_t *ino)
{
    struct statx st;
    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &st) != 0)
        return false;
    *dev = makedev(st.stx_dev_major, st.stx_dev_minor);
    *ino = st.stx_ino;
    return true;
}

/* Closes the pipe, unless the program has closed it already, and another file has its number. */
static void close_pipe(int pipe, dev_t dev, ino_t ino)
{
    dev_t dev_now = 0;
    ino_t ino_now = 0;
    if (pipe >= 0 && file_at(pipe, &dev_now, &ino_now) && dev_now == dev && ino_now == ino)
        vb_close(pipe);
}

/* Makes the channel of a pipe, which it then owns. NULL: memory is short. */
static struct vb_cm_channel *make(uint64_t number, uint64_t connection, int pipe)
{
    struct vb_cm_channel *ch = calloc(1, sizeof(*ch));
    if (!ch)
        return NULL;
    ch->number = number;
    ch->pipe = pipe;
    file_at(pipe, &ch->dev, &ch->ino);
    ch->refs = 1;
    atomic_store(&ch->connection, connection);
    return ch;
}

/* Asks the daemon for a channel. */
static int ask_for_channel(struct vb_cm_channel **channel, struct vb_cm_refusal *refusal)
{
    struct vb_cm_connection *c;
    int pipe;
    struct pm_cm_create_channel_rep rep = {0};
    struct vb_call call = {
        .op = PM_OP_CM_CREATE_CHANNEL, .rep = &rep, .rep_len = sizeof(rep), .fds = &pipe, .num_fds = 1};
    int rc = vb_cm_connect(&c, refusal);
    if (rc)
        return rc;
    rc = vb_cm_connection_call(c, &call);
    if (rc == -EIO && atomic_load(&c->broken)) { /* perhaps the daemon was started again */
        vb_cm_release(c);
        rc = vb_cm_connect(&c, refusal);
        if (rc)
            return rc;
        rc = vb_cm_connection_call(c, &call);
    }
    uint64_t serial = c->serial;
    vb_cm_release(c);
    if (rc)
        return rc;
    *channel = make(rep.channel, serial, pipe);
    if (*channel)
        return 0;
    vb_close(pipe);
    return -ENOMEM;
}

/* The descriptor of the program is made first, because it gets the lowest free number then. */
int vb_cm_channel_create(struct vb_cm_channel **channel, int *fd, struct vb_cm_refusal *refusal)
{
    *fd = vb_event_fd_create();
    if (*fd < 0)
        return *fd;
    int rc = ask_for_channel(channel, refusal);
    if (rc == 0) {
        rc = vb_event_fd_watch(*fd, (*channel)->pipe);
        if (rc == 0)
            return 0;
        vb_cm_channel_release(*channel);
    }
    vb_close(*fd);
    return rc;
}

void vb_cm_channel_release(struct vb_cm_channel *ch)
{
    vb_cm_lock();
    bool unused = --ch->refs == 0;
    vb_cm_unlock();
    if (!unused)
        return;
    close_pipe(ch->pipe, ch->dev, ch->ino);
    vb_cm_ids_fini(&ch->ids);
    free(ch);
}

bool vb_cm_channel_is_closed(struct vb_cm_channel *ch)
{
    vb_cm_lock();
    bool closed = ch->descriptors == 0;
    vb_cm_unlock();
    return closed;
}

void vb_cm_channel_drop(struct vb_cm_channel *ch)
{
    struct vb_cm_connection *c = vb_cm_connected(atomic_load(&ch->connection));
    int pipe = -1;
    vb_cm_lock();
    if (ch->refs == 1) { /* the caller's */
        pipe = ch->pipe;
        ch->pipe = -1;
    }
    vb_cm_unlock();
    close_pipe(pipe, ch->dev, ch->ino);
    if (!c)
        return;
    struct pm_cm_channel_req req = {.channel = ch->number};
    struct vb_call call = {.op = PM_OP_CM_DROP_CHANNEL, .req = &req, .req_len = sizeof(req)};
    vb_cm_connection_call(c, &call);
    vb_cm_release(c);
}

/* Tells the daemon that connection c uses the channel. */
static int hold(struct vb_cm_channel *ch, struct vb_cm_connection *c)
{
    struct pm_cm_channel_req req = {.channel = ch->number};
    struct vb_call call = {.op = PM_OP_CM_HOLD_CHANNEL, .req = &req, .req_len = sizeof(req)};
    if (atomic_load(&ch->connection) == c->serial)
        return 0;
    int rc = vb_cm_connection_call(c, &call);
    if (rc == 0)
        atomic_store(&ch->connection, c->serial);
    return rc;
}

/* Finds a connection that uses the channel, with a reference for the caller. */
static int attach(struct vb_cm_channel *ch, struct vb_cm_connection **c)
{
    if (atomic_load(&ch->dead))
        return -ENODEV;
    int rc = vb_cm_connect(c, NULL);
    if (rc == 0) {
        rc = hold(ch, *c);
        if (rc == 0)
            return 0;
        vb_cm_release(*c);
    }
    /* Another daemon does not know the channel. */
    if (rc != -ENOENT && rc != -ENOTCONN && rc != -EPROTONOSUPPORT && rc != -EIO)
        return rc;
    atomic_store(&ch->dead, true);
    return -ENODEV;
}

int vb_cm_channel_use(struct vb_cm_channel *ch)
{
    struct vb_cm_connection *c;
    int rc = attach(ch, &c);
    if (rc == 0)
        vb_cm_release(c);
    return rc;
}

int vb_cm_channel_call(struct vb_cm_channel *ch, const struct vb_call *call)
{
    struct vb_cm_connection *c;
    int rc = attach(ch, &c);
    if (rc)
        return rc;
    rc = vb_cm_connection_call(c, call);
    bool broken = atomic_load(&c->broken);
    vb_cm_release(c);
    /* The daemon has died, or only this connection has. */
    return rc == -EIO && broken && vb_cm_channel_use(ch) == -ENODEV ? -ENODEV : rc;
}
