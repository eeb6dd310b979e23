// SPDX-License-Identifier: BSD-2-Clause
/* An open device: the session with the daemon, and the objects that were made in it. struct vb_context begins with a
 * struct verbs_context, which ends with the public struct ibv_context: the ABI of libibverbs wants that. */
#ifndef PUMICE_SRC_VERBS_SESSION_CONTEXT_H
#define PUMICE_SRC_VERBS_SESSION_CONTEXT_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pumice/abi.h"
#include "src/verbs/base/api.h"
#include "src/verbs/base/poll_state.h"
#include "src/verbs/base/ring.h"
#include "src/verbs/base/table.h"
#include "src/verbs/base/verbs_v65.h"
#include "src/verbs/session/fork.h"
#include "src/verbs/session/session.h"

struct vb_context {
    struct vb_context_v65 newer; /* the part of vctx that the header of the build machine lacks */
    struct verbs_context vctx;
    struct vb_session session;
    struct pm_open_rep caps;
    /* Shared with the daemon: doorbells, and the state of waiting threads. NULL before the open succeeded. */
    struct pm_session_page *page;
    int doorbell_fd; /* eventfd that wakes the daemon */
    int async_pipe; /* of asynchronous events; the program polls it through async_fd (base/event_fd.h) */
    uint32_t generation; /* of the process that opened the context, see fork.h */
    _Atomic bool gone; /* the daemon is gone: set once, never cleared */
    /* When an empty poll last checked that the daemon lives, in ns of CLOCK_MONOTONIC. */
    _Atomic uint64_t checked_at;
    struct vb_poll_crowd crowd;
    /* Random value; the daemon reads it at open to find a way to the memory of this process. */
    uint64_t probe;
    /* Protects the tables, the event counts of QPs, CQs and SRQs, the keys of memory windows, and the reference counts
     * of channels. */
    pthread_mutex_t lock;
    struct vb_table qps, cqs, srqs; /* by number or handle */
    struct vb_table mrs; /* by the upper 24 bits of the lkey */
    struct vb_table mws; /* by the upper 24 bits of the rkey */
    _Atomic size_t dm_used; /* bytes of device memory */
    _Atomic bool fatal_reported; /* IBV_EVENT_DEVICE_FATAL was delivered; changed under lock */
};

_Static_assert(offsetof(struct vb_context, vctx) == sizeof(struct vb_context_v65), "newer is just before vctx");

static inline struct vb_context *vb_ctx(struct ibv_context *c)
{
    return VB_OF(struct vb_context, vctx.context, c);
}

/* Did this process open the context? If not, says so on stderr. */
static inline bool vb_owned(const struct vb_context *c)
{
    return __builtin_expect(*vb_fork_page == c->generation, 1) || vb_fork_complain();
}
/* Did this process open the context? It prints nothing: for functions that destroy. */
static inline bool vb_owned_quiet(const struct vb_context *c)
{
    return *vb_fork_page == c->generation;
}

/* Checks that the daemon still has its end of the session. If not, marks the context as gone. */
void vb_context_check(struct vb_context *c);

/* Tells the daemon to look at the queues behind doorbell d, and wakes it if it sleeps. No lock.
 *
 * The write can't block. If it fails because the counter is at its maximum, the daemon wakes anyway. It is not a
 * cancellation point: see cancel.h. */
static inline void vb_doorbell(struct vb_context *c, uint32_t d)
{
    if (ring_doorbell(c->page, d)) {
        uint64_t one = 1;
        long n = syscall(SYS_write, c->doorbell_fd, &one, sizeof(one));
        (void)n;
    }
}

#endif
