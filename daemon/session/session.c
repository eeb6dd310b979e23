// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/fd_closer.h"
#include "daemon/session/charge.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Returns a descriptor that becomes readable when the client dies. SO_PEERPIDFD always refers to the client. With
 * pidfd_open, for older kernels, the PID may already belong to another process. */
static int open_pid_fd(int sock, pid_t pid)
{
    int fd = -1;
    socklen_t len = sizeof(fd);

    if (sock >= 0 && getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        return fd;
    }
    return pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

static void read_comm(struct session *s)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/comm", (int)s->cred.pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, s->comm, sizeof(s->comm) - 1) : 0;
    if (fd >= 0)
        close(fd);
    s->comm[n > 0 ? n : 0] = 0;
    s->comm[strcspn(s->comm, "\n")] = 0;
    if (!s->comm[0])
        strcpy(s->comm, "?"); /* the process is in a PID namespace that the daemon does not see: another container */
}

static int acquire(struct session *s, const struct pm_open_req *rq, int mem_fd, struct control_reply *rp)
{
    struct device *d = s->device;

    s->client_mem = calloc(1, sizeof(*s->client_mem));
    if (!s->client_mem) {
        if (mem_fd >= 0)
            fd_closer_close(mem_fd, s->cred.uid);
        return -ENOMEM;
    }
    client_mem_init(s->client_mem, 0, s->cred.pid, mem_fd, s->cred.uid == geteuid(), d->settings->memory, rq->probe_va,
                    rq->probe_value);
    s->client_mem->owner = s->cred.uid;
    int rc = mem_backend_add(&d->memory, s->client_mem);
    if (rc) {
        client_mem_fini(s->client_mem);
        free(s->client_mem);
        s->client_mem = NULL;
        return rc;
    }
    s->doorbell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->doorbell_fd < 0)
        return -errno;
    rc = segment_create(&s->page_segment, &s->owner, "pumice-session", sizeof(struct pm_session_page), rp);
    if (rc)
        return rc;
    s->page = s->page_segment.p;
    doorbells_init(&s->doorbells, s->page);
    return event_pipe_init(&s->async, d->loop);
}

int session_create(struct device *d, int sock, const struct ucred *cred, const struct pm_open_req *rq, int mem_fd,
                   struct control_reply *rp, struct session **out)
{
    const struct quota_owner owner = {d->quota, cred->uid, d->index};
    int rc = charge_object(&owner, QUOTA_SESSIONS, rp);
    struct session *s = rc ? NULL : calloc(1, sizeof(*s));

    if (!s) {
        if (mem_fd >= 0)
            fd_closer_close(mem_fd, cred->uid);
        if (rc == 0)
            quota_release(&owner, QUOTA_SESSIONS);
        return rc ? rc : -ENOMEM;
    }
    s->owner = owner;
    s->device = d;
    s->cred = *cred;
    s->sock = sock;
    s->doorbell_fd = s->page_segment.fd = -1;
    s->pid_fd = open_pid_fd(sock, cred->pid);
    TAILQ_INIT(&s->targets);
    s->channels.limit = DEVICE_MAX_CHANNELS;
    s->cqs.limit = DEVICE_MAX_CQ;
    s->srqs.limit = DEVICE_MAX_SRQ;
    rc = acquire(s, rq, mem_fd, rp);
    if (rc) {
        session_destroy(s);
        return rc;
    }
    s->number = ++d->next_session;
    read_comm(s);
    *out = s;
    return 0;
}

void session_destroy(struct session *s)
{
    struct device *d = s->device;

    if (s->async.loop)
        event_pipe_fini(&s->async);
    segment_destroy(&s->page_segment);
    if (s->doorbell_fd >= 0)
        close(s->doorbell_fd);
    if (s->pid_fd >= 0)
        close(s->pid_fd);
    if (s->client_mem) {
        mem_backend_remove(&d->memory, s->client_mem);
        client_mem_fini(s->client_mem);
        free(s->client_mem);
    }
    doorbells_fini(&s->doorbells);
    quota_release(&s->owner, QUOTA_SESSIONS);
    free(s);
}

void session_event(struct session *s, uint32_t type, uint32_t handle)
{
    if (!event_pipe_push(&s->async, type, handle))
        s->device->io.events_lost++;
}

void session_forget(struct session *s, const uint8_t *types, unsigned num, uint32_t handle, unsigned sharers)
{
    struct event_record kind[EVENT_PIPE_KINDS_MAX];

    for (unsigned i = 0; i < num; i++)
        kind[i] = (struct event_record){types[i], handle};
    s->device->io.events_lost += event_pipe_forget(&s->async, kind, num, sharers);
}
