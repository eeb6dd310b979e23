// SPDX-License-Identifier: BSD-2-Clause
/* Packets out: from the engine, past the faults, to the socket or back into the engine. */
#ifndef PUMICE_DAEMON_LOOP_TX_H
#define PUMICE_DAEMON_LOOP_TX_H

#include <stdint.h>

#include "daemon/device/device.h"

/* Takes packets out of the engine, or those whose delay is over, and sends them. Returns the number of packets; 0: there are none, or the
 * socket is full. */
unsigned device_tx(struct device *d, uint64_t now);

#endif
