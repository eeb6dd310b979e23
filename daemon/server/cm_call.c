// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/server/cm_call.h"

#include <errno.h>

#include "daemon/device/device.h"
#include "daemon/session/control_msg.h"

int cm_call_start(struct cm_thread *t, const struct device_set *devices, struct quota *quota, const struct settings *s,
                  char why[ERROR_TEXT_MAX])
{
    struct cm_thread_config cfg = {
        .num_boxes = devices->n,
        .quota = quota,
        .control_share = s->control_share,
        .memory_timeout_ms = s->memory_timeout_ms,
    };

    for (unsigned i = 0; i < devices->n; i++)
        cfg.box[i] = &devices->device[i]->mads;
    int rc = cm_thread_init(t, &cfg, why);
    return rc ? rc : cm_thread_start(t, why);
}

bool cm_call_open(struct cm_thread *t, int sock, const struct ucred *cred, const void *rq, struct control_reply *rp)
{
    const struct pm_cm_open_req *r = rq;

    if (r->abi_version != PM_ABI_VERSION) {
        rp->status =
            control_fail(rp, -EPROTO, "ABI versions differ: client library %u, daemon %u; use both from one release",
                         r->abi_version, PM_ABI_VERSION);
        return false;
    }
    if (cm_thread_take(t, sock, cred) == 0)
        return true;
    rp->status = control_fail(rp, -ENOMEM, "the daemon is out of memory");
    return false;
}
