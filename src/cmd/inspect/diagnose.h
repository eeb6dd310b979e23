// SPDX-License-Identifier: BSD-2-Clause
/* What a queue pair waits for, in words, from what daemons tell of it (daemon/status/status.h). */
#ifndef PUMICE_SRC_CMD_INSPECT_DIAGNOSE_H
#define PUMICE_SRC_CMD_INSPECT_DIAGNOSE_H

#include <jansson.h>

/* A queue pair and what is known around it; pointers into the daemons' documents. */
struct diagnose_input {
    const json_t *status; /* the daemon's document */
    const json_t *device;
    const json_t *qp;
    const json_t *peer; /* the queue pair that it is connected to; NULL: not known, or there is none */
    const json_t *peer_device; /* the device with the peer's address; NULL: not one of those asked */
};

/* An array of {code, text}, the most likely reason first; never empty. Codes: error, broken, unreachable, not_connected, drain, rnr, xrc_blocked,
 * ack, retry, peer_gone, peer_state, peer_wait, port_down, faults, window, peer_window, credit, fence, ecn, unread, ready,
 * idle, no_receive, unpolled, overrun. */
json_t *diagnose_qp(const struct diagnose_input *s);

#endif
