// SPDX-License-Identifier: BSD-2-Clause
/* Brings events of connection management (struct cm_event) to the channels of the programs. */
#ifndef PUMICE_DAEMON_CM_HOST_UCMA_EVENT_H
#define PUMICE_DAEMON_CM_HOST_UCMA_EVENT_H

#include "daemon/cm/host/ucma_id.h"

/* Takes all events of the instance. */
void ucma_events_deliver(struct cm_host *h, uint64_t now);

/* Appends an event to the channel of the ID, as the program gets it. resp->id and uid are filled in here. join: NULL, or
 * the membership that the event is about. Returns 0, -ENOMEM, or -ENOBUFS: UCMA_EVENTS_MAX events wait already. */
#define UCMA_EVENTS_MAX 65536u
int ucma_event_add(struct ucma_id *id, struct ucma_join *join, const struct rdma_ucm_event_resp *resp);

/* An address vector in the form of the verbs interface of the kernel, with the index that the program has for the GID. */
void ucma_copy_ah(const struct cm_host *h, const struct av *av, struct ib_uverbs_ah_attr *out);

#endif
