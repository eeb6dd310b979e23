// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/xrcd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/device/device.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"
#include "daemon/threads/fd_closer.h"

/* --- domains ----------------------------------------------------------------------------------- */

/* The file that identifies a domain. */
struct file {
    int fd; /* O_PATH */
    uid_t owner; /* the user whose client sent it */
    uint64_t dev, ino;
};

/* Asks what the kernel knows of the inode. A fstat would ask the server of a file on FUSE or NFS, which may be dead. */
static bool find_inode(struct file *f)
{
    struct statx st;

    if (statx(f->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) != 0 ||
        !(st.stx_mask & STATX_INO))
        return false;
    f->dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
    f->ino = st.stx_ino;
    return true;
}

/* Takes the descriptor that came with the request, and keeps an O_PATH descriptor in its place, which holds only the
 * inode. The client may send any descriptor: for example an end of a pipe, which must not stay open, or a device that
 * reacts when it is closed. */
static int take_file(struct session *s, struct file *f)
{
    int fd = control_take_fd(s->request);
    char path[64];
    int rc = 0;

    if (fd < 0)
        return -EBADF;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    f->fd = open(path, O_PATH | O_CLOEXEC);
    if (f->fd < 0)
        rc = -errno;
    else if (!find_inode(f))
        rc = -EBADF;
    f->owner = s->cred.uid;
    fd_closer_close(fd, f->owner);
    if (rc && f->fd >= 0)
        fd_closer_close(f->fd, f->owner);
    return rc;
}

struct search {
    const struct file *file;
    struct xrcd *found;
};

static void compare(void *obj, void *ctx)
{
    struct search *search = ctx;
    struct xrcd *x = obj;

    if (x->fd >= 0 && !x->ending && x->dev == search->file->dev && x->ino == search->file->ino)
        search->found = x;
}

static struct xrcd *find(const struct device *d, const struct file *f)
{
    struct search search = {f, NULL};

    handles_each(&d->xrcds, compare, &search);
    return search.found;
}

/* If this succeeds, the domain owns the file's descriptor. */
static struct xrcd *create(struct device *d, const struct file *f)
{
    struct xrcd *x = calloc(1, sizeof(*x));

    if (!x || handles_add(&d->xrcds, x, &x->number) != 0) {
        free(x);
        return NULL;
    }
    x->device = d;
    x->fd = f->fd;
    x->owner = f->owner;
    x->dev = f->dev;
    x->ino = f->ino;
    TAILQ_INIT(&x->targets);
    return x;
}

void xrcd_free(struct xrcd *x)
{
    assert(x->opens == 0 && TAILQ_EMPTY(&x->targets));
    handles_remove(&x->device->xrcds, x->number);
    if (x->fd >= 0)
        fd_closer_close(x->fd, x->owner);
    free(x);
}

static int add_open(struct session *s, struct xrcd *x, struct control_reply *rp)
{
    struct xrcd_open *o = calloc(1, sizeof(*o));
    struct pm_handle *rep;

    if (!o || handles_add(&s->xrcds, o, &o->handle) != 0) {
        free(o);
        if (x->opens == 0)
            xrcd_free(x);
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    }
    o->session = s;
    o->xrcd = x;
    x->opens++;
    rep = control_payload(rp, sizeof(*rep));
    rep->handle = o->handle;
    return 0;
}

static int open_by_file(struct session *s, uint32_t oflags, const struct file *f, struct control_reply *rp)
{
    struct xrcd *x = find(s->device, f);

    if (x) {
        fd_closer_close(f->fd, f->owner);
        if (oflags & O_EXCL)
            return control_fail(rp, -EINVAL, "there is an XRC domain of this file already, and O_EXCL was asked");
        return add_open(s, x, rp);
    }
    x = oflags & O_CREAT ? create(s->device, f) : NULL;
    if (!x) {
        fd_closer_close(f->fd, f->owner);
        if (!(oflags & O_CREAT))
            return control_fail(rp, -EAGAIN, "there is no XRC domain of this file, and O_CREAT was not asked");
        return control_fail(rp, -ENOMEM, "no more than %u XRC domains on a device", s->device->limits.max_xrcd);
    }
    return add_open(s, x, rp);
}

int xrcd_open(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_open_xrcd_req *r = rq;
    const struct file none = {.fd = -1};
    struct file f;
    int rc;

    if (s->device->limits.max_xrcd == 0)
        return control_fail(rp, -EOPNOTSUPP, "the device has no XRC domains");
    if (r->has_fd) {
        rc = take_file(s, &f);
        if (rc)
            return control_fail(rp, rc, "the descriptor that is to name the XRC domain is not of a file");
        return open_by_file(s, r->oflags, &f, rp);
    }
    if (r->oflags != O_CREAT)
        return control_fail(rp, -EINVAL, "an XRC domain without a file can only be created (O_CREAT)");
    struct xrcd *x = create(s->device, &none);
    if (!x)
        return control_fail(rp, -ENOMEM, "no more than %u XRC domains on a device", s->device->limits.max_xrcd);
    return add_open(s, x, rp);
}
