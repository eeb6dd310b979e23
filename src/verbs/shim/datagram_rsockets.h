// SPDX-License-Identifier: BSD-2-Clause
/* Datagram rsockets of librdmacm (udpong). They ask two things of a device that no RoCE device gives them, so they run only
 * if the user allows both with PM_ENV_DATAGRAM_RSOCKETS:
 *
 * - an address handle of the own port by its LID, without a GRH (ah.c);
 * - the address of the device as the source of UDP. librdmacm takes the address that the kernel chooses for a UDP socket.
 *   Between addresses of the loopback interface this is 127.0.0.1, which only the first host of a lab has. So connect binds
 *   the socket to the address of this host's device first. */
#ifndef PUMICE_SRC_VERBS_SHIM_DATAGRAM_RSOCKETS_H
#define PUMICE_SRC_VERBS_SHIM_DATAGRAM_RSOCKETS_H

#include <stdbool.h>

/* Whether the user allows what datagram rsockets need. */
bool vb_datagram_rsockets(void);

#endif
