// SPDX-License-Identifier: BSD-2-Clause
#define LOG_AREA LOG_SESSION
#include "daemon/session/stuck_memory.h"

#include <sys/socket.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/takeover.h"
#include "daemon/session/session.h"

void stuck_memory_strike(struct device *d, const struct ucred *cred, const char *comm)
{
    unsigned usual = d->settings->memory_timeout_ms;
    uint64_t now = clock_ns();
    struct session *s;

    d->io.memory_timeouts++;
    if (d->copier.from_server)
        log_warn(
            "%s, pid %d, uid %u: its memory did not answer within %u ms, so its session on %s ends. A file system in "
            "user space or of the network (FUSE, NFS) provides the memory; see memory-timeout in pumiced(8)",
            comm, (int)cred->pid, cred->uid, TAKEOVER_DOUBT_MS, d->name);
    else
        log_warn(
            "%s, pid %d, uid %u: its memory did not answer within %u ms, so its session on %s ends. Swapped memory "
            "and a slow disk can do that; see memory-timeout in pumiced(8)",
            comm, (int)cred->pid, cred->uid, memory_strikes_limit(&d->memory_strikes, cred->uid, usual, now), d->name);
    memory_strikes_add(&d->memory_strikes, cred->uid, now);
    TAILQ_FOREACH (s, &d->sessions, link) {
        if (s->cred.uid == cred->uid)
            s->client_mem->limit_ms = memory_strikes_limit(&d->memory_strikes, cred->uid, usual, now);
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
