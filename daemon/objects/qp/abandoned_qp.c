// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/objects/qp/abandoned_qp.h"

#include <poll.h>

#include "daemon/device/device.h"
#include "daemon/objects/qp/qp.h"
#include "daemon/session/session.h"

/* The kernel frees the memory of a process before it closes the files. So the memory is gone when the connection
 * management thread sees the end of the channel's pipe. The session's connection may still seem open then. */
static bool has_died(const struct session *s)
{
    struct pollfd p = {.fd = s->sock, .events = POLLRDHUP};

    return s->ending || (s->sock >= 0 && poll(&p, 1, 0) == 1) || client_mem_is_gone(s->client_mem);
}

void abandoned_qp_stop(struct device *d, uint32_t qpn)
{
    struct qp_attr attr = {.state = QPS_ERR};
    struct session *s;

    TAILQ_FOREACH (s, &d->sessions, link) {
        struct client_qp *q = handles_get(&s->qps, qpn);

        if (!q || !has_died(s))
            continue;
        qp_modify(q->qp, &attr, QPA_STATE, NULL);
        client_qp_mark_failed(q);
    }
}
