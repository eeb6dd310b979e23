// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/monitor/usage.h"

#include <infiniband/verbs.h>

#include "daemon/device/device.h"
#include "daemon/objects/objects.h"
#include "daemon/session/session.h"

void usage_made(struct device *d, pid_t pid)
{
    d->use.makers += pid != d->use.maker;
    d->use.maker = pid;
}

void usage_ready(struct client_qp *q)
{
    q->device->use.connected += q->type != IBV_QPT_UD;
}

static void add(void *obj, void *ctx)
{
    const struct client_qp *q = obj;
    uint64_t *sent = ctx;
    struct qp_info info;

    if (q->type == IBV_QPT_UD)
        return;
    qp_info(q->qp, &info);
    *sent += info.counters.sent_pkts;
}

void usage_gone(const struct client_qp *q)
{
    add((void *)(uintptr_t)q, &q->device->use.sent_pkts);
}

json_t *usage_json(struct device *d)
{
    uint64_t sent = d->use.sent_pkts;
    json_t *o = json_object();
    const struct session *s;

    TAILQ_FOREACH(s, &d->sessions, link)
    handles_each(&s->qps, add, &sent);
    handles_each(&d->targets, add, &sent);
    json_object_set_new(o, "makers", json_integer(d->use.makers));
    json_object_set_new(o, "connected", json_integer((json_int_t)d->use.connected));
    json_object_set_new(o, "connected_pkts", json_integer((json_int_t)sent));
    return o;
}
