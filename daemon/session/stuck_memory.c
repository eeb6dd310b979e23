// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/session/stuck_memory.h"

#include <sys/socket.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/session/session.h"
#include "daemon/threads/takeover.h"

static const char *cause(const struct copier *c)
{
    switch (c->loss.what) {
    case COPIER_LOST_SERVED_COPY:
        return "A file system in user space or of the network (FUSE, NFS), or a userfaultfd, provides the memory";
    case COPIER_LOST_CALL:
        return "It reads its events into that memory";
    case COPIER_LOST_COPY:
        break;
    }
    if (copier_lost_by_lock(c))
        return "Another thread held the lock of its mappings for that time. On busy processors, the kernel's "
               "khugepaged "
               "does that";
    return "Swapped memory and a slow disk can do that";
}

void stuck_memory_strike(struct device *d, const struct ucred *cred, const char *comm)
{
    unsigned usual = d->settings->memory_timeout_ms;
    uint64_t now = clock_ns();
    struct session *s;

    d->io.memory_timeouts++;
    log_warn(
        "%s, pid %d, uid %u: its memory did not answer within %u ms (the kernel waited in %s), so its session on %s "
        "ends. %s; see memory-timeout in pumiced(8)",
        comm, (int)cred->pid, cred->uid, d->copier.loss.limit_ms,
        d->copier.loss.waits_in[0] ? d->copier.loss.waits_in : "an unknown function", d->name, cause(&d->copier));
    memory_strikes_add(&d->memory_strikes, cred->uid, now);
    unsigned limit = memory_strikes_limit(&d->memory_strikes, cred->uid, usual, now);
    TAILQ_FOREACH (s, &d->sessions, link) {
        if (s->cred.uid != cred->uid)
            continue;
        s->client_mem->limit_ms = limit;
        s->client_mem->lock_limit_ms = memory_lock_limit(limit, d->settings->group[0] != 0);
    }
}

void stuck_memory_end_sessions(struct device *d)
{
    struct session *s;

    d->copies_lost = d->copier.lost;
    TAILQ_FOREACH (s, &d->sessions, link) {
        if (!s->client_mem->stuck || s->disconnected)
            continue;
        s->disconnected = true;
        stuck_memory_strike(d, &s->cred, s->comm);
        shutdown(s->sock, SHUT_RDWR); /* the session ends as if the client had closed its connection */
    }
}
