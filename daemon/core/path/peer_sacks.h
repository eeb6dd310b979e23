// SPDX-License-Identifier: BSD-2-Clause
/* Does the device of a peer understand selective acknowledgements (wire/pumice/sack.h)? */
#ifndef PUMICE_DAEMON_CORE_PATH_PEER_SACKS_H
#define PUMICE_DAEMON_CORE_PATH_PEER_SACKS_H

#include "daemon/core/path/datagram_flow.h"

/* To be called when a packet of the peer is missing. p: the entry of its address in the table of peers; av: the way there.
 * Asks the device if its answer is not known, but only one whose packets are like those of Pumice devices
 * (rx_meta.like_pumice). So other devices never get a probe. */
bool peer_takes_sacks(struct datagram_flow_table *t, struct peer_window *p, const struct av *av, bool like_pumice,
                      uint64_t now);

#endif
