// SPDX-License-Identifier: BSD-2-Clause
/* Packets in: finds the QP of a packet, checks whether it may take the packet at all, and passes the packet to one half of
 * it. */
#ifndef PUMICE_DAEMON_CORE_RX_H
#define PUMICE_DAEMON_CORE_RX_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/base/pkt_run.h"
#include "daemon/core/base/rx_meta.h"
#include "wire/pkt.h"

struct engine;

/* Takes in a packet. The caller has checked its ICRC. The payload must stay valid until deferred writes were carried
 * out.
 *
 * Multicast: a packet for QP 0xffffff to a group goes to each UD QP in it, except the one that sent it. The engine
 * can't send to itself. So the owner gives each packet to a group (gid_is_multicast(tx_pkt.av->dgid)) to the socket,
 * and also back to its own engine. There it is a packet from the device's own address. The owner need not know whether
 * a QP here has joined. The kernel's multicast loop brings such packets back to a socket that has joined. (Other
 * devices on the same machine need this loop.) The owner must not take in its own packets a second time. So it drops
 * packets to a group that come from the network with the device's own address as their source. The owner joins the
 * group on its socket while a QP is in it. */
void engine_rx(struct engine *e, const struct pkt *p, const struct rx_meta *meta, uint64_t now);
/* While it is on, packets that need a receive request find none if owner_ops.withholds says so. So a reliable QP answers
 * with RNR NAK. This is for tests of programs. */
void engine_withhold_recv(struct engine *e, bool on);
/* As engine_rx for each packet of the run, with the same results. The payload of the run must stay valid as that of a
 * packet. The QP checks the packets together, and writes their payload at once. If a check fails, it takes the packets one
 * by one. */
void engine_rx_run(struct engine *e, const struct pkt_run *r, const struct rx_meta *meta, uint64_t now);

#endif
