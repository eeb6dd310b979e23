// SPDX-License-Identifier: BSD-2-Clause
/* Connection management in the life of a program: it listens, asks for a connection to itself, and refuses it. */
#ifndef PUMICE_TESTS_FAILING_LIFE_CM_H
#define PUMICE_TESTS_FAILING_LIFE_CM_H

#include "tests/failing/life.h"

/* own: an address of the daemon's device, which must be an IPv4 one. Stores the step that failed, or went wrong, in *r.
 * Takes back all that it has made. */
void life_cm_run(const union ibv_gid *own, struct life_result *r);

#endif
