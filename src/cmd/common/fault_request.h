// SPDX-License-Identifier: BSD-2-Clause
/* Sets the injected faults of daemons: a specification, a script from a file, or both. */
#ifndef PUMICE_SRC_CMD_COMMON_FAULT_REQUEST_H
#define PUMICE_SRC_CMD_COMMON_FAULT_REQUEST_H

#include <stdint.h>

#include "pumice/abi.h"

struct fault_request {
    struct pm_fault_req req;
    const char *file; /* name of the script's file; NULL: no script */
};

/* Prepares a request. spec "": no faults. file NULL: no script; "-": standard input. Returns 0, or -1 after printing an
 * error. */
int fault_request_init(struct fault_request *r, const char *spec, const char *file, uint64_t seed);

/* The times of the faults begin now, for all daemons that get the request from now on. */
void fault_request_start(struct fault_request *r);

/* Sends the request to the daemon whose control socket is at path. host: its number in the lab. Returns 0, or -1 after
 * printing an error. */
int fault_request_send(struct fault_request *r, const char *path, unsigned host);

#endif
