// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/pd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/device/device.h"
#include "daemon/session/control_msg.h"
#include "daemon/session/session.h"

int pd_alloc(struct session *s, const void *rq, struct control_reply *rp)
{
    struct pd *pd = calloc(1, sizeof(*pd));
    struct pm_handle *rep;

    (void)rq;
    if (!pd)
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    pd->session = s;
    int rc = handles_add(&s->device->pds, pd, &pd->number);
    if (rc) {
        free(pd);
        return control_fail(rp, rc == -ENOSPC ? -ENOMEM : rc, "no more than %u protection domains on a device",
                            s->device->pds.limit);
    }
    rc = handles_add_at(&s->pds, pd, pd->number);
    if (rc) {
        handles_remove(&s->device->pds, pd->number);
        free(pd);
        return control_fail(rp, -ENOMEM, "the daemon is out of memory");
    }
    rep = control_payload(rp, sizeof(*rep));
    rep->handle = pd->number;
    return 0;
}

void pd_free(struct pd *pd)
{
    handles_remove(&pd->session->pds, pd->number);
    handles_remove(&pd->session->device->pds, pd->number);
    quota_release(&pd->session->owner, QUOTA_PDS);
    free(pd);
}

int pd_dealloc(struct session *s, const void *rq, struct control_reply *rp)
{
    const struct pm_handle *h = rq;
    struct pd *pd = handles_get(&s->pds, h->handle);

    if (!pd)
        return control_fail(rp, -EINVAL, "no protection domain %u", h->handle);
    if (pd->users)
        return control_fail(rp, -EBUSY, "protection domain %u is used by %u objects", h->handle, pd->users);
    pd_free(pd);
    return 0;
}
