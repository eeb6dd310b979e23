// SPDX-License-Identifier: BSD-2-Clause
/* Private memory of the daemon for an object of a client, such as the engine's queues. It is mapped, not allocated: so
 * it is zeroed, and pages that are never used cost nothing. */
#ifndef PUMICE_DAEMON_SESSION_MAPPING_H
#define PUMICE_DAEMON_SESSION_MAPPING_H

#include <stddef.h>

#include "daemon/base/quota.h"

struct control_reply;

struct mapping {
    void *p; /* page aligned; NULL: none */
    size_t size; /* bytes */
    struct quota_owner owner; /* pays for it */
};

/* Returns 0, or -errno with m->p NULL. *rp has the reason if the owner's quota is the reason. */
int mapping_create(struct mapping *m, const struct quota_owner *owner, size_t size, struct control_reply *rp);
void mapping_destroy(struct mapping *m);

#endif
