// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/status/usage_status.h"

#include <infiniband/verbs.h>

#include "daemon/device/device.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/session/session.h"

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

json_t *usage_json(struct device *d)
{
    uint64_t sent = d->usage.sent_pkts;
    json_t *o = json_object();
    const struct session *s;

    TAILQ_FOREACH (s, &d->sessions, link)
        handles_each(&s->qps, add, &sent);
    handles_each(&d->targets, add, &sent);
    json_object_set_new(o, "makers", json_integer(d->usage.makers));
    json_object_set_new(o, "connected", json_integer((json_int_t)d->usage.connected));
    json_object_set_new(o, "connected_pkts", json_integer((json_int_t)sent));
    return o;
}
