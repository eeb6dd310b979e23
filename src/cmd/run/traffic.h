// SPDX-License-Identifier: BSD-2-Clause
/* Finds out whether the programs of a lab have used its network. A program that should use RDMA may have chosen another
 * transport. */
#ifndef PUMICE_SRC_CMD_RUN_TRAFFIC_H
#define PUMICE_SRC_CMD_RUN_TRAFFIC_H

#include <stdbool.h>

#include "src/cmd/lab/lab.h"

enum traffic {
    TRAFFIC_OK, /* as expected, or not known */
    /* Several processes made queue pairs, but no device has sent a packet, not even to itself. */
    TRAFFIC_NONE,
    /* Several processes made and connected queue pairs and sent datagrams, but no packet went over the connections. */
    TRAFFIC_SETUP,
    TRAFFIC_NO_QP, /* no process made a queue pair */
};

/* Asks the daemons of the lab, which must still run. */
enum traffic traffic_check(const struct lab *lab);

#endif
