// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/printable.h"
#include "daemon/session/charge.h"
#include "daemon/session/control_msg.h"
#include "daemon/threads/fd_closer.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Is the process one of this user? */
static bool is_process_of(pid_t pid, uid_t uid)
{
    char path[32];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &st) == 0 && st.st_uid == uid;
}

/* Returns a descriptor that becomes readable when the client dies. -1: there is none, and only the end of the
 * connection tells. SO_PEERPIDFD always refers to the process that has connected. Before Linux 6.5, its PID may belong
 * to another process now: a client can connect, and leave the connection to a child. So the process must be one of the
 * same user, who then can only deceive the daemon about processes of the user's own. */
static int open_pid_fd(int sock, const struct ucred *cred)
{
    int fd = -1;
    socklen_t len = sizeof(fd);

    if (sock >= 0 && getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        return fd;
    }
    fd = cred->pid > 0 ? (int)syscall(SYS_pidfd_open, cred->pid, 0) : -1;
    /* After the PID was opened, because until then it may get another owner. */
    if (fd >= 0 && !is_process_of(cred->pid, cred->uid)) {
        close(fd);
        fd = -1;
    }
    return fd;
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
    n = (ssize_t)strlen(s->comm);
    if (n > 0 && s->comm[n - 1] == '\n')
        s->comm[n - 1] = 0;
    make_printable(s->comm);
    if (!s->comm[0])
        strcpy(s->comm, "?"); /* the process is in a PID namespace that the daemon does not see: another container */
}

static int acquire(struct session *s, const struct pm_open_req *rq, struct client_fds fds, struct control_reply *rp)
{
    struct device *d = s->device;

    s->client_mem = calloc(1, sizeof(*s->client_mem));
    if (!s->client_mem) {
        client_fds_close(&fds, s->cred.uid);
        return -ENOMEM;
    }
    s->client_mem->owner = s->cred.uid;
    s->client_mem->copier = &d->copier;
    s->client_mem->limit_ms =
        memory_strikes_limit(&d->memory_strikes, s->cred.uid, d->settings->memory_timeout_ms, clock_ns());
    s->client_mem->lock_limit_ms = memory_lock_limit(s->client_mem->limit_ms, d->settings->group[0] != 0);
    client_mem_init(s->client_mem, 0, s->cred.pid, fds, s->cred.uid == geteuid(), d->settings->memory, rq->probe_va,
                    rq->probe_value);
    int rc = s->client_mem->stuck ? -ETIMEDOUT : mem_backend_add(&d->memory, s->client_mem);
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
    segment_guard(&s->page_segment, &s->memory_lost);
    s->page = s->page_segment.p;
    doorbells_init(&s->doorbells, s->page);
    return event_pipe_init(&s->async, d->loop, s->client_mem);
}

/* Refuses a user whose memory often did not answer. Not the daemon's own user, who could as well stop the daemon. */
static int check_strikes(const struct device *d, uid_t uid, struct control_reply *rp)
{
    unsigned wait = uid == geteuid() ? 0 : memory_strikes_wait(&d->memory_strikes, uid, clock_ns());

    return wait ? control_fail(rp, -EAGAIN,
                               "memory of programs of user %u did not answer %u times; try again in %u seconds", uid,
                               MEMORY_STRIKES_MAX, wait)
                : 0;
}

int session_create(struct device *d, int sock, const struct ucred *cred, const struct pm_open_req *rq,
                   struct client_fds fds, struct control_reply *rp, struct session **out)
{
    const struct quota_owner owner = {d->quota, cred->uid, d->index};
    int rc = check_strikes(d, cred->uid, rp);
    if (rc == 0)
        rc = charge_object(&owner, QUOTA_SESSIONS, rp);
    struct session *s = rc ? NULL : calloc(1, sizeof(*s));

    if (!s) {
        client_fds_close(&fds, cred->uid);
        if (rc == 0)
            quota_release(&owner, QUOTA_SESSIONS);
        return rc ? rc : -ENOMEM;
    }
    s->owner = owner;
    s->device = d;
    s->cred = *cred;
    s->sock = sock;
    s->doorbell_fd = s->page_segment.fd = -1;
    s->pid_fd = open_pid_fd(sock, cred);
    s->user = device_user_get(&d->users, d->engine, cred->uid);
    TAILQ_INIT(&s->targets);
    s->channels.limit = DEVICE_MAX_CHANNELS;
    s->cqs.limit = d->limits.max_cq;
    s->srqs.limit = d->limits.max_srq;
    if (!s->user)
        client_fds_close(&fds, cred->uid);
    rc = s->user ? acquire(s, rq, fds, rp) : -ENOMEM;
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
    free(s->slabs);
    device_user_put(s->user);
    quota_release(&s->owner, QUOTA_SESSIONS);
    free(s);
}

void session_end_lost(struct device *d)
{
    struct session *s;

    d->segment_losses = segment_guard_losses();
    TAILQ_FOREACH (s, &d->sessions, link) {
        if (!atomic_exchange(&s->memory_lost, false))
            continue;
        log_warn(
            "device %s: session %u (%s, pid %d) ends: memory that it shares with the daemon is gone. The client has "
            "removed it, or the machine is out of memory",
            d->name, s->number, s->comm, (int)s->cred.pid);
        if (s->sock >= 0)
            shutdown(s->sock, SHUT_RDWR); /* the loop sees the end of the connection, and closes the session */
    }
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
