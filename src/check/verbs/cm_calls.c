// SPDX-License-Identifier: BSD-2-Clause
#include "src/check/verbs/cm_calls.h"

#include <infiniband/verbs.h>

#include "src/check/base/next.h"
#include "src/check/connect/asked.h"
#include "src/check/objects/records.h"
#include "src/check/verbs/export.h"

/* These stay incomplete, so that the checker needs no header of librdmacm. */
struct rdma_cm_id;
struct rdma_cm_event;
struct rdma_event_channel;

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);

static int address_given(int rc)
{
    records_lock();
    if (rc == 0)
        asked_gid_types();
    records_unlock();
    return rc;
}

/* The attributes of the connection, for a program that modifies its queue pair by itself. */
EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    return address_given(NEXT(rdma_init_qp_attr, id, attr, mask));
}

/* An event of a datagram port has the address of the peer. */
EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
    return address_given(NEXT(rdma_get_cm_event, channel, event));
}
