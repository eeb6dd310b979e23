// SPDX-License-Identifier: BSD-2-Clause
/* Carries management datagrams (MADs) between the engine of a device, whose QP 1 sends and receives them, and connection
 * management, which runs in another thread (device/mad_box.h). */
#ifndef PUMICE_DAEMON_LOOP_MADS_H
#define PUMICE_DAEMON_LOOP_MADS_H

#include "daemon/device/device.h"

/* Gives the engine the MADs that wait to be sent, up to a bound. Returns how many. Without any, it costs one load. */
unsigned mads_send(struct device *d);
/* Hands over the MADs that QP 1 has received. */
void mads_receive(struct device *d);

#endif
