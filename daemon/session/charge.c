// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/session/charge.h"

#include "daemon/session/control_msg.h"

int charge_object(const struct quota_owner *o, enum quota_kind object, struct control_reply *rp)
{
    char why[QUOTA_WHY_MAX];
    int rc = quota_charge(o, object, why);

    return rc ? control_fail(rp, rc, "%s", why) : 0;
}

int charge_memory(const struct quota_owner *o, uint32_t mappings, uint64_t bytes, struct control_reply *rp)
{
    char why[QUOTA_WHY_MAX];
    int rc = quota_charge_memory(o, mappings, bytes, why);

    return rc ? control_fail(rp, rc, "%s", why) : 0;
}
