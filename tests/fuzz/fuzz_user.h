// SPDX-License-Identifier: BSD-2-Clause
/* Users for the fuzz targets of the daemon: each has quotas, and pays for the objects of its sessions. */
#ifndef PUMICE_TESTS_FUZZ_FUZZ_USER_H
#define PUMICE_TESTS_FUZZ_FUZZ_USER_H

#include <fcntl.h>

#include "daemon/base/quota.h"
#include "tests/unit/daemon/daemon_fixture.h"

#define FUZZ_UID 65532 /* neither root nor the daemon's user, who have no limits */

/* Gives the device quotas without limits. To be called before the first session. */
static inline void fuzz_quota_start(struct fixture *f, struct quota *q)
{
    struct quota_limits none;
    uint64_t capacity[QUOTA_KINDS];

    for (unsigned i = 0; i < QUOTA_KINDS; i++)
        capacity[i] = 100000;
    capacity[QUOTA_BYTES] = 1u << 30;
    if (quota_limits_parse("all=none", &none) != 0)
        abort();
    quota_init(q, &none, capacity);
    f->device->quota = q;
}

/* Ends the process if anything is still charged. All sessions must have ended. */
static inline void fuzz_quota_end(struct fixture *f, struct quota *q)
{
    for (unsigned i = 0; i < QUOTA_KINDS; i++) {
        for (unsigned j = 0; j < PM_DEVICES_MAX; j++) {
            if (q->total[i][j])
                abort();
        }
    }
    if (q->users)
        abort();
    quota_fini(q);
    f->device->quota = NULL;
}

/* Opens a session of this process for another user. The daemon reaches its memory by the file. */
static inline struct session *fuzz_session(struct fixture *f, uid_t uid)
{
    struct pm_open_req rq = {PM_ABI_VERSION, 0, (uintptr_t)&fixture_probe, fixture_probe};
    struct ucred cred = {getpid(), uid, getegid()};
    struct client_fds fds = {open("/proc/self/mem", O_RDWR | O_CLOEXEC), open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    struct session *s = NULL;

    f->rp.fds = 0;
    if (session_open(f->device, -1, &cred, &rq, fds, &f->rp, &s) != 0)
        abort();
    fixture_close_fds(f);
    return s;
}

/* Ends the process if the device still has anything of a client. The flow control of datagrams may have timers for a
 * while, which must end. */
static inline void fuzz_must_be_empty(struct device *d)
{
    for (unsigned i = 0; i < 1000 && device_deadline(d) != NEVER; i++)
        device_pass(d, device_deadline(d));
    if (d->num_sessions || d->memory.shared.n || d->pds.count || d->xrcds.count || d->targets.count || d->num_mrs ||
        d->num_mws || !LIST_EMPTY(&d->users) || !TAILQ_EMPTY(&d->failed) || !TAILQ_EMPTY(&d->failed_srqs) ||
        !TAILQ_EMPTY(&d->backlog) || !TAILQ_EMPTY(&d->dirty_cqs) || !TAILQ_EMPTY(&d->waiting_tm_srqs) ||
        device_deadline(d) != NEVER)
        abort();
}

#endif
