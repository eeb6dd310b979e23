// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/cm/cm_channel.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "pumice/abi_cm.h"
#include "src/verbs/base/cancel.h"
#include "src/verbs/cm/cm_lock.h"

/* Makes the channel of a pipe. NULL: memory is short. */
static struct vb_cm_channel *make(uint64_t number, uint64_t connection, const struct stat *pipe)
{
    struct vb_cm_channel *ch = calloc(1, sizeof(*ch));
    if (!ch)
        return NULL;
    ch->number = number;
    ch->dev = pipe->st_dev;
    ch->ino = pipe->st_ino;
    ch->refs = 1;
    atomic_store(&ch->connection, connection);
    return ch;
}

int vb_cm_channel_create(struct vb_cm_channel **channel, int *fd, struct vb_cm_refusal *refusal)
{
    struct vb_cm_connection *c;
    struct pm_cm_create_channel_rep rep = {0};
    struct vb_call call = {.op = PM_OP_CM_CREATE_CHANNEL, .rep = &rep, .rep_len = sizeof(rep), .fds = fd, .num_fds = 1};
    struct stat st;
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
    *channel = fstat(*fd, &st) == 0 ? make(rep.channel, serial, &st) : NULL;
    if (*channel)
        return 0;
    vb_close(*fd);
    return -ENOMEM;
}

void vb_cm_channel_release(struct vb_cm_channel *ch)
{
    vb_cm_lock();
    bool unused = --ch->refs == 0;
    vb_cm_unlock();
    if (!unused)
        return;
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
