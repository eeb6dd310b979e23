// SPDX-License-Identifier: BSD-2-Clause
/* Receiving: passes packets from a device's sockets to its engine. */
#ifndef PUMICE_DAEMON_LOOP_RX_H
#define PUMICE_DAEMON_LOOP_RX_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/device/device.h"

/* Receives a batch of packets and passes it to the engine. Returns the number of packets. */
unsigned device_rx(struct device *d, uint64_t now);
/* Receives from the sockets of the multicast groups that had data within MCAST_GROUP_HOT_NS. Returns the number of
 * packets. */
unsigned device_rx_groups(struct device *d, uint64_t now);
/* Passes a packet or run that never left the device to the engine. t: the packet as the engine made it; p: its bytes, which
 * must stay valid until the deferred writes are done. ce: the packet is marked with CE. */
void device_rx_loopback(struct device *d, const struct tx_pkt *t, bool ce, const uint8_t *p, uint64_t now);

/* The engine's callback owner_ops.withholds: a fault refuses the packet. */
bool device_rx_withholds(struct device *d, const struct pkt *p);

#endif
