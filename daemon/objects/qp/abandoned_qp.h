// SPDX-License-Identifier: BSD-2-Clause
/* Queue pairs whose program has died while connection management (rdma_cm) kept their connection. Two threads see such a
 * death: the connection management thread, which disconnects the peer, and the device's thread, which frees the
 * objects. The device's thread may be later. It stops these QPs before it sends the DREQ or DREP: no request may follow
 * (IBA 12.9). */
#ifndef PUMICE_DAEMON_OBJECTS_QP_ABANDONED_QP_H
#define PUMICE_DAEMON_OBJECTS_QP_ABANDONED_QP_H

#include <stdint.h>

struct device;

/* Moves the QP to ERR if its program has died. The QP of a living program stays as it is, as under Linux: the program
 * has only closed its event channel. The device may have no such QP. */
void abandoned_qp_stop(struct device *d, uint32_t qpn);

#endif
