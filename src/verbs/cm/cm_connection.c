// SPDX-License-Identifier: BSD-2-Clause
#include "src/verbs/cm/cm_connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "pumice/abi_cm.h"
#include "src/verbs/base/cancel.h"
#include "src/verbs/cm/cm_lock.h"
#include "src/verbs/session/fork.h"
#include "src/verbs/session/session_path.h"

static struct vb_cm_connection *current; /* has a reference; under the lock */
static uint64_t serials; /* number of connections so far; under the lock */

/* Frees c, if nobody has a reference any more. Not under the lock. NULL is allowed. */
static void free_unused(struct vb_cm_connection *c)
{
    if (!c)
        return;
    vb_session_close(&c->session);
    pthread_mutex_destroy(&c->session.lock);
    free(c);
}

void vb_cm_release(struct vb_cm_connection *c)
{
    vb_cm_lock();
    bool unused = --c->refs == 0;
    vb_cm_unlock();
    if (unused)
        free_unused(c);
}

/* Is there a connection of this process that works? The caller holds the lock. */
static bool is_usable(void)
{
    return current && current->generation == *vb_fork_page && !atomic_load(&current->broken);
}

/* Takes a reference to the current connection, if it is usable. */
static struct vb_cm_connection *take(void)
{
    struct vb_cm_connection *c = NULL;
    vb_cm_lock();
    if (is_usable()) {
        c = current;
        c->refs++;
    }
    vb_cm_unlock();
    return c;
}

/* Makes c the current connection with a reference for the caller. If another thread was faster, returns its
 * connection, and frees c. */
static struct vb_cm_connection *publish(struct vb_cm_connection *c)
{
    struct vb_cm_connection *old;
    vb_cm_lock();
    if (is_usable()) {
        old = c;
        c = current;
        c->refs++;
    } else {
        old = current && --current->refs == 0 ? current : NULL;
        c->serial = ++serials;
        c->refs = 2;
        current = c;
    }
    vb_cm_unlock();
    free_unused(old);
    return c;
}

struct vb_cm_connection *vb_cm_connected(uint64_t serial)
{
    struct vb_cm_connection *c = take();
    if (c && c->serial != serial) {
        vb_cm_release(c);
        return NULL;
    }
    return c;
}

/* The process, its user or the daemon has too little of something. */
static bool is_shortage(int rc)
{
    return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -EDQUOT;
}

/* Says to the daemon what this connection is for. */
static int begin(struct vb_cm_connection *c, struct vb_cm_refusal *refusal)
{
    struct pm_cm_open_req req = {.abi_version = PM_ABI_VERSION};
    struct vb_call call = {
        .op = PM_OP_CM_OPEN, .req = &req, .req_len = sizeof(req), .why = refusal ? refusal->why : NULL};
    return vb_session_call(&c->session, &call);
}

int vb_cm_connect(struct vb_cm_connection **connection, struct vb_cm_refusal *refusal)
{
    struct vb_cm_refusal unused;
    struct vb_cm_refusal *r = refusal ? refusal : &unused;
    vb_cm_prepare();
    uint32_t generation = vb_fork_generation();
    if ((*connection = take()))
        return 0;
    struct vb_cm_connection *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->generation = generation;
    r->why[0] = 0;
    int rc = vb_session_path(r->path, sizeof(r->path));
    if (rc == 0)
        rc = vb_session_connect(&c->session, r->path);
    if (rc) {
        free(c);
        return is_shortage(rc) ? rc : -ENOTCONN;
    }
    rc = begin(c, r);
    if (rc) {
        free_unused(c);
        return is_shortage(rc) ? rc : -EPROTONOSUPPORT;
    }
    *connection = publish(c);
    return 0;
}

/* Has the daemon closed its end? An error of the daemon is no reason to think so. */
static bool is_closed(struct vb_cm_connection *c)
{
    struct pollfd p = {.fd = atomic_load(&c->session.fd), .events = POLLRDHUP};
    struct timespec at_once = {0};
    /* syscall() and not poll(), which is a cancellation point: see cancel.h. */
    return p.fd < 0 || (syscall(SYS_ppoll, &p, 1, &at_once, NULL, 0) > 0 &&
                        (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)));
}

int vb_cm_connection_call(struct vb_cm_connection *c, const struct vb_call *call)
{
    int rc = vb_session_call(&c->session, call);
    if (rc == -EIO && is_closed(c))
        atomic_store(&c->broken, true);
    return rc;
}
