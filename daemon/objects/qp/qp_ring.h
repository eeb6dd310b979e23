// SPDX-License-Identifier: BSD-2-Clause
/* Passes requests from the rings of a QP to the engine. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_QP_RING_H
#define PUMICE_DAEMON_OBJECTS_QP_QP_RING_H

#include <stdint.h>

struct client_qp;

/* Passes send requests to the engine, at most a fixed number at a time. If some are left, the QP goes to the device's
 * backlog. Returns how many were passed. */
unsigned client_qp_drain_send(struct client_qp *q);
/* Passes receive requests to the engine. The engine calls it, too, when a message needs a receive request. */
void client_qp_refill(void *client_qp);
/* To be called when the QP's doorbell rang. */
void client_qp_rang(void *client_qp, uint64_t now);
/* To be called when the state became RESET. Drops all requests in the rings. */
void client_qp_reset_rings(struct client_qp *q);

#endif
