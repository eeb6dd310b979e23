// SPDX-License-Identifier: BSD-2-Clause
/* Finds out from the status documents of daemons (daemon/status/status.h) what a queue pair waits for, or why it
 * failed. */
#ifndef PUMICE_SRC_CMD_INSPECT_DIAGNOSE_H
#define PUMICE_SRC_CMD_INSPECT_DIAGNOSE_H

#include <jansson.h>

/* A queue pair and its surroundings, as pointers into the status documents. */
struct diagnose_input {
    const json_t *hosts; /* an array of {status}: all daemons that were asked; NULL: none but this one */
    const json_t *status; /* the daemon's document */
    const json_t *device;
    const json_t *qp;
    const json_t *peer; /* the queue pair that qp is connected to; NULL: not known, or there is none */
    const json_t *peer_device; /* the device with the peer's address; NULL: none of the daemons asked has it */
};

/* Returns an array of {code, text}, the most likely reason first. It is never empty, and the caller owns it. Codes:
 * error, broken, cm, unreachable, not_connected, drain, rnr, xrc_blocked, ack, retry, peer_gone, peer_state, peer_wait,
 * port_down, faults, window, peer_window, credit,
 * recv_credit, fence, ecn, unread, ready, idle, no_receive, unpolled, overrun. */
json_t *diagnose_qp(const struct diagnose_input *s);

#endif
