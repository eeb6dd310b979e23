// SPDX-License-Identifier: BSD-2-Clause
/* Unreliable datagrams (IBA 9.8.3): one packet is one message. A send request is done when its packet has been handed
 * out (requester/send.c). A datagram with the right Q_Key takes a receive request; any other is dropped silently.
 *
 * The first 40 bytes of a receive buffer are the header area. They always travel in the completion, as small messages
 * do, together with up to 24 bytes of payload. Longer payload is written to memory after the header area. */
#ifndef PUMICE_DAEMON_CORE_RESPONDER_UD_H
#define PUMICE_DAEMON_CORE_RESPONDER_UD_H

#include <stdint.h>

struct pkt;
struct qp;
struct rx_meta;

/* Takes in a datagram. */
void ud_rx(struct qp *qp, const struct pkt *p, const struct rx_meta *meta, uint64_t now);

#endif
