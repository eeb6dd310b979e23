// SPDX-License-Identifier: BSD-2-Clause
/* The rings of a QP: requests go from there to the engine. */
#ifndef PUMICE_DAEMON_OBJECTS_QP_QP_RING_H
#define PUMICE_DAEMON_OBJECTS_QP_QP_RING_H

#include <stdint.h>

struct client_qp;

/* Reads send requests into the engine, a bounded number at a time. If some are left, the QP goes to the device's backlog. Returns how many
 * were taken. */
unsigned client_qp_drain_send(struct client_qp *q, uint64_t now);
/* Reads receive requests into the engine. The engine calls it, too, when a message needs one. */
void client_qp_refill(void *client_qp);
/* The QP's doorbell rang. */
void client_qp_rang(void *client_qp, uint64_t now);
/* To be called when the state became RESET: drops all requests in the rings. */
void client_qp_reset_rings(struct client_qp *q);

#endif
