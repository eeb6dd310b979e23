// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/session/mapping.h"

#include <errno.h>
#include <sys/mman.h>

#include "daemon/session/charge.h"

int mapping_create(struct mapping *m, const struct quota_owner *owner, size_t size, struct control_reply *rp)
{
    m->p = NULL;
    int rc = charge_memory(owner, 1, size, rp);
    if (rc)
        return rc;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        quota_release_memory(owner, 1, size);
        return -ENOMEM;
    }
    *m = (struct mapping){p, size, *owner};
    return 0;
}

void mapping_destroy(struct mapping *m)
{
    if (!m->p)
        return;
    munmap(m->p, m->size);
    quota_release_memory(&m->owner, 1, m->size);
    m->p = NULL;
}
