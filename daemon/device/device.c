// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/device.h"

#include <stdio.h>
#include <string.h>

enum mailbox_result device_do(struct device *d, struct mailbox_call *call)
{
    if (d->running)
        return mailbox_do(&d->mailbox, call);
    call->run(call);
    return MAILBOX_DONE;
}

void device_post(struct device *d, struct mailbox_call *call)
{
    if (d->running) {
        mailbox_post(&d->mailbox, call);
        return;
    }
    call->run(call);
    call->drop(call);
}

void device_describe(const struct device *d, struct pm_device_desc *desc)
{
    memset(desc, 0, sizeof(*desc));
    memcpy(desc->name, d->name, sizeof(desc->name));
    desc->guid = d->guid;
    memcpy(desc->gid, d->gid, sizeof(desc->gid));
    snprintf(desc->netdev, sizeof(desc->netdev), "%s", d->netdev.name);
}

void device_set_fault(struct device *d, const struct fault_spec *spec, uint64_t seed)
{
    fault_init(&d->fault, spec, seed);
}
