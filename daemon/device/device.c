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

bool device_slice(struct device *d, struct slice_job *job, uint64_t wait_ns)
{
    if (d->running)
        return slice_box_run(&d->slices, job, wait_ns);
    job->run(job);
    return true;
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

void device_set_peers(struct device *d, const struct peer_list *peers)
{
    d->peers = *peers;
    if (++d->peers_version == 0)
        d->peers_version = 1;
}

bool device_admits(const struct device *d, const uint8_t gid[16])
{
    return peer_list_admits(&d->peers, gid) || gid_table_has(&d->gids, gid);
}
