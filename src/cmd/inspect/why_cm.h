// SPDX-License-Identifier: BSD-2-Clause
/* pumice why --connections: one answer for each ID of rdma_cm, and for each connection that failed lately. */
#ifndef PUMICE_SRC_CMD_INSPECT_WHY_CM_H
#define PUMICE_SRC_CMD_INSPECT_WHY_CM_H

#include <jansson.h>

/* Returns an array of {host?, kind ("connection", "listener", "failure"), the members of the row, code, text}. hosts: an
 * array of {status, host?}; all_hosts: those in which the peers may be. */
json_t *why_cm_answers(const json_t *hosts, const json_t *all_hosts);
void why_cm_print(const json_t *answers);

#endif
