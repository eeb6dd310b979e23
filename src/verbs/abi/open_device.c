// SPDX-License-Identifier: BSD-2-Clause
/* Opening and closing a device: ibv_open_device and ibv_close_device. */
#include <infiniband/verbs.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/verbs/abi/context_ops.h"
#include "src/verbs/base/cancel.h"
#include "src/verbs/base/clock.h"
#include "src/verbs/base/event_fd.h"
#include "src/verbs/device/device.h"
#include "src/verbs/session/autostart.h"
#include "src/verbs/session/call.h"
#include "src/verbs/session/fork.h"
#include "src/verbs/shim/hugepage.h"

/* Does the PID, by which the daemon knows itself, name the daemon here, too? In another PID namespace it names another
 * process. */
static bool is_daemon(const struct vb_context *c, pid_t pid)
{
    char path[64], own[64], other[64];
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (getsockopt(atomic_load(&c->session.fd), SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid == pid)
        return true; /* the kernel translates this PID */
    /* A service manager has opened the socket. */
    snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
    ssize_t n = readlink(path, other, sizeof(other)), m = readlink("/proc/self/ns/pid", own, sizeof(own));
    return n > 0 && n == m && memcmp(own, other, (size_t)n) == 0;
}

/* Makes the daemon the tracer of this process, which the Yama security module may demand before the daemon may reach the
 * memory of this process. A process has one tracer at most, and the program may have chosen one. So this is done only
 * if the daemon has no other way to the memory. Without Yama it fails. */
static void admit_daemon(struct vb_context *c)
{
    struct pm_list_rep rep;
    struct vb_call call = {.op = PM_OP_LIST, .rep = &rep, .rep_len = sizeof(rep)};
    if (vb_session_call(&c->session, &call) == 0 && is_daemon(c, (pid_t)rep.pid))
        prctl(PR_SET_PTRACER, (unsigned long)rep.pid, 0, 0, 0);
}

/* Makes the descriptor for asynchronous events. */
static int watch_events(struct vb_context *c)
{
    int fd = vb_event_fd_create();
    if (fd < 0)
        return fd;
    c->vctx.context.async_fd = fd;
    return vb_event_fd_watch(fd, c->async_pipe);
}

/* How long a program waits for a device whose thread does not answer. The daemon's main thread waits for the device for a
 * second only, because it serves other clients. On a very busy machine, a thread may need longer. */
#define OPEN_WAIT_NS UINT64_C(10000000000)
#define OPEN_AGAIN_NS 50000000 /* between two requests */

/* Asks the daemon for the device, until the device's thread answers or the time is over. Returns 0 or -errno. */
static int call_open(struct vb_context *c, const struct vb_call *call)
{
    uint64_t end = vb_clock(CLOCK_MONOTONIC) + OPEN_WAIT_NS;
    int rc = vb_session_call(&c->session, call);
    while (rc == -ETIMEDOUT && vb_clock(CLOCK_MONOTONIC) < end) {
        nanosleep(&(struct timespec){.tv_nsec = OPEN_AGAIN_NS}, NULL);
        rc = vb_session_call(&c->session, call);
    }
    return rc;
}

/* Opens the device with this index in the session (PM_OP_OPEN), and maps the session page. Returns 0 or -errno; the
 * caller then frees the context. */
static int bind_session(struct vb_context *c, uint32_t index)
{
    if (getrandom(&c->probe, sizeof(c->probe), 0) != (ssize_t)sizeof(c->probe))
        c->probe = vb_clock(CLOCK_MONOTONIC);
    struct pm_open_req req = {.abi_version = PM_ABI_VERSION,
                              .device = index,
                              .probe_va = (uint64_t)(uintptr_t)&c->probe,
                              .probe_value = c->probe};
    int own[2] = {open("/proc/self/mem", O_RDWR | O_CLOEXEC), open("/proc/self/maps", O_RDONLY | O_CLOEXEC)}, fds[3];
    struct vb_call call = {.op = PM_OP_OPEN,
                           .req = &req,
                           .req_len = sizeof(req),
                           .send_fds = own,
                           .num_send_fds = own[0] < 0   ? 0
                                           : own[1] < 0 ? 1
                                                        : 2,
                           .rep = &c->caps,
                           .rep_len = sizeof(c->caps),
                           .fds = fds,
                           .num_fds = 3};
    int rc = call_open(c, &call);
    for (int i = 0; i < 2; i++) {
        if (own[i] >= 0)
            vb_close(own[i]);
    }
    if (rc)
        return rc;
    c->doorbell_fd = fds[1];
    c->async_pipe = fds[2];
    c->caps.fw_ver[sizeof(c->caps.fw_ver) - 1] = 0;
    void *page = mmap(NULL, sizeof(*c->page), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    vb_close(fds[0]);
    if (page == MAP_FAILED)
        return -errno;
    c->page = page;
    return watch_events(c);
}

static void unbind_session(struct vb_context *c)
{
    if (c->page)
        munmap(c->page, sizeof(*c->page));
    if (c->doorbell_fd >= 0)
        vb_close(c->doorbell_fd);
    if (c->vctx.context.async_fd >= 0)
        vb_close(c->vctx.context.async_fd);
    if (c->async_pipe >= 0)
        vb_close(c->async_pipe);
    c->page = NULL;
    c->doorbell_fd = c->async_pipe = c->vctx.context.async_fd = -1;
    vb_session_close(&c->session);
}

/* Opens the device in a session of its own. If the daemon can't reach the memory of this process, it tries again with
 * the daemon as the tracer. */
static int open_session(struct vb_context *c, const struct vb_device *d)
{
    char why[PM_WHY_MAX];
    int rc = vb_autostart_connect_to(&c->session, d->socket, why);
    if (rc == 0)
        rc = bind_session(c, d->index);
    if (rc || c->caps.memory_path != PM_MEMORY_NONE)
        return rc;
    unbind_session(c);
    rc = vb_session_connect(&c->session, d->socket);
    if (rc)
        return rc;
    admit_daemon(c);
    return bind_session(c, d->index);
}

static void free_context(struct vb_context *c)
{
    unbind_session(c);
    vb_table_fini(&c->qps);
    vb_table_fini(&c->cqs);
    vb_table_fini(&c->srqs);
    vb_table_fini(&c->mrs);
    vb_table_fini(&c->mws);
    free(c);
}

static struct vb_context *open_device(struct ibv_device *device)
{
    struct vb_device *d = vb_dev(device);
    struct vb_context *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    atomic_store(&c->session.fd, -1);
    c->doorbell_fd = c->async_pipe = c->vctx.context.async_fd = -1;
    c->generation = vb_fork_generation();
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->vctx.context.mutex, NULL);
    int rc = c->generation ? 0 : -ENOMEM;
    if (rc == 0)
        rc = vb_table_init(&c->qps);
    if (rc == 0)
        rc = vb_table_init(&c->cqs);
    if (rc == 0)
        rc = vb_table_init(&c->srqs);
    if (rc == 0)
        rc = vb_table_init(&c->mrs);
    if (rc == 0)
        rc = vb_table_init(&c->mws);
    if (rc == 0) {
        rc = open_session(c, d);
    }
    if (rc) {
        free_context(c);
        return vb_null(rc);
    }
    vb_hugepage_heap();
    vb_context_ops(c);
    c->vctx.context.device = device;
    c->vctx.context.num_comp_vectors = 1;
    c->vctx.context.cmd_fd = atomic_load(&c->session.fd);
    vb_fork_watch(&c->session);
    vb_device_hold(d);
    return c;
}

VB_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    int was = vb_cancel_off();
    struct vb_context *c = open_device(device);
    vb_cancel_restore(was);
    return c ? &c->vctx.context : NULL;
}

VB_EXPORT int ibv_close_device(struct ibv_context *context)
{
    struct vb_context *c = vb_ctx(context);
    struct vb_device *d = vb_dev(context->device);
    vb_fork_unwatch(&c->session);
    free_context(c);
    vb_device_drop(d);
    return 0;
}

VB_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    (void)cmd_fd;
    return vb_null(-EOPNOTSUPP);
}
