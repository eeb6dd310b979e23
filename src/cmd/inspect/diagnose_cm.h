// SPDX-License-Identifier: BSD-2-Clause
/* Finds out from the status documents of daemons (daemon/cm/cm_status.h) why connections of rdma_cm do not come about. */
#ifndef PUMICE_SRC_CMD_INSPECT_DIAGNOSE_CM_H
#define PUMICE_SRC_CMD_INSPECT_DIAGNOSE_CM_H

#include <jansson.h>

#define CM_REASON_MAX 600 /* bytes of a text, with the final NUL */

/* Explains an ID of the list "connections". hosts: an array of {status}, where the remote address may be. Returns a
 * code, and writes the text. Codes: unresolved, program, req, rep, dreq, connected, rejected, over. */
const char *diagnose_connection(const json_t *id, const json_t *hosts, char text[CM_REASON_MAX]);
/* Explains an ID of the list "listeners". Codes: full, program, ready. */
const char *diagnose_listener(const json_t *id, char text[CM_REASON_MAX]);
/* Explains a row of the list "failures". Codes: address, unreachable, rejected, error. */
const char *diagnose_failure(const json_t *failure, const json_t *hosts, char text[CM_REASON_MAX]);

#endif
