// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/device/device.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
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

void device_set_fault(struct device *d, const struct fault_spec *spec, uint64_t seed, uint64_t start)
{
    struct fault_spec kept = *spec;

    decisions_filter(&d->decisions, &kept);
    fault_init(&d->fault, &kept, seed, start, clock_ns());
}

void device_set_peers(struct device *d, const struct peer_list *peers)
{
    d->peers = *peers;
    if (++d->peers_version == 0)
        d->peers_version = 1;
}

void device_config_timing(struct engine_config *c, const struct device_timing *t)
{
    struct engine_config usual;

    engine_config_defaults(&usual);
    c->ack_delay_ns = t->ack_delay_us >= 0 ? (uint64_t)t->ack_delay_us * NS_PER_US : usual.ack_delay_ns;
    c->min_timeout_ns = t->min_timeout_us ? (uint64_t)t->min_timeout_us * NS_PER_US : usual.min_timeout_ns;
}

void device_set_timing(struct device *d, const struct device_timing *t)
{
    device_config_timing(&d->config, t);
    engine_set_timing(d->engine, d->config.ack_delay_ns, d->config.min_timeout_ns);
}

bool device_admits(const struct device *d, const uint8_t gid[16])
{
    return peer_list_admits(&d->peers, gid) || gid_table_has(&d->gids, gid);
}
