// SPDX-License-Identifier: BSD-2-Clause
/* Whether the programs of a lab have used its network at all. Those that meant to talk over RDMA may have found another way. */
#ifndef PUMICE_SRC_CMD_RUN_TRAFFIC_H
#define PUMICE_SRC_CMD_RUN_TRAFFIC_H

#include <stdbool.h>

#include "src/cmd/lab/lab.h"

enum traffic {
    TRAFFIC_FINE, /* as it should be, or not known */
    TRAFFIC_NONE, /* several processes made queue pairs, and no device has sent a packet, not even to itself */
    TRAFFIC_SETUP, /* they connected them, too, and there were datagrams; but nothing went over the connections */
};

/* To be called while the daemons run. */
enum traffic traffic_look(const struct lab *lab);

#endif
