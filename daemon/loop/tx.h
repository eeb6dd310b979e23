// SPDX-License-Identifier: BSD-2-Clause
/* Sending: takes packets from the engine, applies the faults, and passes the packets to the socket, or back to the
 * engine. */
#ifndef PUMICE_DAEMON_LOOP_TX_H
#define PUMICE_DAEMON_LOOP_TX_H

#include <stdint.h>

#include "daemon/device/device.h"

/* Sends packets from the engine, or packets whose delay is over. Returns the number of packets. 0: there are none, or
 * the socket is full. */
unsigned device_tx(struct device *d, uint64_t now);

#endif
